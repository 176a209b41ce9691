-- The passwords of the site file's accounts as they were, so that another one ends the sessions of the old.
CREATE TABLE site_file_account (
    username      TEXT PRIMARY KEY,
    password_hash TEXT NOT NULL               -- argon2id
) STRICT;
