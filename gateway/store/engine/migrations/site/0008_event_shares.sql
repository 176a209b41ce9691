-- How many events each stretch of ids holds, and between which moments they were: in all, by device, by type, and by
-- both. A page deep in the list, a filter's count and a date are found by these, not by counting events.
-- `span` is how many bits of an id a stretch is long. Moments are outer bounds: what is deleted does not narrow them.
CREATE TABLE event_stretch (
    span     INTEGER NOT NULL,
    stretch  INTEGER NOT NULL,                -- id >> span
    count    INTEGER NOT NULL,
    date_min INTEGER NOT NULL,
    date_max INTEGER NOT NULL,
    PRIMARY KEY (span, stretch)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_share (
    span      INTEGER NOT NULL,
    stretch   INTEGER NOT NULL,
    device_id INTEGER NOT NULL,               -- -1: of any device
    type      INTEGER NOT NULL,               -- -1: of any type
    count     INTEGER NOT NULL,
    PRIMARY KEY (span, stretch, device_id, type)
) STRICT, WITHOUT ROWID;

INSERT INTO event_stretch SELECT 12, id >> 12, count(*), min(date_at), max(date_at) FROM event GROUP BY id >> 12;
INSERT INTO event_stretch SELECT 17, stretch >> 5, sum(count), min(date_min), max(date_max)
    FROM event_stretch WHERE span = 12 GROUP BY stretch >> 5;
INSERT INTO event_share SELECT 12, id >> 12, device_id, type, count(*) FROM event GROUP BY id >> 12, device_id, type;
INSERT INTO event_share SELECT 12, stretch, device_id, -1, sum(count) FROM event_share GROUP BY stretch, device_id;
INSERT INTO event_share SELECT 12, stretch, -1, type, sum(count) FROM event_share WHERE type >= 0 GROUP BY stretch, type;
INSERT INTO event_share SELECT 17, stretch >> 5, device_id, type, sum(count)
    FROM event_share WHERE span = 12 GROUP BY stretch >> 5, device_id, type;

-- The stretches know the count of all too.
DROP TRIGGER event_added;
DROP TRIGGER event_removed;
DROP TABLE tally;

CREATE TRIGGER event_shared AFTER INSERT ON event BEGIN
    INSERT INTO event_stretch VALUES
        (12, NEW.id >> 12, 1, NEW.date_at, NEW.date_at),
        (17, NEW.id >> 17, 1, NEW.date_at, NEW.date_at)
        ON CONFLICT DO UPDATE SET count = count + 1,
            date_min = min(date_min, excluded.date_min), date_max = max(date_max, excluded.date_max);
    INSERT INTO event_share VALUES
        (12, NEW.id >> 12, NEW.device_id, -1, 1), (17, NEW.id >> 17, NEW.device_id, -1, 1),
        (12, NEW.id >> 12, -1, NEW.type, 1), (17, NEW.id >> 17, -1, NEW.type, 1),
        (12, NEW.id >> 12, NEW.device_id, NEW.type, 1), (17, NEW.id >> 17, NEW.device_id, NEW.type, 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER event_unshared AFTER DELETE ON event BEGIN
    UPDATE event_stretch SET count = count - 1
        WHERE (span, stretch) IN (VALUES (12, OLD.id >> 12), (17, OLD.id >> 17));
    UPDATE event_share SET count = count - 1
        WHERE (span, stretch, device_id, type) IN (VALUES
            (12, OLD.id >> 12, OLD.device_id, -1), (17, OLD.id >> 17, OLD.device_id, -1),
            (12, OLD.id >> 12, -1, OLD.type), (17, OLD.id >> 17, -1, OLD.type),
            (12, OLD.id >> 12, OLD.device_id, OLD.type), (17, OLD.id >> 17, OLD.device_id, OLD.type));
END;
