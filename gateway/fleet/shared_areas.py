"""Shared areas over the fleet's server: the bucket's changes come in, and this gateway's claims and passages go out.

A write names the revision that it changes, and the server refuses it if that has changed meanwhile. One batch is in
flight at a time.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import structlog
from nats.aio.msg import Msg
from pydantic import TypeAdapter, ValidationError

from gateway.domain.shared_areas import AreaWrite, GatewayCounts, HolderEntry
from gateway.fleet.line import ANSWER_SECONDS, STATUS, FleetAway, FleetLine, FleetRefused, kept
from gateway.fleet.names import AREAS_STREAM, FleetName, Outgoing, StreamMessage
from gateway.lanes.shared_areas import SharedAreas

log = structlog.get_logger(__name__)

WRITE_SECONDS = 3.0
_MOST_IN_FLIGHT = 64
_MOST_REFUSALS = 3
_LOOK_SECONDS = 1.0
_HEARTBEAT_SECONDS = 2.0
_SILENCE_SECONDS = 3 * _HEARTBEAT_SECONDS
_MOST_PENDING = 500_000
_IN_ONE_TURN = 64
_HEARTBEAT = "100"
_LATEST = 2**57
"""No clock is later (wall micros; the year 6536): a later time is rubbish, and could not be written as a date."""
_LAST_SENT = "Nats-Last-Consumer"
_ENTRY = TypeAdapter(HolderEntry)
_COUNTS = TypeAdapter(GatewayCounts)

T = TypeVar("T")


@dataclass(kw_only=True)
class SharedAreasLine:
    """The line between this gateway's part in the shared areas and the bucket."""

    name: str = field(default="shared areas", init=False)
    fleet_name: FleetName
    shared: SharedAreas
    _refusals: Counter[str] = field(default_factory=Counter, init=False)

    async def run(self, line: FleetLine, works: Callable[[], None]) -> None:
        """Follow the bucket and write into it, until cancelled."""
        self._expect_own_name()
        subject = self.fleet_name.area_holder("")
        await line.expect_stream(AREAS_STREAM, subject)
        self.shared.begin()
        try:
            async with _followed(line, AREAS_STREAM, f"{self.fleet_name.areas}.>", self._take) as feed:
                try:
                    async with asyncio.timeout(ANSWER_SECONDS):
                        await feed.is_complete.wait()
                except TimeoutError as error:
                    raise FleetAway("the shared areas do not come") from error
                await self.shared.synchronised()
                works()
                heard_at = feed.heard_at
                while True:
                    feed.check()
                    self._expect_own_name()
                    self._expect_agreement()
                    if feed.heard_at > heard_at:
                        heard_at = feed.heard_at
                        self.shared.heard()
                    if writes := self.shared.writes(_MOST_IN_FLIGHT):
                        await self._write(line, writes)
                    else:
                        await self.shared.work(within=_LOOK_SECONDS)
        finally:
            self.shared.lost()

    def _expect_own_name(self) -> None:
        """Raise FleetRefused if another gateway takes part under this one's name."""
        if self.shared.is_replaced:
            raise FleetRefused(
                f"another gateway shares areas as {self.fleet_name}: give each its own `gateway` in [fleet], and"
                " restart this one"
            )

    def _expect_agreement(self) -> None:
        """Raise FleetAway if the server shows something else than it keeps: another one may not.

        Servers that have lost their agreement may refuse a holder's entry for ever. It ends a few connections at most.
        """
        found = {name for name in self.shared.misled if self._refusals[name] < _MOST_REFUSALS}
        if found:
            self._refusals.update(found - {""})
            raise FleetAway("the server refuses changes of shared areas, and does not show why")

    async def _write(self, line: FleetLine, writes: list[AreaWrite]) -> None:
        revisions = await line.put_each([self._message(write) for write in writes], within=WRITE_SECONDS)
        for write, revision in zip(writes, revisions, strict=True):
            if revision is not None:
                self._refusals.pop(write.holder, None)
            self.shared.written(write, revision)

    def _message(self, write: AreaWrite) -> Outgoing:
        if isinstance(write.value, GatewayCounts):
            return Outgoing(self.fleet_name.area_counts, _COUNTS.dump_json(write.value), after=write.after)
        subject = self.fleet_name.area_holder(_key(write.holder))
        return Outgoing(subject, _ENTRY.dump_json(write.value), after=write.after)

    def _take(self, record: StreamMessage) -> None:
        """Take a change of the bucket. A key that was deleted by hand is an empty record."""
        kind, _, key = record.subject.removeprefix(f"{self.fleet_name.areas}.").partition(".")
        if kind == "holder" and (holder := _holder(key)):
            self.shared.entry_changed(holder, _parsed(_ENTRY, record, HolderEntry(), _entry_times), record.sequence)
        elif kind == "count":
            counts = _parsed(_COUNTS, record, GatewayCounts(), lambda one: one.opened.values())
            self.shared.counts_changed(key, counts, record.sequence)


