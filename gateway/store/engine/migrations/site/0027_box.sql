-- The number of this data folder, drawn once: it tells its records at central from those of another box of the site.
CREATE TABLE box (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL CHECK (number BETWEEN 1 AND 1048575)
) STRICT;
INSERT INTO box (id, number) VALUES (1, 1 + abs(random() % 1048575));

-- Under which box's number a record goes up. 0: made before boxes had numbers.
ALTER TABLE camera_event ADD COLUMN box INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parking_entry ADD COLUMN box INTEGER NOT NULL DEFAULT 0;
