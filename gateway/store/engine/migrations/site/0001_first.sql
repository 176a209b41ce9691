-- Moments are microseconds since 1970-01-01 UTC. AUTOINCREMENT: an id is never used again, even after deletion.

CREATE TABLE event (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    device_id     INTEGER NOT NULL,
    type          INTEGER NOT NULL,
    category      INTEGER NOT NULL,
    subcategory   INTEGER NOT NULL,
    name          TEXT NOT NULL,
    description   TEXT NOT NULL,
    date_at       INTEGER NOT NULL,
    clock_trusted INTEGER NOT NULL,
    lane_id       TEXT NOT NULL,
    data          TEXT NOT NULL
) STRICT;
CREATE INDEX event_by_device ON event (device_id, id);
CREATE INDEX event_by_type ON event (type, id);

-- Exact counts of large tables, so that no page of a list has to count them.
CREATE TABLE tally (
    name  TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO tally VALUES ('event', 0);
CREATE TRIGGER event_added AFTER INSERT ON event BEGIN
    UPDATE tally SET count = count + 1 WHERE name = 'event';
END;
CREATE TRIGGER event_removed AFTER DELETE ON event BEGIN
    UPDATE tally SET count = count - 1 WHERE name = 'event';
END;

CREATE TABLE device (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    at_site    INTEGER NOT NULL,              -- 1: the site file has it
    record     TEXT NOT NULL,                 -- central's record, whole, as JSON; '{}' when central has none
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE camera (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    at_site    INTEGER NOT NULL,
    record     TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE segment (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    camera_id     INTEGER NOT NULL,
    path          TEXT NOT NULL UNIQUE,       -- relative to the media folder
    started_at    INTEGER NOT NULL,
    duration      INTEGER NOT NULL,           -- micros
    size          INTEGER NOT NULL,
    clock_trusted INTEGER NOT NULL,
    gap           TEXT NOT NULL,              -- why footage before it is missing; 'none': continuous
    codec         TEXT NOT NULL,
    width         INTEGER NOT NULL,
    height        INTEGER NOT NULL,
    garbage       INTEGER NOT NULL DEFAULT 0  -- 1: its file is being deleted
) STRICT;
CREATE INDEX segment_by_time ON segment (camera_id, started_at);
CREATE INDEX segment_by_age ON segment (garbage, started_at, size);

CREATE TABLE passage (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    lane_id       TEXT NOT NULL,
    direction     TEXT NOT NULL,
    outcome       TEXT NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER NOT NULL,
    clock_trusted INTEGER NOT NULL,
    card_id       INTEGER,
    credential    TEXT NOT NULL,
    reason        TEXT NOT NULL,
    event_id      INTEGER NOT NULL REFERENCES event (id)
) STRICT;
CREATE INDEX passage_by_lane ON passage (lane_id, id);
CREATE INDEX passage_by_event ON passage (event_id);

CREATE TABLE camera_event (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    central_id    INTEGER UNIQUE,
    camera_id     INTEGER NOT NULL,
    event_id      INTEGER NOT NULL REFERENCES event (id),
    lane_id       TEXT NOT NULL,
    name          TEXT NOT NULL,
    description   TEXT NOT NULL,
    date_at       INTEGER NOT NULL,
    pinned_from   INTEGER NOT NULL,
    pinned_until  INTEGER NOT NULL,
    clock_trusted INTEGER NOT NULL,
    ready         INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX camera_event_by_pin ON camera_event (camera_id, pinned_from, pinned_until);
CREATE INDEX camera_event_by_event ON camera_event (event_id);
CREATE INDEX camera_event_awaiting ON camera_event (id) WHERE ready = 0;
-- Ids made at the site begin here, above any of central's.
INSERT INTO sqlite_sequence (name, seq) VALUES ('camera_event', 1999999999);

CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    key        TEXT NOT NULL UNIQUE,          -- stable over all tries
    kind       TEXT NOT NULL,                 -- what is sent, e.g. camera_event
    record_id  INTEGER NOT NULL,              -- of which record; rows of one record go up in order
    body       TEXT NOT NULL,                 -- JSON
    created_at INTEGER NOT NULL,
    tries      INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL,              -- not before this moment
    parked     INTEGER NOT NULL DEFAULT 0,    -- 1: central refused it; waits for a person
    error      TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX outbox_waiting ON outbox (id) WHERE parked = 0;
CREATE INDEX outbox_due ON outbox (parked, next_at, kind, record_id);
CREATE INDEX outbox_by_record ON outbox (kind, record_id, id);

-- The outbox's books: accepted = delivered + dropped + rows in outbox, at every commit.
CREATE TABLE book (
    name  TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT;
INSERT INTO book VALUES ('accepted', 0), ('delivered', 0), ('dropped', 0);

CREATE TABLE command (
    command_id   TEXT PRIMARY KEY,
    device_id    INTEGER NOT NULL,
    lane_id      TEXT NOT NULL,
    action       TEXT NOT NULL,
    source       TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    deadline_at  INTEGER NOT NULL,
    state        TEXT NOT NULL,
    detail       TEXT NOT NULL
) STRICT;
CREATE INDEX command_open ON command (state) WHERE state IN ('recorded', 'sent', 'acknowledged');

CREATE TABLE session (
    token_hash   BLOB PRIMARY KEY,            -- SHA-256 of the token; the token itself is nowhere
    username     TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX session_by_expiry ON session (expires_at);
