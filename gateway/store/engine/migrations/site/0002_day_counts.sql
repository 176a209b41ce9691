-- How much of what happened on each day of the site's calendar, for trends over weeks. Events expire; this stays longer.
CREATE TABLE day_count (
    day     TEXT NOT NULL,                    -- YYYY-MM-DD in the site's time zone
    measure TEXT NOT NULL,                    -- see gateway.domain.day_counts
    part    TEXT NOT NULL,                    -- the lane, device or camera, or the line and the unit on it
    amount  INTEGER NOT NULL,
    PRIMARY KEY (day, measure, part)
) STRICT, WITHOUT ROWID;
-- Up to which event they are counted: one row.
CREATE TABLE day_counted (event_id INTEGER NOT NULL) STRICT;
INSERT INTO day_counted VALUES (0);
