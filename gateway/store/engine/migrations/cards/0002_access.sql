-- What access rules ask of a card, as JSON; '' when there is nothing: see gateway.store.cards.facts.
ALTER TABLE card ADD COLUMN facts TEXT NOT NULL DEFAULT '';
