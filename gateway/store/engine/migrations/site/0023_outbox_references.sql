-- The site's id of a record that a row names and that has to go up before it.
ALTER TABLE outbox ADD COLUMN waits_for INTEGER;
CREATE INDEX outbox_waits_for ON outbox (waits_for) WHERE waits_for IS NOT NULL;
