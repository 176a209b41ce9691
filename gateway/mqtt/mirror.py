"""The mirror: which topics there are and what they say, and the task that keeps the broker up to date.

A read mark in the store says up to where the broker has every event. It moves when the broker has acknowledged a batch,
so that each event arrives at least once, oldest first. The kept messages are what the broker may lose: they are sent
anew at each connection, and before they expire.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import structlog
from pydantic import JsonValue

from gateway.domain.errors import StoreError
from gateway.domain.server_lines import BrokerStatus, ConnectionState
from gateway.lanes.snapshots import LaneSnapshot
from gateway.mqtt.line import MOST_IN_FLIGHT, Broker, BrokerAway, BrokerLine, BrokerRefused, connected
from gateway.mqtt.packets import Message
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock, WallTimes, iso_utc
from gateway.runtime.supervision import Backoff
from gateway.store import Changes, Consumer, ReadCursor
from gateway.store.events.events import Events
from gateway.store.events.read_cursors import ReadCursors

log = structlog.get_logger(__name__)

CONSUMER: Final = Consumer("mqtt", "event", "mirror")
EVENT_EXPIRY_SECONDS: Final = 7 * 86_400
STATE_EXPIRY_SECONDS: Final = 3600
_ANEW_SECONDS = STATE_EXPIRY_SECONDS / 3
_VERDICT_SECONDS = 2.0
_BREATH_SECONDS = 0.25
_DISK_SECONDS = 5.0
_LEAST_LIFE = 30.0
_MOST_PROBLEMS = 20
_WORD = "text/plain"


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a gateway. They begin with `root`, such as `edge-gateway/north/gate-1`."""

    root: str

    @property
    def event(self) -> str:
        """The topic of events."""
        return f"{self.root}/event"

    @property
    def verdict(self) -> str:
        """The topic of the verdict."""
        return f"{self.root}/verdict"

    @property
    def status(self) -> str:
        """The topic that says whether the gateway is there."""
        return f"{self.root}/status"

    def lane(self, lane_id: str) -> str:
        """Return the topic of a lane's state."""
        return f"{self.root}/lane/{lane_id}/state"


@dataclass(frozen=True, slots=True)
class Kept:
    """A message that the broker keeps: its topic, its fields, and by which part of them it counts as changed."""

    topic: str
    fields: dict[str, JsonValue]
    sign: object

    def message(self, *, at: str) -> Message:
        """Return the message, with the time at which it was true."""
        payload = json.dumps({**self.fields, "at": at}, ensure_ascii=False, separators=(",", ":")).encode()
        return Message(topic=self.topic, payload=payload, kept=True, expiry_seconds=STATE_EXPIRY_SECONDS)


@dataclass(frozen=True, slots=True)
class Sent:
    """The sign of a kept message that the broker has, and when it was sent (monotonic seconds)."""

    sign: object
    at: float

    def is_still(self, kept: Kept, *, now: float) -> bool:
        """Return whether the message need not be sent anew: it is the same, and expires late enough."""
        return self.sign == kept.sign and now < self.at + _ANEW_SECONDS


@dataclass(slots=True)
class Shown:
    """Record of the messages that a broker keeps, for one line.

    Attributes:
        is_there: whether the gateway has said that it is there.
        sent: the kept messages by their topics.
        refusal: why the broker does not take one, "" if it does; `failures` in a row.
        rests_until: until when none is tried after a refusal (monotonic seconds).
    """

    is_there: bool = False
    sent: dict[str, Sent] = field(default_factory=dict)
    refusal: str = ""
    failures: int = 0
    rests_until: float = float("-inf")


def lane_state(lane: LaneSnapshot) -> dict[str, JsonValue]:
    """Return the fields of a lane's state, except the time."""
    return {
        "lane": lane.lane_id,
        "name": lane.name,
        "direction": lane.direction,
        "gate": lane.position.value,
        "phase": lane.phase.value,
        "since": iso_utc(lane.since),
        "order": lane.order,
        "able": not lane.unable,
        "troubles": [*dict.fromkeys(one.kind.value for one in (*lane.unable, *lane.troubles))],
    }


