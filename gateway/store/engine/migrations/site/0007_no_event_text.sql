-- Searches read the text of events itself; the index of it is not used any more.
DROP TABLE event_text_block;
DROP TABLE event_text;
