BEGIN TRANSACTION;
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
CREATE TABLE account (
    username      TEXT PRIMARY KEY,
    password_hash TEXT NOT NULL,              -- argon2id
    role          TEXT NOT NULL,
    disabled      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    totp_secret   TEXT NOT NULL DEFAULT '',   -- sealed (see second_factor_seal); '' for no second factor
    totp_step     INTEGER NOT NULL DEFAULT 0  -- the half minute of the last code that was used: none counts twice
) STRICT;
INSERT INTO "account" VALUES('guard','hash-of-guard','guard',0,1767268800000000,'',0);
CREATE TABLE api_key (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    key_hash    BLOB NOT NULL UNIQUE,         -- SHA-256 of the key; the key itself is nowhere
    permissions TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER                       -- NULL: never
) STRICT;
INSERT INTO "api_key" VALUES(1,'till',X'0101010101010101010101010101010101010101010101010101010101010101','["can_view_devices"]',1767268800000000,NULL);
CREATE TABLE area (
    area_id   TEXT PRIMARY KEY,
    count     INTEGER NOT NULL,
    opened_at INTEGER
) STRICT;
INSERT INTO "area" VALUES('yard',1,NULL);
CREATE TABLE backlog (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    bytes INTEGER NOT NULL
) STRICT;
INSERT INTO "backlog" VALUES(1,2952);
CREATE TABLE book (
    name  TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT;
INSERT INTO "book" VALUES('accepted',4);
INSERT INTO "book" VALUES('delivered',0);
INSERT INTO "book" VALUES('dropped',0);
INSERT INTO "book" VALUES('replaced',0);
CREATE TABLE box (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL CHECK (number BETWEEN 1 AND 1048575)
, has_cards_file INTEGER NOT NULL DEFAULT 0 CHECK (has_cards_file IN (0, 1))) STRICT;
INSERT INTO "box" VALUES(1,648805,1);
CREATE TABLE camera (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    at_site    INTEGER NOT NULL,
    record     TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO "camera" VALUES(201,'Entry camera',1,'{}',1767268800000000);
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
    ready         INTEGER NOT NULL DEFAULT 0,
    incident      INTEGER NOT NULL DEFAULT 0, -- 1: something went wrong; kept for longer
    boot_id       TEXT NOT NULL DEFAULT '',
    clock_offset  INTEGER NOT NULL DEFAULT 0, -- wall micros minus monotonic ones
    box           INTEGER NOT NULL            -- under which box's number it goes up
) STRICT;
INSERT INTO "camera_event" VALUES(2000000000,NULL,201,1,'entry','Vehicle passed','A vehicle passed.',1767268800000000,1767268795000000,1767268805000000,1,0,0,'',0,648805);
CREATE TABLE camera_event_gone (
    id         INTEGER PRIMARY KEY,
    central_id INTEGER
) STRICT;
CREATE TABLE clock_offset (
    boot_id TEXT PRIMARY KEY,
    micros  INTEGER NOT NULL
) STRICT;
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
INSERT INTO "command" VALUES('b-1',101,'entry','open','lane',1767268800000000,1767268805000000,'done','');
CREATE TABLE day_count (
    day     TEXT NOT NULL,                    -- YYYY-MM-DD in the site's time zone
    measure TEXT NOT NULL,                    -- see gateway.domain.day_counts
    part    TEXT NOT NULL,                    -- the lane, device or camera, or the line and the unit on it
    amount  INTEGER NOT NULL,
    PRIMARY KEY (day, measure, part)
) STRICT, WITHOUT ROWID;
CREATE TABLE day_counted (event_id INTEGER NOT NULL) STRICT;
INSERT INTO "day_counted" VALUES(0);
CREATE TABLE device (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    at_site    INTEGER NOT NULL,              -- 1: the site file has it
    record     TEXT NOT NULL,                 -- central's record, whole, as JSON; '{}' when central has none
    updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO "device" VALUES(101,'Entry barrier','modbus-gate',1,'{}',1767268800000000);
CREATE TABLE device_since (id INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
INSERT INTO "device_since" VALUES(101,1767268800000000);
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
    data          TEXT NOT NULL,
    recorded_at   INTEGER                     -- where it was recorded well after it happened; NULL: at once
, said TEXT) STRICT;
INSERT INTO "event" VALUES(1,101,106,1,0,'Vehicle passed','A vehicle passed.',1767268800000000,1,'entry','{"plate":"FLT1041"}',NULL,NULL);
CREATE TABLE event_range (
    span     INTEGER NOT NULL,
    number   INTEGER NOT NULL,                -- id >> span
    count    INTEGER NOT NULL,
    date_min INTEGER NOT NULL,
    date_max INTEGER NOT NULL,
    PRIMARY KEY (span, number)
) STRICT, WITHOUT ROWID;
INSERT INTO "event_range" VALUES(12,0,1,1767268800000000,1767268800000000);
INSERT INTO "event_range" VALUES(17,0,1,1767268800000000,1767268800000000);
CREATE TABLE event_range_count (
    span      INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    device_id INTEGER NOT NULL,               -- -1: of any device
    type      INTEGER NOT NULL,               -- -1: of any type
    count     INTEGER NOT NULL,
    PRIMARY KEY (span, number, device_id, type)
) STRICT, WITHOUT ROWID;
INSERT INTO "event_range_count" VALUES(12,0,-1,106,1);
INSERT INTO "event_range_count" VALUES(12,0,101,-1,1);
INSERT INTO "event_range_count" VALUES(12,0,101,106,1);
INSERT INTO "event_range_count" VALUES(17,0,-1,106,1);
INSERT INTO "event_range_count" VALUES(17,0,101,-1,1);
INSERT INTO "event_range_count" VALUES(17,0,101,106,1);
CREATE TABLE evidence (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    camera_event_id INTEGER NOT NULL,
    name            TEXT NOT NULL,
    description     TEXT NOT NULL,
    kept_as         TEXT NOT NULL,               -- transaction or incident
    media_type      TEXT NOT NULL,               -- what the bytes say
    size            INTEGER NOT NULL,
    sha256          TEXT NOT NULL,
    file            TEXT NOT NULL UNIQUE,        -- in the folder of evidence
    created_at      INTEGER NOT NULL,
    clock_trusted   INTEGER NOT NULL,
    username        TEXT NOT NULL,
    kept_from       INTEGER,                     -- its days count from then; NULL: no trusted clock has said yet
    central_id      INTEGER,
    delivered       INTEGER NOT NULL DEFAULT 0,  -- 1: central has it
    missing         INTEGER NOT NULL DEFAULT 0,  -- 1: the file is not there
    garbage         INTEGER NOT NULL DEFAULT 0   -- 1: the file is to be deleted, the row after it
) STRICT;
CREATE TABLE evidence_link (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    evidence_id  INTEGER NOT NULL,
    token_hash   BLOB NOT NULL UNIQUE,           -- SHA-256 of the token; the token itself is nowhere
    username     TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    revoked_at   INTEGER
, maker TEXT NOT NULL DEFAULT 'site') STRICT;
CREATE TABLE footage_chain (
    camera_id INTEGER PRIMARY KEY,
    number    INTEGER NOT NULL,
    link      BLOB NOT NULL,
    breaks    INTEGER NOT NULL DEFAULT 0,     -- of the newest segment
    longest   INTEGER NOT NULL DEFAULT 0      -- micros of the longest segment there was
) STRICT;
CREATE TABLE holder (
    holder  TEXT PRIMARY KEY,
    area_id TEXT NOT NULL,
    since   INTEGER NOT NULL
) STRICT;
INSERT INTO "holder" VALUES('card 41','yard',1767268800000000);
CREATE TABLE outbox (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    key           TEXT NOT NULL UNIQUE,            -- stable over all tries
    kind          TEXT NOT NULL,                   -- what is sent, e.g. camera_event
    record_id     INTEGER NOT NULL,                -- of which record; rows of one record go up in order
    body          TEXT NOT NULL,                   -- JSON
    created_at    INTEGER NOT NULL,
    tries         INTEGER NOT NULL DEFAULT 0,
    next_at       INTEGER NOT NULL,                -- not before this moment
    parked        INTEGER NOT NULL DEFAULT 0,      -- 1: waits for a person: refused, or with `begun`: nobody knows
    error         TEXT NOT NULL DEFAULT '',
    action        TEXT NOT NULL DEFAULT 'create',  -- with the kind it names the operation that delivers it
    begun         INTEGER NOT NULL DEFAULT 0,      -- 1: it may have reached central, whatever became of the answer
    base          TEXT NOT NULL DEFAULT '',        -- the fields at the site before the change, as JSON: what central should
                                                   -- still have; '' for none
    unanswered    INTEGER NOT NULL DEFAULT 0,      -- 1: waits because central did not answer: goes as soon as it does
    newest_before INTEGER,                         -- the highest id known of its kind at central before it was sent: what
                                                   -- central has below is not this row; NULL: nobody knows
    stated_id     INTEGER,                         -- the id under which central has it, as a person said
    waits_for     INTEGER,                         -- the site's id of a record that it names and that goes up before it
    begun_at      INTEGER,                         -- when it was sent, by central's clock; NULL: nobody knows
    file_bytes    INTEGER NOT NULL DEFAULT 0       -- of the file that goes up with it and waits on the disk as it does
) STRICT;
INSERT INTO "outbox" VALUES(1,'St162zwLSU5h6mQUHkhy-5Ap','entry',2000000000,'{"device_id":101,"type":"entry","date_at":"2026-01-01T12:00:00.000Z","plate":"FLT1041","credential":"FLT1041","lane":"entry","area":"yard","clock_trusted":true,"access_id":41,"source_name":"North","source_id":2786596256481281}',1767268800000000,0,0,0,'','create',0,'',0,NULL,NULL,NULL,NULL,0);
INSERT INTO "outbox" VALUES(2,'UC-ZL4SuWsl5IufK-mGcWVAq','camera_event',2000000000,'{"camera_id":201,"name":"Vehicle passed","description":"A vehicle passed.","date_at":"2026-01-01T12:00:00.000Z","start_date":"2026-01-01T11:59:55.000Z","end_date":"2026-01-01T12:00:05.000Z","clock_trusted":true,"lane":"entry","source_event_id":1,"source_id":2786598256481280,"source_name":"North"}',1767268800000000,0,0,0,'','create',0,'',0,NULL,NULL,NULL,NULL,0);
INSERT INTO "outbox" VALUES(3,'_fh9BEaTWFiqglQaQcbjeNJr','entry',2000000001,'{"device_id":101}',1767268800000000,0,0,0,'','create',0,'',0,NULL,NULL,NULL,NULL,0);
INSERT INTO "outbox" VALUES(4,'MDNcordvr-wbegEhnHUpW4ZH','access_card',41,'{"note":"x"}',1767268800000000,0,0,0,'','update',0,'',0,NULL,NULL,NULL,NULL,0);
CREATE TABLE parking_entry (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    central_id      INTEGER UNIQUE,
    status          TEXT NOT NULL,              -- open, closed, exit_only, superseded
    entry_at        INTEGER,                    -- NULL: only the exit is known
    exit_at         INTEGER,
    at              INTEGER NOT NULL,           -- of the entry, or of the exit when only that is known
    entry_device_id INTEGER,
    exit_device_id  INTEGER,
    entry_lane      TEXT NOT NULL DEFAULT '',
    exit_lane       TEXT NOT NULL DEFAULT '',
    area            TEXT NOT NULL DEFAULT '',   -- where it stands; '' for one that nobody said
    card_id         INTEGER,
    credential      TEXT NOT NULL DEFAULT '',
    plate           TEXT NOT NULL DEFAULT '',   -- without blanks and dashes, in capitals
    manual          INTEGER NOT NULL,           -- 1: made by a person
    clock_trusted   INTEGER NOT NULL,
    entry_passage   INTEGER,
    exit_passage    INTEGER,
    record          TEXT NOT NULL DEFAULT '{}', -- what else a person or central says of it, as JSON
    box             INTEGER NOT NULL DEFAULT 0  -- under whose number it goes up; 0: no passage made it
) STRICT;
INSERT INTO "parking_entry" VALUES(2000000000,NULL,'open',1767268800000000,NULL,1767268800000000,101,NULL,'entry','','yard',41,'FLT1041','FLT1041',0,1,1,NULL,'{}',648805);
INSERT INTO "parking_entry" VALUES(2000000001,NULL,'open',1767268800000000,NULL,1767268800000000,101,NULL,'','','',NULL,'','',1,1,NULL,NULL,'{}',0);
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
INSERT INTO "passage" VALUES(1,'entry','entry','passed',1767268791000000,1767268800000000,1,41,'FLT1041','granted',1);
CREATE TABLE provisional (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL,
    central_id INTEGER
) STRICT;
CREATE TABLE read_cursor (
    id        INTEGER PRIMARY KEY,
    account   TEXT NOT NULL,
    list      TEXT NOT NULL,                  -- event, camera_event or entry
    filter    TEXT NOT NULL,                  -- what of the list is read; '' for all of it
    read_to   INTEGER NOT NULL,               -- everything up to this id was fetched
    read_at   INTEGER NOT NULL,               -- wall micros of the last page that was asked for
    began_at  INTEGER NOT NULL,
    UNIQUE (account, list, filter)
) STRICT;
CREATE TABLE recovery_code (
    code_hash BLOB PRIMARY KEY,               -- SHA-256; a code is gone once it is used
    username  TEXT NOT NULL
) STRICT;
CREATE TABLE registered_device (id INTEGER PRIMARY KEY, removed_at INTEGER) STRICT;
CREATE TABLE remembered (
    username      TEXT PRIMARY KEY,
    password_hash TEXT NOT NULL,
    role          TEXT NOT NULL,
    permissions   TEXT NOT NULL,
    verified_at   INTEGER NOT NULL,
    mfa           INTEGER NOT NULL DEFAULT 0  -- 1: central asks for a second factor; not let in, but told why
) STRICT;
CREATE TABLE role (
    name        TEXT PRIMARY KEY,
    permissions TEXT NOT NULL                 -- a JSON array of the interface's names, or ["*"]
) STRICT;
INSERT INTO "role" VALUES('administrator','["*"]');
INSERT INTO "role" VALUES('operator','["can_add_camera_events","can_add_entries","can_control_devices","can_edit_camera_events","can_edit_entries","can_view_access_cards","can_view_camera_events","can_view_cameras","can_view_devices","can_view_entries","can_view_events","can_view_guests"]');
INSERT INTO "role" VALUES('viewer','["can_view_access_cards","can_view_camera_events","can_view_cameras","can_view_devices","can_view_entries","can_view_events","can_view_guests"]');
INSERT INTO "role" VALUES('guard','["can_view_devices"]');
CREATE TABLE segment (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    camera_id     INTEGER NOT NULL,
    path          TEXT NOT NULL UNIQUE,         -- relative to the media folder
    started_at    INTEGER NOT NULL,
    duration      INTEGER NOT NULL,             -- micros
    size          INTEGER NOT NULL,
    clock_trusted INTEGER NOT NULL,
    gap           TEXT NOT NULL,                -- why footage before it is missing; 'none': continuous
    codec         TEXT NOT NULL,
    width         INTEGER NOT NULL,
    height        INTEGER NOT NULL,
    garbage       INTEGER NOT NULL DEFAULT 0,   -- 1: its file is being deleted
    -- Its place in the camera's chain (see gateway.domain.footage_chain), and its time by both clocks.
    frames        INTEGER NOT NULL DEFAULT 0,   -- 0: not known
    sha256        BLOB,                         -- of the file as it was written; NULL: not known yet
    number        INTEGER,                      -- its place in the chain; NULL: not linked yet
    previous      BLOB,                         -- the link before it
    boot_id       TEXT NOT NULL DEFAULT '',     -- of the machine's run that `monotonic` counts in
    monotonic     INTEGER NOT NULL DEFAULT 0,   -- micros of the first frame
    breaks        INTEGER NOT NULL DEFAULT 0,   -- discontinuities of its camera up to it (RFC 8216, 6.2.2)
    entry         TEXT NOT NULL DEFAULT 'idr',  -- its first entry point: 'idr', 'recovery' (some pictures need what came
                                                -- before) or 'none'
    whole_after   INTEGER NOT NULL DEFAULT 0    -- micros from its start until pictures are whole when decoding begins there
) STRICT;
INSERT INTO "segment" VALUES(1,201,'201/2026010112/1767268800000000_10000000.ts',1767268800000000,10000000,9,1,'network','',0,0,0,0,NULL,NULL,NULL,'',0,0,'idr',0);
CREATE TABLE session (
    token_hash   BLOB PRIMARY KEY,            -- SHA-256 of the token; the token itself is nowhere
    username     TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    -- Of whom it is. A central account's role and permissions are as they were when it signed in.
    central      INTEGER NOT NULL DEFAULT 0,
    mfa_pending  INTEGER NOT NULL DEFAULT 0,
    role         TEXT NOT NULL DEFAULT '',
    permissions  TEXT NOT NULL DEFAULT '[]'
) STRICT;
INSERT INTO "session" VALUES(X'3C469E9D6C5875D37A43F353D4F88E61FCF812C66EEE3457465A40B0DA4153E0','guard',1767268800000000,1767268800000000,1767272400000000,0,0,'','[]');
CREATE TABLE site_file_account (
    username      TEXT PRIMARY KEY,
    password_hash TEXT NOT NULL               -- argon2id
) STRICT;
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
INSERT INTO "webhook" VALUES('till','https://till.example/hook','s',1767268800000000,'chief','',NULL,NULL,'',0,0,0,0,0);
CREATE TABLE webhook_mark (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    mark TEXT NOT NULL
) STRICT;
INSERT INTO "webhook_mark" VALUES(1,'7895c033b5a9');
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
CREATE TABLE webhook_type (
    type       TEXT NOT NULL,
    webhook_id TEXT NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
    PRIMARY KEY (type, webhook_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "webhook_type" VALUES('vehicle.passed','till');
CREATE INDEX event_by_device ON event (device_id, id);
CREATE INDEX event_by_type ON event (type, id);
CREATE TRIGGER event_counted AFTER INSERT ON event BEGIN
    INSERT INTO event_range VALUES
        (12, NEW.id >> 12, 1, NEW.date_at, NEW.date_at),
        (17, NEW.id >> 17, 1, NEW.date_at, NEW.date_at)
        ON CONFLICT DO UPDATE SET count = count + 1,
            date_min = min(date_min, excluded.date_min), date_max = max(date_max, excluded.date_max);
    INSERT INTO event_range_count VALUES
        (12, NEW.id >> 12, NEW.device_id, -1, 1), (17, NEW.id >> 17, NEW.device_id, -1, 1),
        (12, NEW.id >> 12, -1, NEW.type, 1), (17, NEW.id >> 17, -1, NEW.type, 1),
        (12, NEW.id >> 12, NEW.device_id, NEW.type, 1), (17, NEW.id >> 17, NEW.device_id, NEW.type, 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER event_uncounted AFTER DELETE ON event BEGIN
    UPDATE event_range SET count = count - 1
        WHERE (span, number) IN (VALUES (12, OLD.id >> 12), (17, OLD.id >> 17));
    UPDATE event_range_count SET count = count - 1
        WHERE (span, number, device_id, type) IN (VALUES
            (12, OLD.id >> 12, OLD.device_id, -1), (17, OLD.id >> 17, OLD.device_id, -1),
            (12, OLD.id >> 12, -1, OLD.type), (17, OLD.id >> 17, -1, OLD.type),
            (12, OLD.id >> 12, OLD.device_id, OLD.type), (17, OLD.id >> 17, OLD.device_id, OLD.type));
END;
CREATE TRIGGER device_is_new AFTER INSERT ON device BEGIN
    INSERT OR IGNORE INTO device_since VALUES (new.id, new.updated_at);
END;
CREATE TRIGGER device_has_centrals_id AFTER UPDATE OF id ON device WHEN old.id <> new.id BEGIN
    INSERT OR REPLACE INTO device_since SELECT new.id, at FROM device_since WHERE id = old.id;
    UPDATE OR REPLACE registered_device SET id = new.id WHERE id = old.id;
END;
CREATE INDEX segment_by_time ON segment (camera_id, started_at);
CREATE INDEX segment_by_age ON segment (garbage, started_at, size);
CREATE INDEX segment_unlinked ON segment (id) WHERE number IS NULL;
CREATE INDEX segment_by_number ON segment (camera_id, number) WHERE number IS NOT NULL;
CREATE INDEX segment_untrusted ON segment (boot_id) WHERE clock_trusted = 0;
CREATE INDEX passage_by_lane ON passage (lane_id, id);
CREATE INDEX passage_by_event ON passage (event_id);
CREATE INDEX parking_entry_by_time ON parking_entry (at);
CREATE INDEX parking_entry_by_card ON parking_entry (card_id, id) WHERE card_id IS NOT NULL;
CREATE INDEX parking_entry_by_plate ON parking_entry (plate, id) WHERE plate != '';
CREATE INDEX parking_entry_open_card ON parking_entry (card_id) WHERE status = 'open';
CREATE INDEX parking_entry_open_plate ON parking_entry (plate) WHERE status = 'open';
CREATE INDEX parking_entry_open_credential ON parking_entry (credential) WHERE status = 'open';
CREATE INDEX camera_event_by_pin ON camera_event (camera_id, pinned_from, pinned_until);
CREATE INDEX camera_event_by_event ON camera_event (event_id);
CREATE INDEX camera_event_awaiting ON camera_event (id) WHERE ready = 0;
CREATE INDEX camera_event_untrusted ON camera_event (boot_id) WHERE clock_trusted = 0;
CREATE INDEX camera_event_by_uptime
    ON camera_event (camera_id, boot_id, pinned_from - clock_offset, pinned_until - clock_offset, clock_offset)
    WHERE boot_id <> '';
CREATE INDEX evidence_by_camera_event ON evidence (camera_event_id);
CREATE INDEX evidence_by_central ON evidence (central_id) WHERE central_id IS NOT NULL;
CREATE INDEX evidence_garbage ON evidence (id) WHERE garbage = 1;
CREATE INDEX evidence_link_by_evidence ON evidence_link (evidence_id);
CREATE TRIGGER camera_event_deleted AFTER DELETE ON camera_event BEGIN
    INSERT OR REPLACE INTO camera_event_gone (id, central_id) VALUES (old.id, old.central_id);
    UPDATE evidence SET garbage = 1 WHERE camera_event_id = old.id;
END;
CREATE TRIGGER evidence_let_go AFTER UPDATE OF garbage ON evidence WHEN new.garbage = 1 BEGIN
    DELETE FROM evidence_link WHERE evidence_id = new.id;
END;
CREATE INDEX outbox_waiting ON outbox (id) WHERE parked = 0;
CREATE INDEX outbox_due ON outbox (parked, next_at, kind, record_id);
CREATE INDEX outbox_by_record ON outbox (kind, record_id, id, parked, action);
CREATE INDEX outbox_urgent ON outbox (id, record_id) WHERE parked = 0 AND kind = 'access_card' AND action <> 'create'
    AND (action <> 'update' OR instr(body, '"status"') > 0 OR instr(body, '"enabled"') > 0);
CREATE INDEX outbox_waits_for ON outbox (waits_for) WHERE waits_for IS NOT NULL;
CREATE INDEX outbox_begun ON outbox (kind, record_id) WHERE begun = 1 AND action = 'create';
CREATE VIEW outbox_size AS SELECT id, 600 + length(CAST(body AS BLOB)) + length(CAST(base AS BLOB)) + file_bytes AS bytes
    FROM outbox;
CREATE UNIQUE INDEX provisional_by_central ON provisional (kind, central_id) WHERE central_id IS NOT NULL;
CREATE INDEX command_open ON command (state) WHERE state IN ('recorded', 'sent', 'acknowledged');
CREATE INDEX recovery_code_by_username ON recovery_code (username);
CREATE INDEX session_by_expiry ON session (expires_at);
CREATE INDEX session_by_username ON session (username);
CREATE INDEX webhook_message_waiting ON webhook_message (webhook_id, next_at, id) WHERE failed = 0;
CREATE INDEX webhook_message_failed ON webhook_message (webhook_id, id) WHERE failed = 1;
CREATE INDEX access_grant_current ON access_grant (number) WHERE revoked_at IS NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('camera_event',2000000000);
INSERT INTO "sqlite_sequence" VALUES('parking_entry',2000000001);
INSERT INTO "sqlite_sequence" VALUES('provisional',1999999999);
INSERT INTO "sqlite_sequence" VALUES('evidence',1999999999);
INSERT INTO "sqlite_sequence" VALUES('event',1);
INSERT INTO "sqlite_sequence" VALUES('passage',1);
INSERT INTO "sqlite_sequence" VALUES('outbox',4);
INSERT INTO "sqlite_sequence" VALUES('segment',1);
COMMIT;
PRAGMA user_version = 8;
