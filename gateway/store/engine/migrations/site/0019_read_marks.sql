-- When an event was recorded, where that was well after it happened; NULL: at once.
ALTER TABLE event ADD COLUMN recorded_at INTEGER;

-- How far who pulls a list by cursor has read it. Written seldom: it may be too low, never too high.
CREATE TABLE read_mark (
    id        INTEGER PRIMARY KEY,
    account   TEXT NOT NULL,
    list      TEXT NOT NULL,                  -- event, camera_event or entry
    filter    TEXT NOT NULL,                  -- what of the list is read; '' for all of it
    read_to   INTEGER NOT NULL,               -- everything up to this id was fetched
    read_at   INTEGER NOT NULL,               -- wall micros of the last page that was asked for
    began_at  INTEGER NOT NULL,
    UNIQUE (account, list, filter)
) STRICT;
