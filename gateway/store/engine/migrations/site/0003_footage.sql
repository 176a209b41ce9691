-- How a segment stands in its camera's chain (see gateway.domain.footage_chain), and when it was by both clocks.
ALTER TABLE segment ADD COLUMN frames INTEGER NOT NULL DEFAULT 0;     -- 0: not known
ALTER TABLE segment ADD COLUMN sha256 BLOB;                           -- of the file as it was written; NULL: not known yet
ALTER TABLE segment ADD COLUMN number INTEGER;                        -- its place in the chain; NULL: not linked yet
ALTER TABLE segment ADD COLUMN previous BLOB;                         -- the link before it
ALTER TABLE segment ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';      -- of the machine's run that `monotonic` counts in
ALTER TABLE segment ADD COLUMN monotonic INTEGER NOT NULL DEFAULT 0;  -- micros of the first frame
CREATE INDEX segment_unlinked ON segment (id) WHERE number IS NULL;
CREATE INDEX segment_by_number ON segment (camera_id, number) WHERE number IS NOT NULL;
CREATE INDEX segment_untrusted ON segment (boot_id) WHERE clock_trusted = 0;

-- The newest link of each camera, which outlives its segments.
CREATE TABLE footage_chain (
    camera_id INTEGER PRIMARY KEY,
    number    INTEGER NOT NULL,
    link      BLOB NOT NULL
) STRICT;

ALTER TABLE camera_event ADD COLUMN incident INTEGER NOT NULL DEFAULT 0;      -- 1: something went wrong; kept for longer
ALTER TABLE camera_event ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';
ALTER TABLE camera_event ADD COLUMN clock_offset INTEGER NOT NULL DEFAULT 0;  -- wall micros minus monotonic ones
UPDATE camera_event SET incident = 1
    WHERE event_id IN (SELECT id FROM event WHERE subcategory >= 2 AND id = camera_event.event_id);
CREATE INDEX camera_event_untrusted ON camera_event (boot_id) WHERE clock_trusted = 0;
