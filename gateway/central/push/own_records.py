"""Check, before a change is sent, that central's id still belongs to the record that this site made.

A central restored from a backup gives ids a second time. A change or deletion by such an id would reach another record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from gateway.central.client.client import CentralClient
from gateway.central.push.delivered_record import RecordState, record_state
from gateway.central.push.restored_central import RestoreDetector
from gateway.domain.conflicts import READS
from gateway.domain.record_marks import marks_of
from gateway.domain.writes import CAMERA_EVENT_CREATE, CARD_CREATE, JsonObject
from gateway.store.cards.cards import Cards
from gateway.store.outbox.delivered_records import DeliveredRecords
from gateway.store.outbox.pending_writes import PendingWrites

_SET_BACK = "central was set back to an older state: this waits until 'edge-gateway sync reconcile' has run"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRecords:
    """Records that this site made, as central has them now."""

    client: CentralClient
    pending_writes: PendingWrites
    delivered_records: DeliveredRecords
    cards: Cards
    restore: RestoreDetector

    async def doubt(self, kind: str, record_id: int, central_id: int, *, before: JsonObject | None = None) -> str:
        """Return why central's id may belong to another record now, in a sentence; "" while it belongs to this one.

        If central cannot be asked for the single record, it must have the newest records that this site sent.

        Args:
            kind: the kind of the record.
            record_id: the site's id of the record.
            central_id: central's id of the record.
            before: the fields' values before the change that will be sent; for a deleted record, the fields that tell
                it from others.

        Raises CentralUnavailable when central cannot be asked, StoreError.
        """
        if not await self.pending_writes.is_made_here(kind, central_id):
            return ""
        known = await self._marks(kind, record_id, before or {}) if kind in READS else ()
        if not known:
            return _SET_BACK if await self.restore.lacks_newest() else ""
        for marks in known:
            if await record_state(self.client, kind, central_id, marks) is not RecordState.OTHER:
                return ""
        return f"central has another record under its id {central_id}; it may have been set back to an older state"

    async def _marks(self, kind: str, record_id: int, before: JsonObject) -> tuple[JsonObject, ...]:
        """Return the marks of the record as it is at the site, and as it was before the waiting change."""
        record = await self._at_site(kind, record_id)
        marks = [marks_of(kind, one) for one in (record, record | before)]
        return tuple(one for place, one in enumerate(marks) if one and one not in marks[:place])

    async def _at_site(self, kind: str, record_id: int) -> JsonObject:
        if kind == CARD_CREATE.kind:
            text = (await self.cards.records_of((record_id,))).get(record_id)
            return {} if text is None else json.loads(text)
        if kind == CAMERA_EVENT_CREATE.kind:
            return next((one.body for one in await self.delivered_records.of("camera_event", (record_id,))), {})
        return await self.pending_writes.record(kind, record_id) or {}
