-- The kind of entry point that a segment begins with: 'idr', 'recovery' (some pictures need what came before) or 'none'.
ALTER TABLE segment ADD COLUMN entry TEXT NOT NULL DEFAULT 'idr';
-- Micros from its start until pictures are whole when decoding begins there.
ALTER TABLE segment ADD COLUMN whole_after INTEGER NOT NULL DEFAULT 0;
