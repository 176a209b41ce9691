-- Webhooks: what is to be announced to whom. Each has books of its own: accepted = delivered + failed + dropped + waiting.
CREATE TABLE webhook (
    id            TEXT PRIMARY KEY,
    url           TEXT NOT NULL,
    secret        TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    created_by    TEXT NOT NULL,
    disabled      TEXT NOT NULL DEFAULT '',    -- why nothing is sent to it; '' while it is enabled
    failing_since INTEGER,                     -- by a trusted clock; NULL while deliveries succeed
    failed_at     INTEGER,
    error         TEXT NOT NULL DEFAULT '',    -- of the newest try, '' when it succeeded
    full          INTEGER NOT NULL DEFAULT 0,  -- 1: its backlog is full, and that was told
    accepted      INTEGER NOT NULL DEFAULT 0,
    delivered     INTEGER NOT NULL DEFAULT 0,
    failed        INTEGER NOT NULL DEFAULT 0,  -- given up after all tries
    dropped       INTEGER NOT NULL DEFAULT 0   -- there was no room
) STRICT;

CREATE TABLE webhook_type (
    type       TEXT NOT NULL,
    webhook_id TEXT NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
    PRIMARY KEY (type, webhook_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_message (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id TEXT NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
    event_id   INTEGER NOT NULL,
    message_id TEXT NOT NULL,               -- the same over all tries, and at a replay
    body       TEXT NOT NULL,               -- as it is sent
    created_at INTEGER NOT NULL,
    tries      INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL,            -- not before this moment
    failed     INTEGER NOT NULL DEFAULT 0,  -- 1: given up; kept for a replay
    error      TEXT NOT NULL DEFAULT '',
    UNIQUE (webhook_id, event_id)
) STRICT;
CREATE INDEX webhook_message_waiting ON webhook_message (webhook_id, next_at, id) WHERE failed = 0;
CREATE INDEX webhook_message_failed ON webhook_message (webhook_id, id) WHERE failed = 1;

-- What makes this site's messages unlike those of all other sites.
CREATE TABLE webhook_mark (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    mark TEXT NOT NULL
) STRICT;
INSERT INTO webhook_mark VALUES (1, lower(hex(randomblob(6))));

-- Grants of access: who may pass a lane until when, given over the interface.
CREATE TABLE access_grant (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    access_id   TEXT NOT NULL UNIQUE,
    user_id     TEXT NOT NULL,
    device_id   INTEGER NOT NULL,
    lane_id     TEXT NOT NULL,
    given_at    INTEGER NOT NULL,
    valid_until INTEGER,                     -- NULL: permanent
    given_by    TEXT NOT NULL,
    revoked_at  INTEGER,
    revoked_by  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX access_grant_standing ON access_grant (number) WHERE revoked_at IS NULL;
