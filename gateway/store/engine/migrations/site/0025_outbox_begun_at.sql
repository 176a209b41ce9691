-- When a row that may have reached central was sent, by central's clock (micros). NULL: nobody knows.
ALTER TABLE outbox ADD COLUMN begun_at INTEGER;
