-- Whether central asks the account for a second factor. Such a one is never let in from what is remembered, but it is told
-- why: a right password is no wrong one.
ALTER TABLE remembered ADD COLUMN mfa INTEGER NOT NULL DEFAULT 0;