def verdict_state(verdict: Verdict, *, site_name: str, version: str) -> dict[str, JsonValue]:
    """Return the fields of the verdict, except the time. `problems` are the worst ones, `problem_count` counts all."""
    return {
        "site": site_name,
        "version": version,
        "ready": not verdict.not_ready,
        "headline": verdict.headline,
        "problem_count": len(verdict.problems),
        "problems": [
            {"kind": one.kind.value, "severity": one.severity.name.lower(), "text": one.sentence}
            for one in verdict.problems[:_MOST_PROBLEMS]
        ],
    }


class Mirror:
    """The mirror, with the state of its line. Keep `run` alive as a task."""

    def __init__(
        self,
        *,
        broker: Broker,
        topics: Topics,
        site_name: Callable[[], str],
        version: str,
        lanes: Callable[[], Sequence[LaneSnapshot]],
        verdict: Callable[[], Verdict],
        events: Events,
        read_cursors: ReadCursors,
        box_number: Callable[[], Awaitable[int]],
        changes: Changes,
        clock: Clock,
        backoff: Backoff | None = None,
    ) -> None:
        """Build it without contact."""
        self._broker = broker
        self._topics = topics
        self._site_name = site_name
        self._version = version
        self._lanes = lanes
        self._verdict = verdict
        self._events = events
        self._read_cursors = read_cursors
        self._box_number = box_number
        self._changes = changes
        self._clock = clock
        self._backoff = backoff or Backoff(first=1.0, longest=60.0, spread=4.0)
        self._wall_times = WallTimes(clock)
        self._since = clock.monotonic()
        self._status = BrokerStatus(state=None, since=self._wall_times.of(self._since), broker=str(broker))
        self._mark: ReadCursor | None = None
        self._judged, self._judged_at = Verdict(problems=(), lanes=0), float("-inf")

    def status(self) -> BrokerStatus:
        """Return the state of the line, with what waits as `count` found it. Never waits."""
        return replace(self._status, since=self._wall_times.of(self._since))

    async def count(self) -> None:
        """Count what waits. Raises StoreError."""
        if self._mark is not None:
            (waiting,) = await self._read_cursors.unread([self._mark])
            self._status = replace(self._status, waiting=waiting)

    async def hold(self) -> ReadCursor:
        """Return the read mark; begin it at the newest event, if there is none. Raises StoreError."""
        if self._mark is None:
            marks = [mark for mark in await self._read_cursors.all() if mark.consumer == CONSUMER]
            if not marks:
                newest, now = await self._events.latest(limit=1), self._clock.wall().micros
                marks = [ReadCursor(CONSUMER, newest[0].id if newest else 0, read_at=now, began_at=now)]
                await self._read_cursors.save(marks)
            (self._mark,) = marks
        return self._mark

    async def run(self) -> None:
        """Connect, mirror, and connect again, until cancelled. The waits between tries have jitter."""
        failures = 0
        while True:
            began = self._clock.monotonic()
            try:
                await self._serve()
            except BrokerRefused as error:
                self._tell(ConnectionState.REFUSED, str(error))
            except BrokerAway as error:
                self._tell(ConnectionState.AWAY, str(error))
            failures = 1 if self._clock.monotonic() - began > _LEAST_LIFE else failures + 1
            await asyncio.sleep(self._backoff.wait(failures))

    async def _serve(self) -> None:
        """Connect, and mirror until the line ends. Raises BrokerAway, BrokerRefused with the reason."""
        async with connected(self._broker, self._presence("offline")) as line:
            async with asyncio.TaskGroup() as group:
                mirroring = group.create_task(self._mirror(line), name="mqtt-mirror")
                reason = await line.read()
                mirroring.cancel()
            raise reason

    async def _mirror(self, line: BrokerLine) -> None:
        """Send what the broker lacks, then what changes, until the line ends."""
        shown = Shown()
        failures, version = 0, -1
        while True:
            is_more = False
            try:
                await self._show(line, shown)
                is_more = await self._send_events(line)
                failures = 0
                self._tell(ConnectionState.REFUSED if shown.refusal else ConnectionState.CONNECTED, shown.refusal)
            except BrokerAway as error:
                line.end(error)
                return
            except BrokerRefused as error:
                failures += 1
                self._tell(ConnectionState.REFUSED, str(error))
                await asyncio.sleep(self._backoff.wait(failures))
            except StoreError as error:
                log.debug("mirror_waits_for_disk", error=str(error))  # the store reports its own failure
                await asyncio.sleep(_DISK_SECONDS)
            if not is_more:
                await asyncio.sleep(_BREATH_SECONDS)  # changes of one moment go together
                version = await self._changes.beyond(version, within=_VERDICT_SECONDS)

    async def _show(self, line: BrokerLine, shown: Shown) -> None:
        """Send the kept messages that have changed or expire soon, and take away those of lanes that are gone.

        If the broker refuses one, they are tried again later; events go on. Raises BrokerAway.
        """
        now, at, sent = self._clock.monotonic(), iso_utc(self._clock.wall().micros), shown.sent
        if now < shown.rests_until:
            return
        kept = {one.topic: one for one in self._kept(now)}
        due = [one for one in kept.values() if one.topic not in sent or not sent[one.topic].is_still(one, now=now)]
        gone = sent.keys() - kept.keys()
        try:
            if not shown.is_there:
                await line.put([self._presence("online")])
                shown.is_there = True
            taken_away = [Message(topic=topic, payload=b"", kept=True) for topic in sorted(gone)]
            await line.put([*(one.message(at=at) for one in due), *taken_away])
        except BrokerRefused as error:
            shown.failures, shown.refusal = shown.failures + 1, str(error)
            shown.rests_until = now + self._backoff.wait(shown.failures)
            return
        shown.failures, shown.refusal = 0, ""
        sent.update({one.topic: Sent(one.sign, now) for one in due})
        for topic in gone:
            del sent[topic]

    def _kept(self, now: float) -> Iterator[Kept]:
        for lane in self._lanes():
            fields = lane_state(lane)
            yield Kept(self._topics.lane(lane.lane_id), fields, fields)
        if now >= self._judged_at + _VERDICT_SECONDS:
            self._judged, self._judged_at = self._verdict(), now
        fields = verdict_state(self._judged, site_name=self._site_name(), version=self._version)
        # Sentences are left out of the sign, because they hold figures that change all the time.
        sign = (fields["site"], fields["headline"], *((one.key, one.lanes) for one in self._judged.problems))
        yield Kept(self._topics.verdict, fields, sign)

    def _presence(self, word: str) -> Message:
        return Message(topic=self._topics.status, payload=word.encode(), kept=True, content_type=_WORD)

    async def _send_events(self, line: BrokerLine) -> bool:
        """Send the next events, and move the mark; return whether more may wait."""
        mark = await self.hold()
        rows = await self._events.json_after(mark.read_to, limit=MOST_IN_FLIGHT)
        if rows:
            box = await self._box_number()
            await line.put(
                [
                    Message(
                        topic=self._topics.event, payload=text.encode(), expiry_seconds=EVENT_EXPIRY_SECONDS, box=box
                    )
                    for _, text in rows
                ]
            )
            self._mark = replace(mark, read_to=rows[-1][0], read_at=self._clock.wall().micros)
            await self._read_cursors.save([self._mark])
        return len(rows) == MOST_IN_FLIGHT

    def _tell(self, state: ConnectionState, reason: str) -> None:
        before = self._status
        if (before.state, before.reason) == (state, reason):
            return
        if before.state is not state:
            self._since = self._clock.monotonic()
        self._status = replace(before, state=state, reason=reason)
        log.info("mqtt_line", state=state.value, broker=self._status.broker, reason=reason)
        self._changes.bump()
