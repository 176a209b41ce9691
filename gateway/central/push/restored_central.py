"""Detection of a central that was restored from a backup: it lacks what this site sent since, and gives ids again."""

from __future__ import annotations

import structlog

from gateway.central.client.client import CentralClient
from gateway.central.client.list_proof import read_listing
from gateway.central.push.delivered_record import RecordState, is_still, lookup_of, marks_of, record_state
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import Clock
from gateway.store import Changes, Entry, EventFilter, Journal, Store
from gateway.store.cards.cards import Cards
from gateway.store.events.events import Events
from gateway.store.outbox.delivered_records import DeliveredRecord, DeliveredRecords

log = structlog.get_logger(__name__)

_SINCE = "central_set_back"
_RECONCILED = "reconciled_to_event"
_NEWEST = 3
_FEWEST = 2
"""The fewest missing records that count: a single one may have been deleted at central."""
_RECENT = 7 * 86_400 * 1_000_000
_PAGE = 100


class RestoreDetector:
    """Search for records that central should have; a note on the disk says since when they are gone.

    An event reports it when two searches in a row do not find them; `suspected` is true from the first on.
    """

    def __init__(
        self,
        *,
        client: CentralClient,
        delivered_records: DeliveredRecords,
        notes: Cards,
        events: Events,
        journal: Journal,
        changes: Changes,
        clock: Clock,
    ) -> None:
        self._client = client
        self._delivered_records = delivered_records
        self._notes = notes
        self._events = events
        self._journal = journal
        self._changes = changes
        self._clock = clock
        self._recalled = False
        self._reconciled_to = 0
        self._missed = False
        self.since: int | None = None

    @property
    def suspected(self) -> bool:
        """True while central may lack what was sent; then records made here stay though central lacks them."""
        return self._missed or self.since is not None

    async def check(self) -> None:
        """Look for the newest records that went up; report once when all of them are gone.

        While central does not answer, nothing is known. Raises StoreError.
        """
        await self._recall()
        if self.since is not None:
            return
        if await self._delivered_records.id_given_twice_after(self._reconciled_to):
            await self._begin("it gave an id a second time")
            return
        try:
            gone = await self._gone()
        except CentralUnavailable as error:
            log.debug("not_looked_for_what_was_sent", error=str(error))
            return
        missed, self._missed = self._missed, bool(gone)
        if gone and missed:
            await self._begin(f"it no longer has the records that this site sent last ({gone})")

    async def lacks_newest(self) -> bool:
        """Return whether central lacks now what this site sent last. Raises CentralUnavailable, StoreError."""
        await self._recall()
        if self.suspected or await self._delivered_records.id_given_twice_after(self._reconciled_to):
            return True
        return bool(await self._gone())

    async def on_reconciled(self) -> None:
        """Note that central has everything again."""
        page = await self._events.page(EventFilter(), limit=1)
        newest = page.events[0].id if page.events else 0
        await self._notes.remember(_RECONCILED, str(newest))
        await self._notes.remember(_SINCE, "")
        self._reconciled_to, self.since, self._missed = newest, None, False
        self._changes.bump()

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
        await self._journal.record(Entry(events=(event,)))
        await self._notes.remember(_SINCE, str(now.micros))
        self.since = now.micros
        log.warning("central_set_back", reason=why)

    async def _gone(self) -> str:
        """Name the newest records when all are gone; "" when one is there, or central does not say."""
        since = self._clock.wall().micros - _RECENT
        events = await self._delivered_records.newest("camera_event", since, most=_NEWEST)
        if len(events) >= _FEWEST:
            for event in events:
                marks = marks_of("camera_event", event.body)
                if (
                    await record_state(self._client, "camera_event", event.central_id or 0, marks)
                    is not RecordState.GONE
                ):
                    return ""
            return _named("camera event", events)
        entries = await self._delivered_records.newest("entry", since, most=_NEWEST)
        return _named("entry", entries) if len(entries) >= _FEWEST and await self._are_gone(entries) else ""

    async def _are_gone(self, entries: tuple[DeliveredRecord, ...]) -> bool:
        """Tell whether the first page of the list, where the newest stand, lacks entries that should be on it."""
        lookup = lookup_of("entry")
        try:
            answer = await self._client.call("POST", lookup.path, {"page": 1, "page_limit": _PAGE})
        except CentralRefused:
            return False
        listing = read_listing(answer, lookup.resource)
        if listing is None or None in listing.ids:
            return False
        known = [entry.central_id or 0 for entry in entries]
        ids = [number for number in listing.ids if number is not None]
        if ids and (ids != sorted(ids, reverse=True) or (listing.count != len(ids) and min(ids) > min(known))):
            return False
        return not any(
            entry.central_id in listing.records
            and is_still("entry", marks_of("entry", entry.body), listing.records[entry.central_id])
            for entry in entries
        )


def restore_detector(store: Store, *, client: CentralClient, clock: Clock) -> RestoreDetector:
    """Return a detector over the tables of a store."""
    return RestoreDetector(
        client=client,
        delivered_records=store.delivered_records,
        notes=store.cards,
        events=store.events,
        journal=store.journal,
        changes=store.changes,
        clock=clock,
    )


def _named(noun: str, records: tuple[DeliveredRecord, ...]) -> str:
    return f"{noun} {', '.join(str(record.central_id) for record in records)}"
