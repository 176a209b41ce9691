-- Files that people added to camera events. A row is made when its file is whole on disk, and goes after it.
CREATE TABLE exhibit (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    camera_event_id INTEGER NOT NULL,
    name            TEXT NOT NULL,
    description     TEXT NOT NULL,
    kept_as         TEXT NOT NULL,               -- transaction or incident
    media_type      TEXT NOT NULL,               -- what the bytes say
    size            INTEGER NOT NULL,
    sha256          TEXT NOT NULL,
    file            TEXT NOT NULL UNIQUE,        -- in the folder of exhibits
    created_at      INTEGER NOT NULL,
    clock_trusted   INTEGER NOT NULL,
    username        TEXT NOT NULL,
    kept_from       INTEGER,                     -- its days count from then; NULL: no trusted clock has said yet
    central_id      INTEGER,
    delivered       INTEGER NOT NULL DEFAULT 0,  -- 1: central has it
    missing         INTEGER NOT NULL DEFAULT 0,  -- 1: the file is not there
    garbage         INTEGER NOT NULL DEFAULT 0   -- 1: the file is to be deleted, the row after it
) STRICT;
CREATE INDEX exhibit_by_camera_event ON exhibit (camera_event_id);
CREATE INDEX exhibit_by_central ON exhibit (central_id) WHERE central_id IS NOT NULL;
CREATE INDEX exhibit_garbage ON exhibit (id) WHERE garbage = 1;
INSERT INTO sqlite_sequence (name, seq) VALUES ('exhibit', 1999999999);

CREATE TABLE exhibit_link (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    exhibit_id   INTEGER NOT NULL,
    token_hash   BLOB NOT NULL UNIQUE,           -- SHA-256 of the token; the token itself is nowhere
    username     TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    revoked_at   INTEGER
) STRICT;
CREATE INDEX exhibit_link_by_exhibit ON exhibit_link (exhibit_id);

-- Camera events that were deleted here, with central's id: it has to be told which.
CREATE TABLE camera_event_gone (
    id         INTEGER PRIMARY KEY,
    central_id INTEGER
) STRICT;

-- Whoever deletes a camera event lets go of what was added to it.
CREATE TRIGGER camera_event_deleted AFTER DELETE ON camera_event BEGIN
    INSERT OR REPLACE INTO camera_event_gone (id, central_id) VALUES (old.id, old.central_id);
    UPDATE exhibit SET garbage = 1 WHERE camera_event_id = old.id;
END;
CREATE TRIGGER exhibit_let_go AFTER UPDATE OF garbage ON exhibit WHEN new.garbage = 1 BEGIN
    DELETE FROM exhibit_link WHERE exhibit_id = new.id;
END;
