BEGIN TRANSACTION;
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
INSERT INTO "card" VALUES(41,'FLT1041','active',NULL,NULL,'','{"id": 41, "name": "Élodie"}',1767268800000000,'');
CREATE TABLE card_alias (
    alias   TEXT NOT NULL,
    card_id INTEGER NOT NULL REFERENCES card (id) ON DELETE CASCADE,
    PRIMARY KEY (alias, card_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "card_alias" VALUES('plate:FLT1041',41);
CREATE TABLE sweep (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
CREATE INDEX card_alias_by_card ON card_alias (card_id);
COMMIT;
PRAGMA user_version = 1;
