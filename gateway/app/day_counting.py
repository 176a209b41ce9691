"""Daily counts: from recorded events, and from the counters of lines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import date, timedelta, tzinfo

import structlog

from drivers.bus.line_quality import LineQuality
from gateway.domain.day_counts import LineTally, day_of
from gateway.domain.errors import StoreError
from gateway.runtime.clock import Clock
from gateway.store.events.day_counts import DayCounts

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 300.0
"""The period of counting. Lines' counts since the last time are lost when the gateway stops."""
_FIRST_LOOK_SECONDS = 10.0
_BREATH_SECONDS = 0.05
_KEPT_DAYS = 400


class DayCounting:
    """The daily counts, which the page shows as trends. Run `run` as a task."""

    def __init__(
        self,
        *,
        day_counts: DayCounts,
        lines: Callable[[], Iterable[LineQuality]],
        clock: Clock,
        zone: Callable[[], tzinfo],
    ) -> None:
        """`zone` returns the site's time zone, in which days begin."""
        self._day_counts = day_counts
        self._lines = lines
        self._clock = clock
        self._zone = zone
        self._tally = LineTally()
        self._forgotten_on = ""

    async def run(self) -> None:
        """Count every five minutes, until cancelled."""
        await asyncio.sleep(_FIRST_LOOK_SECONDS)
        while True:
            try:
                await self.look()
            except StoreError as error:
                log.warning("days_not_counted", error=str(error))
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Count everything that is not counted yet; delete counts older than 400 days. Raises StoreError."""
        zone, more = self._zone(), True
        while more:
            more = await self._day_counts.count_events(zone)
            await asyncio.sleep(_BREATH_SECONDS)
        today, lines = day_of(self._clock.wall().micros, zone), tuple(self._lines())
        await self._day_counts.add(self._tally.since(lines, day=today))
        self._tally.keep(lines)
        if today != self._forgotten_on:
            await self._day_counts.forget(before=_days_from(today, -_KEPT_DAYS), after=_days_from(today, 1))
            self._forgotten_on = today


def _days_from(day: str, days: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()
