-- Aliases may be lost while their card is there: each record differs from central's by a blank, so that the next sweep
-- writes every card and its aliases anew.
UPDATE card SET record = record || ' ';
-- Until the list is back, it counts as lost, also if the power fails before the sentence about it is here.
UPDATE sweep SET value = 'cards.db was damaged' WHERE name = 'lost';
