-- Who came in and went out again: an entry and its exit are one row, written with the passages that they are.
CREATE TABLE parking_entry (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    central_id      INTEGER UNIQUE,
    status          TEXT NOT NULL,             -- open, closed, exit_only, superseded
    entry_at        INTEGER,                   -- NULL: only the exit is known
    exit_at         INTEGER,
    at              INTEGER NOT NULL,          -- of the entry, or of the exit when only that is known
    entry_device_id INTEGER,
    exit_device_id  INTEGER,
    entry_lane      TEXT NOT NULL DEFAULT '',
    exit_lane       TEXT NOT NULL DEFAULT '',
    area            TEXT NOT NULL DEFAULT '',  -- where it stands; '' for one that nobody said
    card_id         INTEGER,
    credential      TEXT NOT NULL DEFAULT '',
    plate           TEXT NOT NULL DEFAULT '',  -- without blanks and dashes, in capitals
    manual          INTEGER NOT NULL,          -- 1: made by a person
    clock_trusted   INTEGER NOT NULL,
    entry_passage   INTEGER,
    exit_passage    INTEGER,
    record          TEXT NOT NULL DEFAULT '{}' -- what else a person or central says of it, as JSON
) STRICT;
CREATE INDEX parking_entry_by_time ON parking_entry (at);
CREATE INDEX parking_entry_by_card ON parking_entry (card_id, id) WHERE card_id IS NOT NULL;
CREATE INDEX parking_entry_by_plate ON parking_entry (plate, id) WHERE plate != '';
CREATE INDEX parking_entry_open_card ON parking_entry (card_id) WHERE status = 'open';
CREATE INDEX parking_entry_open_plate ON parking_entry (plate) WHERE status = 'open';
CREATE INDEX parking_entry_open_credential ON parking_entry (credential) WHERE status = 'open';
-- Ids made at the site begin here, above any of central's.
INSERT INTO sqlite_sequence (name, seq) VALUES ('parking_entry', 1999999999);
