"""An ordered queue of records in front of the journal, so that a failing disk does not stop a gate.

Entries wait in a bounded queue and are retried until they are on disk. Entries that do not fit are dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import Clock, Stamp, iso_utc
from gateway.store import Entry, Journal
from gateway.texts import text

log = structlog.get_logger(__name__)

_WAITING = 5000
_RETRY_SECONDS = 1.0
_TURNS_TO_THE_LINE = 3


async def command_first() -> None:
    """Wait for the turns of the event loop that a gate's command takes from its lane to a free line.

    The gate opens first: what else follows from a card would compete with the command for the interpreter.
    """
    for _ in range(_TURNS_TO_THE_LINE):
        await asyncio.sleep(0)


class Recorder:
    """A queue in front of the journal. `put` never blocks; `run` must be kept alive.

    Attributes:
        lost: number of entries that did not fit or could never be written.
        failing: why the last write failed, "" while writes succeed.
    """

    def __init__(self, *, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._failing_since: Stamp | None = None
        self._lost_before = 0
        self._waiting: deque[tuple[Entry, Callable[[], None] | None]] = deque()
        self._queued = 0
        self._done = 0
        self._moved = asyncio.Condition()
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._emptied.set()
        self.lost = 0
        self.failing = ""

    @property
    def waiting(self) -> int:
        """Entries not on disk yet."""
        return len(self._waiting)

    def put(self, entry: Entry, *, written: Callable[[], None] | None = None) -> None:
        """Queue an entry behind those put before. If the queue is full, drop and count it.

        `written` is called once the entry is on disk.
        """
        if len(self._waiting) >= _WAITING:
            self.lost += 1
            if self.lost == 1:
                log.error("records_lost", why=self.failing or "the disk is too slow")
            return
        self._queued += 1
        self._waiting.append((entry, written))
        self._emptied.clear()
        self._filled.set()

    async def run(self) -> None:
        """Write until cancelled; an entry leaves the queue only once it is on disk."""
        while True:
            await self._filled.wait()
            await command_first()
            while self._waiting:
                await self._write(*self._waiting[0])
                self._waiting.popleft()
                self._done += 1
                async with self._moved:
                    self._moved.notify_all()
            self._filled.clear()
            self._emptied.set()

    async def recorded(self, *, lost: int, within: float) -> bool:
        """Wait at most `within` seconds until all entries put so far are on disk; return whether they are.

        `lost` is the value of the attribute before the caller put its first entry. If more are lost by the end, one of
        them may be the caller's, and the result is False: nothing is acknowledged that is not on disk.
        """
        target = self._queued
        try:
            async with asyncio.timeout(within), self._moved:
                await self._moved.wait_for(lambda: self._done >= target)
        except TimeoutError:
            return False
        return self.lost == lost

    async def drained(self, *, within: float) -> bool:
        """Wait until everything is on disk, at most `within` seconds; return whether it is. `run` must be alive."""
        try:
            async with asyncio.timeout(within):
                await self._emptied.wait()
        except TimeoutError:
            return False
        return True

    async def _write(self, entry: Entry, written: Callable[[], None] | None) -> None:
        while True:
            try:
                await self._journal.record(entry)
            except StoreError as error:
                if not self.failing:
                    log.error("record_waits", error=str(error))  # noqa: TRY400 (the sentence says it all)
                if self._failing_since is None:
                    self._failing_since, self._lost_before = self._clock.wall(), self.lost
                self.failing = str(error)
                await asyncio.sleep(_RETRY_SECONDS)
            except Exception:  # an entry that can never be written must not hold up all that come after it
                self.lost += 1
                log.exception("record_unwritable", entry=repr(entry))
                return
            else:
                if self.failing:
                    log.info("records_written_again", waiting=len(self._waiting))
                self.failing = ""
                self._record_failure()
                if written is not None:
                    written()
                return

    def _record_failure(self) -> None:
        """Queue an event about the failure once writes succeed again, right behind the entry that was retried."""
        since, self._failing_since = self._failing_since, None
        if since is None:
            return
        now, waited, lost = self._clock.wall(), len(self._waiting), self.lost - self._lost_before
        said = text(
            "event.records_waited",
            since=iso_utc(since.micros),
            seconds=f"{(now.micros - since.micros) / 1e6:.0f}",
            count=str(waited),
            lost=str(lost),
        )
        event = Event(
            kind=EventKind.RECORDS_WAITED,
            date_at=now.micros,
            clock_trusted=now.trusted,
            text=said,
            data={"since": iso_utc(since.micros), "waited": waited, "lost": lost},
        )
        self._waiting.insert(1, (Entry(events=(event,)), None))
        self._done -= 1  # it jumps the queue, so its own write must not count as progress of those behind it
