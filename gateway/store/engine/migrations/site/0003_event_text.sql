-- An index for searches in the text of events, by blocks of 2**14 ids; see gateway.store.events.text_index.
-- It is filled in idle time. A block without a row in event_text_block is searched by reading its events.
CREATE TABLE event_text (
    place INTEGER PRIMARY KEY,                -- the block's number << 20, plus a hash of three letters or digits
    ids   BLOB NOT NULL                       -- which events of the block have them: 16-bit numbers, or a bit for each event
) STRICT;
CREATE TABLE event_text_block (number INTEGER PRIMARY KEY) STRICT;
