"""Changes that waited while central's record may have changed too. For the rules see `gateway.domain.conflicts`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.central.push.events import OutboxEvents
from gateway.central.push.requests import DeliveryRequest
from gateway.central.site_cards import KIND as CARD
from gateway.central.site_cards import SiteCards
from gateway.domain.conflicts import settle
from gateway.domain.writes import Effect, JsonObject
from gateway.store import OutboxRow
from gateway.store.outbox.rows import body_object


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictingChanges:
    """Comparison of a waiting change with central's record, right before the change is sent."""

    cards: SiteCards
    events: OutboxEvents

    async def settle(
        self, row: OutboxRow, request: DeliveryRequest, theirs: JsonObject | None
    ) -> tuple[OutboxRow, DeliveryRequest] | None:
        """Compare a change with central's record; return the part to send, None when nothing is left of it.

        `theirs`: the record as central has it now, None if it did not show it. Raises StoreError.
        """
        base = base_of(row)
        if not base or theirs is None or request.operation.effect is not Effect.CHANGE:
            return row, request
        base = (await self.cards.store.references.resolve(base)).body
        settled = settle(request.operation, request.body, base, theirs)
        if settled.body == request.body and not settled.conflicts:
            return row, request
        if settled.conflicts:
            await self.events.conflicts(row, settled.conflicts)
        async with self.cards.turn:
            now = self.cards.clock.wall().micros
            left = await self.cards.store.change_bases.settled(row, settled, theirs, now=now)
            if row.kind == CARD:
                record: JsonObject = {**theirs, "id": row.record_id}
                await self.cards.settle(request.operation, row.record_id, record, sent={}, formerly=row.record_id)
        return None if left is None else (left, replace(request, body=settled.body))


def base_of(row: OutboxRow) -> JsonObject:
    """Return the values of a change's fields before the change, {} if they are unknown."""
    return (body_object(row.base) if row.base else None) or {}
