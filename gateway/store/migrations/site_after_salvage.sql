-- The books: what is in the outbox no more and was not delivered counts as dropped.
UPDATE book SET count = max(count, (SELECT sum(count) FROM book WHERE name IN ('delivered', 'dropped'))
    + (SELECT count(*) FROM outbox)) WHERE name = 'accepted';
UPDATE book SET count = (SELECT count FROM book WHERE name = 'accepted')
    - (SELECT count FROM book WHERE name = 'delivered') - (SELECT count(*) FROM outbox) WHERE name = 'dropped';
UPDATE tally SET count = (SELECT count(*) FROM event) WHERE name = 'event';
-- A session that was ended, or an account that central has refused since, must not come back with older rows.
DELETE FROM session;
DELETE FROM remembered;
-- Links may have been lost: the jump says that what follows cannot be proven from what was before.
UPDATE footage_chain SET number = 1000000 + max(number,
    coalesce((SELECT max(number) FROM segment WHERE segment.camera_id = footage_chain.camera_id), 0));
-- The same for each webhook's books: what is gone and was not delivered counts as dropped.
UPDATE webhook SET accepted = max(accepted, delivered + failed + dropped
    + (SELECT count(*) FROM webhook_message WHERE webhook_id = webhook.id AND webhook_message.failed = 0));
UPDATE webhook SET dropped = accepted - delivered - failed
    - (SELECT count(*) FROM webhook_message WHERE webhook_id = webhook.id AND webhook_message.failed = 0);
DELETE FROM webhook_message WHERE webhook_id NOT IN (SELECT id FROM webhook);
DELETE FROM webhook_type WHERE webhook_id NOT IN (SELECT id FROM webhook);
