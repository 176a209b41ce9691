"""Detection of a central restored from a backup: it lacks what this site sent since, and gives ids a second time."""

from __future__ import annotations

import asyncio

import structlog

from gateway.central.push.lost_records import LostRecords
from gateway.domain.errors import CentralUnavailable
from gateway.domain.events import Event, EventKind
from gateway.domain.record_marks import lookup_of
from gateway.runtime.clock import Clock
from gateway.store import Entry, EventFilter, OutboxRow, Store

log = structlog.get_logger(__name__)

_SINCE = "central_set_back"
_RECONCILED = "reconciled_to_event"


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
        text = (
            f"central was set back to an older state: {why}. To send again what this site has sent since,"
            " run edge-gateway sync reconcile"
        )
        event = Event(kind=EventKind.CENTRAL_SET_BACK, date_at=now.micros, clock_trusted=now.trusted, description=text)
        await self._store.journal.record(Entry(events=(event,)))
        await self._notes.remember(_SINCE, str(now.micros))
        self.since = now.micros
        log.warning("central_set_back", reason=why)
