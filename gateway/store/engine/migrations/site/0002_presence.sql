-- How many are in each area, and when it was last opened to everybody. Changed with the passage or correction that says so.
CREATE TABLE area (
    area_id   TEXT PRIMARY KEY,
    count     INTEGER NOT NULL,
    opened_at INTEGER
) STRICT;

-- Into which area a holder passed last; '' is outside.
CREATE TABLE holder (
    holder  TEXT PRIMARY KEY,
    area_id TEXT NOT NULL,
    since   INTEGER NOT NULL
) STRICT;
