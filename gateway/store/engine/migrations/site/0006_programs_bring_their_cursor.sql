-- Programs that pull a list bring their own cursor, and nothing is kept for them. Only the fleet's line and the mirror
-- have a read mark.
DELETE FROM read_cursor WHERE (account, filter) NOT IN (VALUES ('fleet', 'stream'), ('mqtt', 'mirror'));
