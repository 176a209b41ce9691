CREATE TABLE card (
    id          INTEGER PRIMARY KEY,
    number      TEXT NOT NULL,
    status      TEXT NOT NULL,
    valid_from  INTEGER,
    valid_until INTEGER,
    holder      TEXT NOT NULL,
    record      TEXT NOT NULL,                -- central's record, whole, as JSON
    updated_at  INTEGER NOT NULL,
    facts       TEXT NOT NULL DEFAULT ''      -- what access rules ask of a card, as JSON: see gateway.store.cards.facts
) STRICT;

CREATE TABLE card_alias (
    alias   TEXT NOT NULL,
    card_id INTEGER NOT NULL REFERENCES card (id) ON DELETE CASCADE,
    PRIMARY KEY (alias, card_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX card_alias_by_card ON card_alias (card_id);

-- What is remembered of sweeps: last complete one, and a large removal that waits for a second look.
CREATE TABLE sweep (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
