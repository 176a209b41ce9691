-- Whether an earlier row of the same record holds up a later one is read from the index alone.
DROP INDEX outbox_by_record;
CREATE INDEX outbox_by_record ON outbox (kind, record_id, id, parked, action);
