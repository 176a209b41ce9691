"""Events and camera events on their way up, each exactly once, in the order in which they were recorded.

A read mark in the store says up to where the stream has everything; retention waits for it. A batch
is in flight at once. The mark moves when the stream has acknowledged all of it. After a lost connection or a crash
nobody knows which messages of the last batch the stream has. The stream itself is asked then: each message names the
batch that it belongs to, so the last one leads to all others of its batch.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from gateway.fleet.line import FleetLine
from gateway.fleet.names import STREAM, FleetName, Outgoing, Stored, number_in
from gateway.runtime.clock import Clock
from gateway.store import Changes, Consumer, ListName, ReadCursor
from gateway.store.events.events import Events
from gateway.store.events.read_cursors import ReadCursors
from gateway.store.footage.camera_events import CameraEvents, camera_event_body

log = structlog.get_logger(__name__)

SENT: Final[tuple[ListName, ...]] = ("event", "camera_event")
MOST_IN_FLIGHT = 64
_BATCH = "Fleet-Batch"
_ACCOUNT = "fleet"
_FILTER = "stream"
_BREATH_SECONDS = 0.1
_SEEN_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """Place of a list in the stream: all records up to an id, and the subject's last sequence number there."""

    record_id: int
    sequence: int


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The batch that a message belongs to: the subject's last sequence number before it, and its first record."""

    after: int
    first: int

    @classmethod
    def of(cls, message: Stored) -> StreamBatch | None:
        """Read a message's batch; None if the message names none."""
        after, _, first = message.headers.get(_BATCH, "").partition(" ")
        numbers = number_in(after), number_in(first)
        return None if numbers[0] is None or numbers[1] is None else cls(numbers[0], numbers[1])

    @property
    def headers(self) -> Mapping[str, str]:
        """The header that names the batch."""
        return {_BATCH: f"{self.after} {self.first}"}


Record = tuple[int, bytes]
"""A record's id, and its JSON."""


