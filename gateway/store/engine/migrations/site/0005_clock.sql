-- By how much wall time is ahead of monotonic time in a run of the machine, once that was known: what was stamped before
-- is put right by it.
CREATE TABLE clock_offset (
    boot_id TEXT PRIMARY KEY,
    micros  INTEGER NOT NULL
) STRICT;
