-- What the fields of a waiting change were at the site before it, as JSON: what central should still have. '' for none.
ALTER TABLE outbox ADD COLUMN base TEXT NOT NULL DEFAULT '';
