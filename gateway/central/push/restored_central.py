"""Detection of a central restored from a backup: it lacks what this site sent since, and gives ids a second time.

A change or deletion by such an id would reach another record. So before a change is sent, `OwnRecords` checks that
central's id still belongs to the record that this site made.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

import structlog

from gateway.central.client.client import CentralClient
from gateway.central.push.delivered_record import read_record
from gateway.central.push.lost_records import LostRecords
from gateway.domain.conflicts import READS
from gateway.domain.errors import CentralUnavailable
from gateway.domain.events import Event, EventKind
from gateway.domain.record_match import is_still, lookup_of, marks_of
from gateway.domain.writes import CAMERA_EVENT_CREATE, CARD_CREATE, JsonObject
from gateway.runtime.clock import Clock
from gateway.store import Entry, EventFilter, OutboxRow, Store
from gateway.texts import text

log = structlog.get_logger(__name__)

_SINCE = "central_set_back"
_RECONCILED = "reconciled_to_event"

_SET_BACK = "central was set back to an older state: this waits until 'edge-gateway sync reconcile' has run"


class RestoreDetector:
    """Detector of a restored central, by records that central should have.

    An event reports it when two searches in a row miss such records; `suspected` is true from the first search on.

    Attributes:
        since: when it was reported (wall micros), None if it was not. It is kept on disk until a comparison is done.
    """

    def __init__(self, *, lost_records: LostRecords, store: Store, clock: Clock) -> None:
        self._lost_records = lost_records
        self._delivered_records = store.delivered_records
        self._notes = store.notes
        self._store = store
        self._clock = clock
        self._turn = asyncio.Lock()
        self._fell = False
        self._recalled = False
        self._reconciled_to = 0
        self._missed = False
        self.since: int | None = None

    @property
    def suspected(self) -> bool:
        """True while central may have lost records: then records made here stay though central lacks them."""
        return self._missed or self.since is not None

    async def check(self) -> None:
        """Search for delivered records; report once when they are lost.

        While central does not answer, nothing changes. Raises StoreError.
        """
        self._fell = False
        await self._look()

    async def on_given(self, row: OutboxRow, central_id: int | None) -> None:
        """Search at once if central gave a new record an id that is not above all earlier ones.

        An older state of central gives ids again. Done once between two checks. Raises StoreError.
        """
        if central_id is None or row.newest_before is None or central_id > row.newest_before:
            return
        if lookup_of(row.kind).is_long and not (self._fell or self.suspected):
            self._fell = True
            log.warning("central_id_fell_back", kind=row.kind, central_id=central_id, highest=row.newest_before)
            await self._look()

    async def _look(self) -> None:
        async with self._turn:
            try:
                await self._check()
            finally:
                self._store.pending_writes.set_back = self.suspected

    async def _check(self) -> None:
        await self._recall()
        if self.since is not None:
            return
        if await self._delivered_records.id_given_twice_after(self._reconciled_to):
            await self._begin("it gave an id a second time")
            return
        try:
            lost = await self._lost_records.search()
            if not lost:
                await self._lost_records.note_found()
        except CentralUnavailable as error:
            log.debug("not_looked_for_what_was_sent", error=str(error))
            return
        missed, self._missed = self._missed, bool(lost)
        if lost and missed:
            await self._begin(f"it no longer has the records that this site sent last ({lost})")

    async def lacks_newest(self) -> bool:
        """Return whether central lacks the site's newest records. Raises CentralUnavailable, StoreError."""
        await self._recall()
        if self.suspected or await self._delivered_records.id_given_twice_after(self._reconciled_to):
            return True
        return bool(await self._lost_records.search())

    async def on_reconciled(self) -> None:
        """Store that central has everything again. Raises StoreError."""
        page = await self._store.events.page(EventFilter(), limit=1)
        newest = page.events[0].id if page.events else 0
        await self._notes.remember(_RECONCILED, str(newest))
        await self._notes.remember(_SINCE, "")
        self._reconciled_to, self.since, self._missed = newest, None, False
        self._store.pending_writes.set_back = False
        self._store.changes.bump()

    async def _recall(self) -> None:
        if self._recalled:
            return
        noted, since = await self._notes.remembered(_RECONCILED), await self._notes.remembered(_SINCE)
        self._reconciled_to = int(noted) if noted else 0
        self.since = int(since) if since else None
        self._recalled = True

    async def _begin(self, why: str) -> None:
        now = self._clock.wall()
        said = text("event.central_set_back", why=why)
        event = Event(kind=EventKind.CENTRAL_SET_BACK, date_at=now.micros, clock_trusted=now.trusted, text=said)
        await self._store.journal.record(Entry(events=(event,)))
        await self._notes.remember(_SINCE, str(now.micros))
        self.since = now.micros
        log.warning("central_set_back", reason=why)


@dataclass(frozen=True, slots=True)
class CentralView:
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

    async def look(self, kind: str, central_id: int, *, wanted: bool = False) -> CentralView:
        """Look at central's record before it is changed, unless that tells nothing.

        `wanted`: the record is wanted even if it was not made here. Raises CentralUnavailable, StoreError.
        """
        made_here = await self.store.pending_writes.is_made_here(kind, central_id)
        if kind not in READS or not (made_here or wanted):
            return CentralView(central_id, made_here)
        found = await read_record(self.client, kind, central_id)
        return CentralView(central_id, made_here, found if isinstance(found, dict) else None)

    async def doubt(self, kind: str, record_id: int, look: CentralView, *, before: JsonObject | None = None) -> str:
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
