-- What is done to the record; with its kind it names the operation that delivers it.
ALTER TABLE outbox ADD COLUMN action TEXT NOT NULL DEFAULT 'create';
-- 1: it may have reached central, whatever became of the answer.
ALTER TABLE outbox ADD COLUMN begun INTEGER NOT NULL DEFAULT 0;
UPDATE outbox SET begun = 1 WHERE tries > 0;

-- Ids of records that were made at the site, and the id that central gave each later.
CREATE TABLE provisional (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL,
    central_id INTEGER
) STRICT;
CREATE UNIQUE INDEX provisional_by_central ON provisional (kind, central_id) WHERE central_id IS NOT NULL;
INSERT INTO sqlite_sequence (name, seq) VALUES ('provisional', 1999999999);
