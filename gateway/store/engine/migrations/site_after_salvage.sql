-- The books: what is in the outbox no more and was neither delivered nor replaced counts as dropped.
UPDATE book SET count = max(count, (SELECT sum(count) FROM book WHERE name IN ('delivered', 'replaced', 'dropped'))
    + (SELECT count(*) FROM outbox)) WHERE name = 'accepted';
UPDATE book SET count = (SELECT count FROM book WHERE name = 'accepted')
    - (SELECT sum(count) FROM book WHERE name IN ('delivered', 'replaced')) - (SELECT count(*) FROM outbox)
    WHERE name = 'dropped';
-- Counts per range of ids, as the step that made these tables counts it.
DELETE FROM event_range;
DELETE FROM event_range_count;
INSERT INTO event_range SELECT 12, id >> 12, count(*), min(date_at), max(date_at) FROM event GROUP BY id >> 12;
INSERT INTO event_range SELECT 17, number >> 5, sum(count), min(date_min), max(date_max)
    FROM event_range WHERE span = 12 GROUP BY number >> 5;
INSERT INTO event_range_count SELECT 12, id >> 12, device_id, type, count(*) FROM event GROUP BY id >> 12, device_id, type;
INSERT INTO event_range_count SELECT 12, number, device_id, -1, sum(count) FROM event_range_count GROUP BY number, device_id;
INSERT INTO event_range_count SELECT 12, number, -1, type, sum(count) FROM event_range_count WHERE type >= 0 GROUP BY number, type;
INSERT INTO event_range_count SELECT 17, number >> 5, device_id, type, sum(count)
    FROM event_range_count WHERE span = 12 GROUP BY number >> 5, device_id, type;
-- A session that was ended, or an account that central has refused since, must not come back with older rows.
-- Accounts, roles, keys, grants and webhooks are put right from access.log (access_log.py).
DELETE FROM session;
DELETE FROM remembered;
-- Links may have been lost: the jump says that what follows cannot be proven from what was before.
UPDATE footage_chain SET number = 1000000 + max(number,
    coalesce((SELECT max(number) FROM segment WHERE segment.camera_id = footage_chain.camera_id), 0));
-- Nor may a link that was taken back.
DELETE FROM evidence_link;
-- The same for each webhook's books: what is gone and was not delivered counts as dropped.
UPDATE webhook SET accepted = max(accepted, delivered + failed + dropped
    + (SELECT count(*) FROM webhook_message WHERE webhook_id = webhook.id AND webhook_message.failed = 0));
UPDATE webhook SET dropped = accepted - delivered - failed
    - (SELECT count(*) FROM webhook_message WHERE webhook_id = webhook.id AND webhook_message.failed = 0);
DELETE FROM webhook_message WHERE webhook_id NOT IN (SELECT id FROM webhook);
DELETE FROM webhook_type WHERE webhook_id NOT IN (SELECT id FROM webhook);
-- Better an event that no trend counts than one that is counted twice.
INSERT INTO day_counted SELECT coalesce(max(id), 0) FROM event WHERE NOT EXISTS (SELECT 1 FROM day_counted);