def _parsed(kind: TypeAdapter[T], record: StreamMessage, nothing: T, times: Callable[[T], Iterable[int]]) -> T:
    """Read a record; `nothing` stands for one that is no record of a gateway. `times` are those that it names."""
    if not record.data:
        return nothing
    try:
        found = kind.validate_json(record.data)
    except ValidationError:
        found = None
    if found is None or not all(0 <= at < _LATEST for at in times(found)):
        log.warning("shared_record_unreadable", key=record.subject)
        return nothing
    return found


def _entry_times(entry: HolderEntry) -> Iterable[int]:
    return [*(step.at for step in entry.steps), *(claim.at for claim in entry.claims)]


def _key(holder: str) -> str:
    """Write a holder's name with the letters that a key may have."""
    return base64.urlsafe_b64encode(holder.encode()).decode().rstrip("=")


def _holder(key: str) -> str:
    """Read a holder's name from its key; "" for a key that no gateway has written."""
    try:
        holder = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4)).decode()
    except ValueError:
        holder = ""
    if not holder or _key(holder) != key:
        log.warning("shared_record_unreadable", key=key)
        return ""
    return holder


class _StreamFeed:
    """The messages of a stream. `take` gets each one, in their order.

    Attributes:
        heard_at: when the server last said anything, by the loop's clock.
        is_complete: set once every message that was there at the beginning has come.
    """

    def __init__(self, take: Callable[[StreamMessage], None]) -> None:
        self._take = take
        self._number = 0
        self._has_gap = False
        self.heard_at = asyncio.get_running_loop().time()
        self.is_complete = asyncio.Event()

    def check(self) -> None:
        """Raise FleetAway if a message was missed, or the server has been silent for too long."""
        if self._has_gap:
            raise FleetAway("messages were missed")
        if asyncio.get_running_loop().time() > self.heard_at + _SILENCE_SECONDS:
            raise FleetAway(f"silent for {_SILENCE_SECONDS:g} s")

    async def came(self, message: Msg) -> None:
        """Take a message, or a sign that the server is alive."""
        self.heard_at = asyncio.get_running_loop().time()
        headers = message.headers or {}
        if headers.get(STATUS) == _HEARTBEAT:
            self._has_gap |= headers.get(_LAST_SENT, str(self._number)) != str(self._number)
            return
        *_, number, _, pending = message.reply.split(".")
        self._number += 1
        self._has_gap |= int(number) != self._number
        if self._has_gap:
            return
        self._take(kept(message))
        if pending == "0":
            self.is_complete.set()
        if self._number % _IN_ONE_TURN == 0:
            await asyncio.sleep(0)  # thousands may come at once, and lanes must have their turn


@asynccontextmanager
async def _followed(
    line: FleetLine, stream: str, subject: str, take: Callable[[StreamMessage], None]
) -> AsyncIterator[_StreamFeed]:
    """Follow the subjects of a stream while the context lasts. Raises FleetAway, FleetRefused."""
    feed = _StreamFeed(take)
    pushed = line.pushed(stream, subject, feed.came, heartbeat=_HEARTBEAT_SECONDS, pending=_MOST_PENDING)
    async with pushed as waiting:
        if not waiting:
            feed.is_complete.set()
        yield feed
