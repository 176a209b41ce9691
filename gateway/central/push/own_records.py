"""Check, before a change is sent, that central's id still belongs to the record that this site made.

A central restored from a backup gives ids a second time. A change or deletion by such an id would reach another record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from gateway.central.client.client import CentralClient
from gateway.central.push.delivered_record import read_record
from gateway.central.push.restored_central import RestoreDetector
from gateway.domain.conflicts import READS
from gateway.domain.record_marks import is_still, marks_of
from gateway.domain.writes import CAMERA_EVENT_CREATE, CARD_CREATE, JsonObject
from gateway.store import Store

_SET_BACK = "central was set back to an older state: this waits until 'edge-gateway sync reconcile' has run"


@dataclass(frozen=True, slots=True)
class Look:
    """View of what central has under the id of a record.

    Attributes:
        central_id: central's id.
        made_here: whether central gave the id to a record that was made at this site.
        record: the record that has the id now; None unless central showed one.
    """

    central_id: int
    made_here: bool = False
    record: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRecords:
    """Records that this site made, as central has them now."""

    client: CentralClient
    store: Store
    restore: RestoreDetector

    async def look(self, kind: str, central_id: int, *, wanted: bool = False) -> Look:
        """Look at central's record before it is changed, unless that tells nothing.

        `wanted`: the record is wanted even if it was not made here. Raises CentralUnavailable, StoreError.
        """
        made_here = await self.store.pending_writes.is_made_here(kind, central_id)
        if kind not in READS or not (made_here or wanted):
            return Look(central_id, made_here)
        found = await read_record(self.client, kind, central_id)
        return Look(central_id, made_here, found if isinstance(found, dict) else None)

    async def doubt(self, kind: str, record_id: int, look: Look, *, before: JsonObject | None = None) -> str:
        """Return why central's id may belong to another record now, in a sentence; "" while it belongs to this one.

        If central cannot be asked for the single record, it must have the newest records that this site sent.

        Args:
            kind: the kind of the record.
            record_id: the site's id of the record.
            look: what central showed under its id of the record.
            before: the fields' values before the change that will be sent; for a deleted record, the fields that tell
                it from others.

        Raises CentralUnavailable when central cannot be asked, StoreError.
        """
        if not look.made_here:
            return ""
        known = await self._marks(kind, record_id, before or {}) if kind in READS else ()
        if not known:
            return _SET_BACK if await self.restore.lacks_newest() else ""
        if look.record is None or any(is_still(kind, marks, look.record) for marks in known):
            return ""
        name = f"its id {look.central_id}"
        return f"central has another record under {name}; it may have been set back to an older state"

    async def _marks(self, kind: str, record_id: int, before: JsonObject) -> tuple[JsonObject, ...]:
        """Return the marks of the record as it is at the site, and as it was before the waiting change."""
        record = await self._at_site(kind, record_id)
        marks = [marks_of(kind, one) for one in (record, record | before)]
        return tuple(one for place, one in enumerate(marks) if one and one not in marks[:place])

    async def _at_site(self, kind: str, record_id: int) -> JsonObject:
        if kind == CARD_CREATE.kind:
            text = (await self.store.cards.records_of((record_id,))).get(record_id)
            return {} if text is None else json.loads(text)
        if kind == CAMERA_EVENT_CREATE.kind:
            return next((one.body for one in await self.store.delivered_records.of("camera_event", (record_id,))), {})
        return await self.store.pending_writes.record(kind, record_id) or {}
