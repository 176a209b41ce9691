-- The key and the arguments of an event's description as JSON text; NULL for words of others and for earlier events.
ALTER TABLE event ADD COLUMN said TEXT;
