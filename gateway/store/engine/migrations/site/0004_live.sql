-- What a live playlist must know of segments that are gone already (RFC 8216, 6.2.2).
ALTER TABLE segment ADD COLUMN breaks INTEGER NOT NULL DEFAULT 0;        -- discontinuities of its camera up to it
ALTER TABLE footage_chain ADD COLUMN breaks INTEGER NOT NULL DEFAULT 0;  -- of the newest segment
ALTER TABLE footage_chain ADD COLUMN longest INTEGER NOT NULL DEFAULT 0; -- micros of the longest segment there was
