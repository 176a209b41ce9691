-- Pins by the time that nobody sets: the clock may have been set between an event and its footage.
CREATE INDEX camera_event_by_uptime
    ON camera_event (camera_id, boot_id, pinned_from - clock_offset, pinned_until - clock_offset, clock_offset)
    WHERE boot_id <> '';
