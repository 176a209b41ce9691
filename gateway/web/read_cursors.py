"""Read marks: how far each consumer has read a list, followed page by page and written to disk at intervals."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.read_cursors import PageAnswered, ReadProgress
from gateway.runtime.clock import Clock
from gateway.store import Consumer, ReadCursor
from gateway.store.engine.changes import Changes
from gateway.store.events.read_cursors import ReadCursors

log = structlog.get_logger(__name__)

WRITE_SECONDS = 10.0
_SEEN_EVERY = 3_600_000_000
MOST_CONSUMERS = 200
_MOST_NAMED = 10

Acknowledge = Callable[[], None]


@dataclass(slots=True)
class _Followed:
    """One consumer of one list.

    Attributes:
        progress: how far it has read.
        stored: its mark as it is on disk.
        read_at: the time of its last request, in wall micros.
        acknowledged: one element: whether the last answer arrived completely. Each answer gets a new list, so that a
            late acknowledgement of an earlier answer does not count.
    """

    progress: ReadProgress
    stored: ReadCursor
    read_at: int
    acknowledged: list[bool] = field(default_factory=lambda: [False])

    def moved(self) -> ReadCursor | None:
        """Return the mark to write to disk; None if it did not move and the time on disk is less than an hour old."""
        mark = max(self.progress.mark or 0, self.stored.read_to)
        if mark == self.stored.read_to and self.read_at - self.stored.read_at <= _SEEN_EVERY:
            return None
        return replace(self.stored, read_to=mark, read_at=self.read_at)


class Consumers:
    """The consumers of lists. Run `run` as a task; until it has read the marks, no consumer is followed.

    A new mark is on disk before its first page is answered. Marks that moved are written together, about every ten
    seconds. After a crash a mark may therefore be too low, never too high.
    """

    def __init__(self, *, changes: Changes, read_cursors: ReadCursors, clock: Clock) -> None:
        self._changes = changes
        self._read_cursors = read_cursors
        self._clock = clock
        self._followed: dict[Consumer, _Followed] = {}
        self._known = False
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """Read the marks, then write those that moved, until cancelled; write once more at the end."""
        try:
            while not await self.recall():  # noqa: ASYNC110 (no event tells when the disk works again)
                await asyncio.sleep(WRITE_SECONDS)
            while True:
                await self._moved.wait()
                self._moved.clear()
                await self.write()
                await asyncio.sleep(WRITE_SECONDS)
        finally:
            await self.write()

    def asks(self, consumer: Consumer, cursor: int) -> None:
        """Note a request for the page after `cursor`, which may prove that the pages before it arrived."""
        known = self._followed.get(consumer)
        if known is None:
            return
        known.read_at = self._clock.wall().micros
        known.progress = known.progress.asks(cursor, acknowledged=known.acknowledged[0], uptime=self._clock.monotonic())
        if known.moved() is not None:
            self._moved.set()

    async def answered(self, consumer: Consumer, page: PageAnswered) -> Acknowledge:
        """Note a page that is about to be sent; return a function to call once the client has acknowledged all of it.

        If the consumer is new, its mark is on disk when this returns.
        """
        known = self._followed.get(consumer) or await self._begun(consumer, page)
        if known is None:
            return _ignore
        known.progress = known.progress.answered(page)
        acknowledged = known.acknowledged = [False]

        def acknowledge() -> None:
            acknowledged[0] = True

        return acknowledge

    async def forget(self, account: str, *, by: str) -> int:
        """Delete an account's marks, record that as an event, and return their number.

        If the account goes on reading, it counts as a new consumer. Raises StoreError.
        """
        marks = [mark for mark in await self._read_cursors.all() if mark.consumer.account == account]
        if marks:
            await self._forget_marks(marks, by=by)
            self._changes.bump()
        return len(marks)

    async def write(self) -> None:
        """Write the marks that moved. If the disk fails, they are written with the next mark that moves."""
        moved = [mark for known in self._followed.values() if (mark := known.moved()) is not None]
        if not moved:
            return
        try:
            await self._read_cursors.save(moved)
        except StoreError as error:
            log.debug("read_marks_not_written", error=str(error))  # the store reports its own failure
            return
        for mark in moved:
            if mark.consumer in self._followed:
                self._followed[mark.consumer].stored = mark

    async def _begun(self, consumer: Consumer, page: PageAnswered) -> _Followed | None:
        """Begin to follow a consumer; None if it does not begin with the newest record, or the disk fails."""
        progress, now = ReadProgress().answered(page), self._clock.wall().micros
        if progress.mark is None or not self._known:
            return None
        mark = ReadCursor(consumer, progress.mark, read_at=now, began_at=now)
        try:
            await self._forget_oldest()
            await self._read_cursors.save((mark,))
        except StoreError as error:
            log.debug("read_mark_not_begun", error=str(error))  # a later page tries again
            return None
        return self._followed.setdefault(consumer, _Followed(progress, stored=mark, read_at=now))

    async def recall(self) -> bool:
        """Read the marks; return whether they could be read."""
        try:
            marks = await self._read_cursors.all()
        except StoreError as error:
            log.warning("read_marks_not_read", error=str(error))
            return False
        self._followed = {
            mark.consumer: _Followed(ReadProgress(mark=mark.read_to), stored=mark, read_at=mark.read_at)
            for mark in marks
        }
        self._known = True
        return True

    async def _forget_oldest(self) -> None:
        """Delete the oldest mark of the account that has most, if there are too many. Raises StoreError."""
        if len(self._followed) >= MOST_CONSUMERS:
            counts = Counter(consumer.account for consumer in self._followed)
            most = max(counts.values())
            many = [known for consumer, known in self._followed.items() if counts[consumer.account] == most]
            gone = min(many, key=lambda known: known.read_at)
            await self._forget_marks((gone.stored,), by=f"the gateway (it follows at most {MOST_CONSUMERS})")

    async def _forget_marks(self, marks: Sequence[ReadCursor], *, by: str) -> None:
        first, stamp = marks[0].consumer, self._clock.wall()
        places = ", ".join(f"{_named(mark.consumer)} up to {mark.read_to}" for mark in marks[:_MOST_NAMED])
        more = f" and {len(marks) - _MOST_NAMED} more" if len(marks) > _MOST_NAMED else ""
        event = Event(
            kind=EventKind.CONSUMER_FORGOTTEN,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            description=f"{by} deleted how far {first.account} has read: {places}{more}.",
            data={"account": first.account, "by": by, "marks": len(marks)},
        )
        consumers = [mark.consumer for mark in marks]
        followed = {one: known for one in consumers if (known := self._followed.pop(one, None)) is not None}
        try:
            await self._read_cursors.forget(consumers, event=event)
        except StoreError:
            self._followed = followed | self._followed  # their marks are still there
            raise


def _named(consumer: Consumer) -> str:
    return f"{consumer.list} ({consumer.filter})" if consumer.filter else consumer.list


def _ignore() -> None:
    """Do nothing: this consumer is not followed."""
