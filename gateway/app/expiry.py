"""Expiry of events, camera events and entries.

Records are kept for a number of days, and longer, up to a fixed limit, for the fleet's line and the mirror while these
have not sent them. If records expire unsent, an event says which.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.recording.retention import SettledTime
from gateway.runtime.clock import Clock, iso_utc
from gateway.site import Site
from gateway.store import LISTS, Entry, ExpiryLimits, Journal, ListName, ReadCursor, Store
from gateway.store.events.expiry import Expiry, Range
from gateway.store.events.read_cursors import ReadCursors
from gateway.texts import text

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 600.0
_FIRST_LOOK_SECONDS = 60.0
_BREATH_SECONDS = 0.05
_MOST_NAMED = 20
_WORDS: dict[ListName, str] = {"event": "events", "camera_event": "camera events", "entry": "parking entries"}


class EventKeeping:
    """The removal of expired records. Run `run` as a task.

    While the clock is not trusted, or was set forward within the last day, no record expires by its age.
    """

    def __init__(
        self,
        *,
        expiry: Expiry,
        read_cursors: ReadCursors,
        journal: Journal,
        clock: Clock,
        limits: ExpiryLimits,
        consumer_days: int,
        forget: Callable[[int], Awaitable[None]],
    ) -> None:
        """Build it.

        `consumer_days`: a consumer that took nothing for this many days no longer keeps records from expiring.
        `forget` is called with the id of each camera event that expired.
        """
        self._expiry = expiry
        self._read_cursors = read_cursors
        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._consumer_days = consumer_days
        self._forget = forget
        self._time: SettledTime | None = None

    def change(self, limits: ExpiryLimits, *, consumer_days: int) -> None:
        """Use other limits from now on."""
        self._limits, self._consumer_days = limits, consumer_days

    async def run(self) -> None:
        """Remove expired records every ten minutes, until cancelled."""
        await asyncio.sleep(_FIRST_LOOK_SECONDS)
        while True:
            try:
                await self.look()
            except StoreError as error:
                log.warning("events_not_thinned", error=str(error))
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Remove the records that have expired now. Raises StoreError."""
        now = self._settled()
        for name in LISTS:
            await self._thin(name, now)

    async def _thin(self, name: ListName, now: int | None) -> None:
        soft, hard = await self._expiry.old_to(name, limits=self._limits, now=now)
        if not soft and not hard:
            return
        marks = [mark for mark in await self._read_cursors.all() if mark.consumer.list == name]
        # Without a trusted clock, no consumer can be known to be gone: every mark keeps records.
        holding = [mark for mark in marks if now is None or mark.holds(now=now, consumer_days=self._consumer_days)]
        upto = max(hard, min([soft, *(mark.read_to for mark in holding)]))
        await self._tell_what_is_unread(name, [mark for mark in marks if mark.read_to < upto], upto, now)
        count = above = 0
        while gone := await self._expiry.remove(name, above=above, to=upto, limits=self._limits, now=now):
            count, above = count + len(gone), gone[-1]
            if name == "camera_event":
                for number in gone:
                    await self._forget(number)
            await asyncio.sleep(_BREATH_SECONDS)
        if count:
            log.info("records_expired", list=name, count=count, up_to=upto)
        if left := [mark.consumer for mark in marks if mark not in holding and mark.read_to < upto]:
            await self._read_cursors.forget(left)

    async def _tell_what_is_unread(self, name: ListName, passed: list[ReadCursor], upto: int, now: int | None) -> None:
        """Record an event on the records that expire unread, before any is removed; a crash may repeat the event."""
        if not passed:
            return
        above = min(mark.read_to for mark in passed)
        unread = await self._expiry.unread(name, above=above, to=upto, limits=self._limits, now=now)
        if unread is not None:
            await self._journal.record(Entry(events=(self._gap(name, unread, passed),)))

    def _gap(self, name: ListName, unread: Range, passed: list[ReadCursor]) -> Event:
        stamp = self._clock.wall()
        accounts = sorted({mark.consumer.account for mark in passed if mark.read_to < unread.high})
        named = ", ".join(accounts[:_MOST_NAMED]) + (" and others" if len(accounts) > _MOST_NAMED else "")
        said = text(
            f"event.unread_dropped.{name}",
            count=str(unread.count),
            low=str(unread.low),
            high=str(unread.high),
            since=iso_utc(unread.first_at),
            until=iso_utc(unread.last_at),
            who=named,
        )
        return Event(
            kind=EventKind.UNREAD_DROPPED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=said,
            data={
                "list": name,
                "from_id": unread.low,
                "to_id": unread.high,
                "count": unread.count,
                "from": iso_utc(unread.first_at),
                "until": iso_utc(unread.last_at),
                "unread_by": named,
            },
        )

    def _settled(self) -> int | None:
        """Return wall micros without forward steps of the last day; None while the clock is not trusted."""
        wall, uptime = self._clock.wall(), self._clock.monotonic()
        known = self._time or SettledTime(wall.micros, uptime, wall.trusted)
        self._time = known.seen(wall, uptime)
        return self._time.at(uptime) if wall.trusted else None


def event_keeping(site: Site, *, store: Store, clock: Clock, forget: Callable[[int], Awaitable[None]]) -> EventKeeping:
    """Build the expiry of events, camera events and entries."""
    return EventKeeping(
        expiry=store.expiry,
        read_cursors=store.read_cursors,
        journal=store.journal,
        clock=clock,
        limits=expiry_limits(site),
        consumer_days=site.keep.consumer_days,
        forget=forget,
    )


def expiry_limits(site: Site) -> ExpiryLimits:
    """Return the limits that the site file sets."""
    return ExpiryLimits(
        days=site.keep.days,
        most_days=site.keep.most_days,
        most_events=site.keep.most_events,
        transaction_days=site.storage.transaction_days,
        incident_days=site.storage.incident_days,
    )
