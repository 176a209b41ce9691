"""Tell people once that the backlog for central is nearly full, while there is time to act."""

from __future__ import annotations

from typing import Final

import structlog

from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import Clock
from gateway.store import GIGABYTE, Backlog, Entry, Store

log = structlog.get_logger(__name__)

_TOLD_FROM: Final = 0.8
_OVER_BELOW: Final = 0.7


class BacklogNews:
    """The last look at the backlog's size."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._told = False
        self.notice = ""
        """One sentence for the page while the backlog is nearly full, else empty."""

    async def look(self) -> None:
        """Read the size; record an event when it has passed 80 %. Raises StoreError."""
        backlog = await self._store.backlog.usage()
        if self._told and backlog.share < _OVER_BELOW:
            self._told = False
        if not self._told and backlog.share >= _TOLD_FROM:
            await self._tell(backlog)
            self._told = True
        self.notice = _sentence(backlog) if self._told else ""

    async def _tell(self, backlog: Backlog) -> None:
        log.warning("backlog_nearly_full", bytes=backlog.bytes, most=backlog.most)
        stamp = self._clock.wall()
        event = Event(
            kind=EventKind.BACKLOG_NEARLY_FULL,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            description=f"{_sentence(backlog)}.",
            data={"bytes": backlog.bytes, "most_bytes": backlog.most},
        )
        await self._store.journal.record(Entry(events=(event,)))


def _sentence(backlog: Backlog) -> str:
    return (
        f"What waits for central takes {backlog.bytes / GIGABYTE:.2f} GB of the {backlog.most / GIGABYTE:g} GB allowed;"
        " bring central back, or raise backlog_gigabytes in the site file, before changes by people and programs are"
        " refused"
    )
