"""Changes that waited while central's record may have changed too. For the rules see `gateway.domain.conflicts`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.central.client.client import CentralClient
from gateway.central.client.not_found import NOT_FOUND
from gateway.central.push.events import OutboxEvents
from gateway.central.push.requests import DeliveryRequest, answered_record
from gateway.central.site_cards import KIND as CARD
from gateway.central.site_cards import SiteCards
from gateway.domain.conflicts import READS, settle
from gateway.domain.errors import CentralRefused
from gateway.domain.writes import Effect, JsonObject
from gateway.runtime.clock import Clock
from gateway.store import OutboxRow, References
from gateway.store.outbox.conflicts import ChangeBases


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictingChanges:
    """Comparison of a waiting change with central's record, right before the change is sent."""

    client: CentralClient
    change_bases: ChangeBases
    references: References
    clock: Clock
    cards: SiteCards
    events: OutboxEvents

    async def settle(self, row: OutboxRow, request: DeliveryRequest) -> tuple[OutboxRow, DeliveryRequest] | None:
        """Compare a change with central's record; return the part to send, None when nothing is left of it.

        Raises what the client raises, CentralRefused when central has no such record, and StoreError.
        """
        base = await self.change_bases.base(row) if request.operation.effect is Effect.CHANGE else {}
        if not base:
            return row, request
        theirs = await self._at_central(request)
        if theirs is None:
            return row, request
        base = (await self.references.resolve(base)).body
        settled = settle(request.operation, request.body, base, theirs)
        if settled.body == request.body and not settled.conflicts:
            return row, request
        if settled.conflicts:
            await self.events.conflicts(row, settled.conflicts)
        async with self.cards.turn:
            now = self.clock.wall().micros
            left = await self.change_bases.settled(row, settled, theirs, now=now)
            if row.kind == CARD:
                await self.cards.settle(request.operation, row.record_id, {**theirs, "id": row.record_id})
        return None if left is None else (left, replace(request, body=settled.body))

    async def _at_central(self, request: DeliveryRequest) -> JsonObject | None:
        """Return central's present record of a change; None when the gateway's account may not read it."""
        operation = request.operation
        try:
            answer = await self.client.call("POST", READS[operation.kind], {"id": request.body["id"]})
        except CentralRefused as error:
            if error.status in (0, NOT_FOUND):
                raise
            return None
        return answered_record(answer, operation.resources)
