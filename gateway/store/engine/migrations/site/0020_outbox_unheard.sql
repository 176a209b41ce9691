-- Whether a row waits because central did not answer: then it goes as soon as central does.
ALTER TABLE outbox ADD COLUMN unheard INTEGER NOT NULL DEFAULT 0;
