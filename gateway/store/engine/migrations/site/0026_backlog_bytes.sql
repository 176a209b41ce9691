-- How many bytes the file has that goes up with a row; it waits on the disk as the row does.
ALTER TABLE outbox ADD COLUMN file_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE outbox SET file_bytes = coalesce((SELECT size FROM exhibit WHERE exhibit.id = outbox.record_id), 0)
    WHERE kind = 'evidence';
DROP INDEX outbox_asked;
ALTER TABLE outbox DROP COLUMN asked_bytes;
-- Writes that may have reached central are few; each page of a pull asks for those of its kind.
CREATE INDEX outbox_begun ON outbox (kind, record_id) WHERE begun = 1 AND action = 'create';

-- What a waiting row takes on the disk: its texts, its file, and 600 bytes for its numbers and its places in the indexes.
CREATE VIEW outbox_size AS SELECT id, 600 + length(CAST(body AS BLOB)) + length(CAST(base AS BLOB)) + file_bytes AS bytes
    FROM outbox;
-- The sum of these. Every step that adds, changes or takes out rows keeps it, so that no write has to add it up.
CREATE TABLE backlog (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    bytes INTEGER NOT NULL
) STRICT;
INSERT INTO backlog (id, bytes) SELECT 1, coalesce(sum(bytes), 0) FROM outbox_size;
