-- How many bytes a waiting write has that somebody asked for; 0 for what the site sends of itself, which is not bounded.
ALTER TABLE outbox ADD COLUMN asked_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE outbox SET asked_bytes = max(1, length(body)) WHERE kind IN ('access_card', 'device', 'camera');
CREATE INDEX outbox_asked ON outbox (asked_bytes) WHERE asked_bytes > 0;