class EventsUp:
    """The sender of events and camera events. One at a time uses the line."""

    name = "events"

    def __init__(
        self,
        *,
        name: FleetName,
        site_name: str,
        events: Events,
        camera_events: CameraEvents,
        read_cursors: ReadCursors,
        box_number: Callable[[], Awaitable[int]],
        changes: Changes,
        clock: Clock,
    ) -> None:
        """`site_name`: the name that camera events have as their source."""
        self._name = name
        self._site_name = site_name
        self._events = events
        self._camera_events = camera_events
        self._read_cursors = read_cursors
        self._box_number = box_number
        self._changes = changes
        self._clock = clock
        self._marks: dict[ListName, ReadCursor] = {}
        self.waiting = 0
        """The number of records that are not in the stream yet, as `count` found it."""

    @property
    def sent_to(self) -> int:
        """The id of the newest event that is in the stream, 0 for none or before the first connection."""
        return self._marks["event"].read_to if "event" in self._marks else 0

    async def count(self) -> None:
        """Count what waits. Raises StoreError."""
        marks = [mark for mark in await self._read_cursors.all() if _is_own(mark.consumer)]
        self.waiting = sum(await self._read_cursors.unread(marks)) if marks else 0

    async def hold(self) -> None:
        """Begin the read marks, if there are none, so that nothing expires unsent. Raises StoreError."""
        stored = {mark.consumer.list: mark for mark in await self._read_cursors.all() if _is_own(mark.consumer)}
        now = self._clock.wall().micros
        new = [ReadCursor(Consumer(_ACCOUNT, name, _FILTER), 0, now, now) for name in SENT if name not in stored]
        if new:
            await self._read_cursors.save(new)
        self._marks = {**stored, **{mark.consumer.list: mark for mark in new}}

    async def run(self, line: FleetLine, works: Callable[[], None]) -> None:
        """Send what the stream lacks, then what is recorded, until cancelled."""
        await self.hold()
        box = await self._box_number()
        await line.expect_stream(STREAM, self._name.events("event"))
        places = {name: await self._begun(line, name, box) for name in SENT}
        works()
        version, seen_at = -1, self._clock.monotonic()
        while True:
            for name in SENT:
                while records := await self._after(name, places[name].record_id):
                    places[name] = await self._send(line, name, box, records, places[name].sequence)
            if self._clock.monotonic() - seen_at > _SEEN_SECONDS:
                seen_at = self._clock.monotonic()
                await self._save(*(replace(mark, read_at=self._clock.wall().micros) for mark in self._marks.values()))
            await asyncio.sleep(_BREATH_SECONDS)  # several records of one moment go in one batch
            version = await self._changes.beyond(version, within=_SEEN_SECONDS)

    async def _begun(self, line: FleetLine, name: ListName, box: int) -> StreamPlace:
        """Find out how far the stream is, send what it lacks of the last batch, and let the mark follow."""
        subject, mark = self._name.events(name), self._marks[name]
        last = await line.last(STREAM, subject)
        if last is None:
            return StreamPlace(mark.read_to, 0)
        newest = self._name.record_id(name, box=box, message_id=last.message_id)
        if newest is None or newest <= mark.read_to:
            return StreamPlace(mark.read_to, last.sequence)
        place = StreamPlace(newest, last.sequence)
        if (batch := StreamBatch.of(last)) is not None:
            place = await self._completed(line, name, box, batch, place)
        await self._advance(name, place)
        return place

    async def _completed(
        self, line: FleetLine, name: ListName, box: int, batch: StreamBatch, last: StreamPlace
    ) -> StreamPlace:
        """Send what the stream lacks of a batch up to its newest record there. Mostly that is nothing."""
        ids = await line.stored_after(STREAM, self._name.events(name), batch.after)
        numbers = {last.record_id, *(self._name.record_id(name, box=box, message_id=one) or 0 for one in ids)}
        newest = max(numbers)
        records = await self._after(name, batch.first - 1)
        if lost := [one for one in records if one[0] < newest and one[0] not in numbers]:
            log.info("fleet_gap_filled", list=name, count=len(lost), up_to=newest)
            return StreamPlace(newest, await _put(line, self._messages(name, box, lost, batch, after=last.sequence)))
        return StreamPlace(newest, last.sequence)

    async def _send(
        self, line: FleetLine, name: ListName, box: int, records: Sequence[Record], sequence: int
    ) -> StreamPlace:
        batch = StreamBatch(after=sequence, first=records[0][0])
        sequence = await _put(line, self._messages(name, box, records, batch, after=sequence))
        place = StreamPlace(records[-1][0], sequence)
        await self._advance(name, place)
        return place

    def _messages(
        self, name: ListName, box: int, records: Sequence[Record], batch: StreamBatch, *, after: int
    ) -> list[Outgoing]:
        """Make messages of a batch. The first is taken only if nothing came after the last look at the subject."""
        return [
            Outgoing(
                subject=self._name.events(name),
                data=body,
                message_id=self._name.message_id(name, box=box, record_id=number),
                after=after if place == 0 else None,
                headers=batch.headers,
            )
            for place, (number, body) in enumerate(records)
        ]

    async def _after(self, name: ListName, record_id: int) -> list[Record]:
        if name == "event":
            rows = await self._events.json_after(record_id, limit=MOST_IN_FLIGHT)
            return [(number, text.encode()) for number, text in rows]
        found = await self._camera_events.after(record_id, limit=MOST_IN_FLIGHT)
        return [
            (
                one.id,
                json.dumps(
                    {"id": one.id, "incident": one.incident, **camera_event_body(one, site_name=self._site_name)},
                    ensure_ascii=False,
                    separators=(",", ":"),
                ).encode(),
            )
            for one in found
        ]

    async def _advance(self, name: ListName, place: StreamPlace) -> None:
        await self._save(replace(self._marks[name], read_to=place.record_id, read_at=self._clock.wall().micros))

    async def _save(self, *marks: ReadCursor) -> None:
        await self._read_cursors.save(marks)
        self._marks |= {mark.consumer.list: mark for mark in marks}


async def _put(line: FleetLine, messages: Sequence[Outgoing]) -> int:
    """Put messages, and return the last one's sequence number.

    The first goes alone: the stream refuses it if the subject's last message is another one or has expired, and those
    after it would be stored before it.
    """
    first, *rest = messages
    (*_, sequence) = (*await line.put([first]), *await line.put(rest))
    return sequence


def _is_own(consumer: Consumer) -> bool:
    return consumer.account == _ACCOUNT and consumer.filter == _FILTER
