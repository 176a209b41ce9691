-- Who may sign in beside the site file's accounts, what each role may do, and the keys of programs.
CREATE TABLE role (
    name        TEXT PRIMARY KEY,
    permissions TEXT NOT NULL                 -- a JSON array of the interface's names, or ["*"]
) STRICT;
INSERT INTO role VALUES
    ('administrator', '["*"]'),
    ('operator', '["can_add_camera_events","can_add_entries","can_control_devices","can_edit_camera_events","can_edit_entries","can_view_access_cards","can_view_camera_events","can_view_cameras","can_view_devices","can_view_entries","can_view_events","can_view_guests"]'),
    ('viewer', '["can_view_access_cards","can_view_camera_events","can_view_cameras","can_view_devices","can_view_entries","can_view_events","can_view_guests"]');
CREATE TABLE account (
    username      TEXT PRIMARY KEY,
    password_hash TEXT NOT NULL,              -- argon2id
    role          TEXT NOT NULL,
    disabled      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    totp_secret   TEXT NOT NULL DEFAULT '',   -- base32; '' for no second factor
    totp_step     INTEGER NOT NULL DEFAULT 0  -- the half minute of the last code that was used: none counts twice
) STRICT;
CREATE TABLE recovery_code (
    code_hash BLOB PRIMARY KEY,               -- SHA-256; a code is gone once it is used
    username  TEXT NOT NULL
) STRICT;
CREATE INDEX recovery_code_by_username ON recovery_code (username);
CREATE TABLE api_key (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    key_hash    BLOB NOT NULL UNIQUE,         -- SHA-256 of the key; the key itself is nowhere
    permissions TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER                       -- NULL: never
) STRICT;
-- Central's accounts that have signed in here: what they need to do so for some days while central is away.
CREATE TABLE remembered (
    username      TEXT PRIMARY KEY,
    password_hash TEXT NOT NULL,
    role          TEXT NOT NULL,
    permissions   TEXT NOT NULL,
    verified_at   INTEGER NOT NULL
) STRICT;
-- Of whom a session is. A central account's role and permissions are as they were when it signed in.
ALTER TABLE session ADD COLUMN central INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN mfa_pending INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN permissions TEXT NOT NULL DEFAULT '[]';
CREATE INDEX session_by_username ON session (username);
