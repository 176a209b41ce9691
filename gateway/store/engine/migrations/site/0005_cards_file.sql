-- Whether this data folder has had its file of cards: one that is not the same any more was lost.
ALTER TABLE box ADD COLUMN has_cards_file INTEGER NOT NULL DEFAULT 0 CHECK (has_cards_file IN (0, 1));
