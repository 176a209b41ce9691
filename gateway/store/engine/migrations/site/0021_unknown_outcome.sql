-- Of a row that may have reached central: the highest id that central was known to have given to its kind before that.
-- What central has below it is older, and so not of this row. NULL: nobody knows.
ALTER TABLE outbox ADD COLUMN newest_before INTEGER;
-- What a person said of it: the id under which central has it.
ALTER TABLE outbox ADD COLUMN taken_as INTEGER;
-- A row that central refused has not been carried out. From here on `begun` and `parked` together mean that nobody knows.
UPDATE outbox SET begun = 0 WHERE parked = 1;
-- Rows that newer content of the same record took the place of: they have lost nothing, and count apart from dropped ones.
INSERT INTO book VALUES ('replaced', 0);
