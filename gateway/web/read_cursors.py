"""Which account has read which list how far: followed as pages are asked for, and written down now and then."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.read_cursors import PageTold, Reading
from gateway.runtime.clock import Clock
from gateway.store import Consumer, ReadCursor, Store

log = structlog.get_logger(__name__)

_WRITE_SECONDS = 10.0
_SEEN_EVERY = 3_600_000_000
_MOST_READERS = 200
_MOST_TOLD = 10

Taken = Callable[[], None]


@dataclass(slots=True)
class _Followed:
    """One reader of one list.

    Attributes:
        stored: its mark as it is on disk.
        read_at: when it last asked.
        taken: whether its last answer was taken; each answer has a list of its own.
    """

    reading: Reading
    stored: ReadCursor
    read_at: int
    taken: list[bool] = field(default_factory=lambda: [False])

    def moved(self) -> ReadCursor | None:
        """The mark as it is to be on disk, None while that is near enough."""
        mark = max(self.reading.mark or 0, self.stored.read_to)
        if mark == self.stored.read_to and self.read_at - self.stored.read_at <= _SEEN_EVERY:
            return None
        return replace(self.stored, read_to=mark, read_at=self.read_at)


class Readers:
    """Those who read lists by cursor. Keep `run` alive as a task; until it has read the marks nobody is followed.

    A new mark is on disk before the first page is answered, one that moved some seconds later, with all others that
    did: after a crash it is too low.
    """

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._followed: dict[Consumer, _Followed] = {}
        self._known = False
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """Read the marks, and write those that moved, until cancelled; then once more."""
        try:
            while not await self._recall():  # noqa: ASYNC110 (it waits for the disk, of which no event tells)
                await asyncio.sleep(_WRITE_SECONDS)
            while True:
                await self._moved.wait()
                self._moved.clear()
                await self.write()
                await asyncio.sleep(_WRITE_SECONDS)
        finally:
            await self.write()

    def asks(self, reader: Consumer, cursor: int) -> None:
        """A page of a list is asked for: what that says of the pages before."""
        known = self._followed.get(reader)
        if known is None:
            return
        known.read_at = self._clock.wall().micros
        known.reading = known.reading.asks(cursor, taken=known.taken[0], uptime=self._clock.monotonic())
        if known.moved() is not None:
            self._moved.set()

    async def told(self, reader: Consumer, page: PageTold) -> Taken:
        """That page is about to be answered; what is returned is to be called when the other end has taken all of it.

        A mark that begins with it is on disk by then.
        """
        known = self._followed.get(reader) or await self._begun(reader, page)
        if known is None:
            return _unheard
        known.reading = known.reading.told(page)
        taken = known.taken = [False]

        def is_taken() -> None:
            taken[0] = True

        return is_taken

    async def forget(self, account: str, *, by: str) -> int:
        """Forget an account's marks, which an event tells; how many there were. If it reads on it begins anew.

        Raises StoreError.
        """
        marks = [mark for mark in await self._store.read_cursors.all() if mark.reader.account == account]
        if marks:
            await self._let_go(marks, by=by)
            self._store.changes.bump()
        return len(marks)

    async def write(self) -> None:
        """Write the marks that moved. What the disk refuses is tried again with the next that moves."""
        moved = [mark for known in self._followed.values() if (mark := known.moved()) is not None]
        if not moved:
            return
        try:
            await self._store.read_cursors.save(moved)
        except StoreError as error:
            log.debug("read_marks_not_written", error=str(error))  # the store tells of itself
            return
        for mark in moved:
            if mark.reader in self._followed:
                self._followed[mark.reader].stored = mark

    async def _begun(self, reader: Consumer, page: PageTold) -> _Followed | None:
        """A reader that was not known; None where it does not begin with the newest, or the disk takes no mark."""
        reading, now = Reading().told(page), self._clock.wall().micros
        if reading.mark is None or not self._known:
            return None
        mark = ReadCursor(reader, reading.mark, read_at=now, began_at=now)
        try:
            await self._make_room()
            await self._store.read_cursors.save((mark,))
        except StoreError as error:
            log.debug("read_mark_not_begun", error=str(error))  # the store tells of itself; it begins with a later page
            return None
        return self._followed.setdefault(reader, _Followed(reading, stored=mark, read_at=now))

    async def _recall(self) -> bool:
        """Whether the marks could be read."""
        try:
            marks = await self._store.read_cursors.all()
        except StoreError as error:
            log.warning("read_marks_not_read", error=str(error))
            return False
        self._followed = {
            mark.reader: _Followed(Reading(mark=mark.read_to), stored=mark, read_at=mark.read_at) for mark in marks
        }
        self._known = True
        return True

    async def _make_room(self) -> None:
        """Of the account that reads most, the one that asked longest ago is forgotten. Raises StoreError."""
        if len(self._followed) >= _MOST_READERS:
            counts = Counter(reader.account for reader in self._followed)
            most = max(counts.values())
            many = [known for reader, known in self._followed.items() if counts[reader.account] == most]
            gone = min(many, key=lambda known: known.read_at)
            await self._let_go((gone.stored,), by=f"the gateway, which follows {_MOST_READERS}")

    async def _let_go(self, marks: Sequence[ReadCursor], *, by: str) -> None:
        first, stamp = marks[0].reader, self._clock.wall()
        places = ", ".join(f"{_named(mark.reader)} up to {mark.read_to}" for mark in marks[:_MOST_TOLD])
        more = f" and {len(marks) - _MOST_TOLD} more" if len(marks) > _MOST_TOLD else ""
        told = Event(
            kind=EventKind.READER_FORGOTTEN,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            description=f"How far {first.account} has read was forgotten by {by}: {places}{more}.",
            data={"account": first.account, "by": by, "marks": len(marks)},
        )
        readers = [mark.reader for mark in marks]
        followed = {reader: known for reader in readers if (known := self._followed.pop(reader, None)) is not None}
        try:
            await self._store.read_cursors.forget(readers, told=told)
        except StoreError:
            self._followed = followed | self._followed  # their marks are still there
            raise


def _named(reader: Consumer) -> str:
    return f"{reader.list} ({reader.filter})" if reader.filter else reader.list


def _unheard() -> None:
    """Of whoever is not followed."""
