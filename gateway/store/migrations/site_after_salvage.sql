-- The books: what is in the outbox no more and was not delivered counts as dropped.
UPDATE book SET count = max(count, (SELECT sum(count) FROM book WHERE name IN ('delivered', 'dropped'))
    + (SELECT count(*) FROM outbox)) WHERE name = 'accepted';
UPDATE book SET count = (SELECT count FROM book WHERE name = 'accepted')
    - (SELECT count FROM book WHERE name = 'delivered') - (SELECT count(*) FROM outbox) WHERE name = 'dropped';
UPDATE tally SET count = (SELECT count(*) FROM event) WHERE name = 'event';
-- A session that was ended must not come back with older rows.
DELETE FROM session;
-- Links may have been lost: the jump says that what follows cannot be proven from what was before.
UPDATE footage_chain SET number = 1000000 + max(number,
    coalesce((SELECT max(number) FROM segment WHERE segment.camera_id = footage_chain.camera_id), 0));
-- Nor may a link that was taken back.
DELETE FROM exhibit_link;
