-- What may take a card's right away goes first.
CREATE INDEX outbox_urgent ON outbox (id, record_id) WHERE parked = 0 AND kind = 'access_card' AND action <> 'create'
    AND (action <> 'update' OR instr(body, '"status"') > 0 OR instr(body, '"enabled"') > 0);
