-- Since when each device is known at the site. It follows a device to the id that central gives it.
CREATE TABLE device_since (id INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
INSERT INTO device_since SELECT id, updated_at FROM device;
CREATE TRIGGER device_is_new AFTER INSERT ON device BEGIN
    INSERT OR IGNORE INTO device_since VALUES (new.id, new.updated_at);
END;
-- Devices that programs registered at the site. A removed one is shown no more, whatever central still says of it.
CREATE TABLE registered_device (id INTEGER PRIMARY KEY, removed_at INTEGER) STRICT;
CREATE TRIGGER device_has_centrals_id AFTER UPDATE OF id ON device WHEN old.id <> new.id BEGIN
    INSERT OR REPLACE INTO device_since SELECT new.id, at FROM device_since WHERE id = old.id;
    UPDATE OR REPLACE registered_device SET id = new.id WHERE id = old.id;
END;
