"""The mirror: which topics there are and what they say, and the task that keeps the broker up to date.

A read mark in the store says up to where the broker has every event. It moves when the broker has acknowledged a batch,
so that each event arrives at least once, oldest first. The kept messages are what the broker may lose: they are sent
anew at each connection, and before they expire.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, Final

import structlog
from pydantic import JsonValue

from gateway.domain.errors import StoreError
from gateway.domain.server_lines import BrokerStatus, ConnectionState
from gateway.lanes.snapshots import LaneSnapshot
from gateway.mqtt.line import MOST_IN_FLIGHT, Broker, BrokerAway, BrokerLine, BrokerRefused, connected
from gateway.mqtt.packets import MqttMessage
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock, WallTimes, iso_utc
from gateway.runtime.supervision import Backoff
from gateway.store import Consumer, ReadCursor, Store
from gateway.texts import Words, text

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

    def message(self, *, at: str) -> MqttMessage:
        """Return the message, with the time at which it was true."""
        payload = json.dumps({**self.fields, "at": at}, ensure_ascii=False, separators=(",", ":")).encode()
        return MqttMessage(topic=self.topic, payload=payload, kept=True, expiry_seconds=STATE_EXPIRY_SECONDS)


@dataclass(frozen=True, slots=True)
class Sent:
    """The sign of a kept message that the broker has, and when it was sent (monotonic seconds)."""

    sign: object
    at: float

    def is_still(self, kept: Kept, *, now: float) -> bool:
        """Return whether the message need not be sent anew: it is the same, and expires late enough."""
        return self.sign == kept.sign and now < self.at + _ANEW_SECONDS


@dataclass(frozen=True, slots=True)
class RefusedTopic:
    """A topic that the broker refuses: why, so many times in a row, and when it is tried again (monotonic seconds)."""

    reason: Words
    times: int
    until: float


@dataclass(slots=True)
class BrokerContents:
    """Record of what a broker has and what it refuses, for one line.

    Attributes:
        is_there: whether the gateway has said that it is there.
        sent: the kept messages by their topics.
        refused: the refusals by their topics. One topic does not delay another.
        disk_until: until when the store is left alone after a failure (monotonic seconds).
    """

    is_there: bool = False
    sent: dict[str, Sent] = field(default_factory=dict)
    refused: dict[str, RefusedTopic] = field(default_factory=dict)
    disk_until: float = float("-inf")

    def rests(self, topic: str, *, now: float) -> bool:
        """Return whether a topic is not tried now, after a refusal."""
        return topic in self.refused and now < self.refused[topic].until

    @property
    def refusal(self) -> Words:
        """The reason of the topic refused first, "" if none is."""
        return next((one.reason for one in self.refused.values()), "")


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
        "headline": str(verdict.headline),
        "problem_count": len(verdict.problems),
        "problems": [
            {"kind": one.kind.value, "severity": one.severity.name.lower(), "text": str(one.sentence)}
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
        lanes: Callable[[], Sequence[LaneSnapshot]],
        verdict: Callable[[], Verdict],
        store: Store,
        clock: Clock,
        backoff: Backoff | None = None,
    ) -> None:
        """Build it without contact."""
        self._broker = broker
        self._topics = topics
        self._site_name = site_name
        self._version = version("edge-gateway")
        self._lanes = lanes
        self._verdict = verdict
        self._store = store
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
            (waiting,) = await self._store.read_cursors.unread([self._mark])
            self._status = replace(self._status, waiting=waiting)

    async def hold(self) -> ReadCursor:
        """Return the read mark; begin it at the newest event, if there is none. Raises StoreError."""
        if self._mark is None:
            marks = [mark for mark in await self._store.read_cursors.all() if mark.consumer == CONSUMER]
            if not marks:
                newest, now = await self._store.events.latest(limit=1), self._clock.wall().micros
                marks = [ReadCursor(CONSUMER, newest[0].id if newest else 0, read_at=now, began_at=now)]
                await self._store.read_cursors.save(marks)
            (self._mark,) = marks
        return self._mark

    async def recall(self) -> None:
        """Begin the read mark, so that the broker has everything from now on. Raises StoreError."""
        await self.hold()

    def runs(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return the loop by the name of its task."""
        return {"mqtt": self.run}

    async def run(self) -> None:
        """Connect, mirror, and connect again, until cancelled. The waits between tries have jitter."""
        failures = 0
        while True:
            began = self._clock.monotonic()
            try:
                await self._serve()
            except BrokerRefused as error:
                self._tell(ConnectionState.REFUSED, error.words)
            except BrokerAway as error:
                self._tell(ConnectionState.AWAY, error.words)
            except Exception as error:  # the task goes on whatever it is, and people must know
                log.exception("mirror_failed")
                why = text("mqtt.fault_of_gateway", kind=type(error).__name__)
                self._tell(ConnectionState.REFUSED, why)
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
        shown, version = BrokerContents(), -1
        while True:
            is_more = False
            try:
                await self._show(line, shown)
                is_more = await self._send_events(line, shown)
            except BrokerAway as error:
                line.end(error)
                return
            except StoreError as error:
                log.debug("mirror_waits_for_disk", error=str(error))  # the store reports its own failure
                shown.disk_until = self._clock.monotonic() + _DISK_SECONDS
            self._tell(ConnectionState.REFUSED if shown.refused else ConnectionState.CONNECTED, shown.refusal)
            if not is_more:
                await asyncio.sleep(_BREATH_SECONDS)  # changes of one moment go together
                version = await self._store.changes.beyond(version, within=_VERDICT_SECONDS)

    async def _show(self, line: BrokerLine, shown: BrokerContents) -> None:
        """Send the kept messages that have changed or expire soon, and take away those of lanes that are gone.

        If the broker refuses one, it is tried again later; the others go on. Raises BrokerAway.
        """
        now, at, sent = self._clock.monotonic(), iso_utc(self._clock.wall().micros), shown.sent
        kept = {one.topic: one for one in self._kept(now)}
        due = [one for one in kept.values() if one.topic not in sent or not sent[one.topic].is_still(one, now=now)]
        messages = [
            *(() if shown.is_there else (self._presence("online"),)),
            *(one.message(at=at) for one in due),
            *(MqttMessage(topic=topic, payload=b"", kept=True) for topic in sorted(sent.keys() - kept.keys())),
        ]
        messages = [message for message in messages if not shown.rests(message.topic, now=now)]
        for message, refusal in zip(messages, await line.put(messages), strict=True):
            topic = message.topic
            self._note(shown, topic, refusal)
            if refusal is not None:
                continue
            if topic in kept:
                sent[topic] = Sent(kept[topic].sign, now)
            elif sent.pop(topic, None) is None:
                shown.is_there = True
        for topic in shown.refused.keys() - kept.keys() - sent.keys() - {self._topics.status, self._topics.event}:
            del shown.refused[topic]  # of a lane that is gone

    def _note(self, shown: BrokerContents, topic: str, refusal: BrokerRefused | None) -> None:
        """Note the broker's answer for a topic."""
        if refusal is None:
            shown.refused.pop(topic, None)
            return
        times = 1 + (shown.refused[topic].times if topic in shown.refused else 0)
        shown.refused[topic] = RefusedTopic(refusal.words, times, self._clock.monotonic() + self._backoff.wait(times))

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

    def _presence(self, word: str) -> MqttMessage:
        return MqttMessage(topic=self._topics.status, payload=word.encode(), kept=True, content_type=_WORD)

    async def _send_events(self, line: BrokerLine, shown: BrokerContents) -> bool:
        """Send the next events, and move the mark up to the first one that the broker refuses.

        After a refusal that event is tried alone, so that no others are repeated. Return whether more may wait.
        Raises BrokerAway, StoreError.
        """
        topic, now = self._topics.event, self._clock.monotonic()
        if now < shown.disk_until or shown.rests(topic, now=now):
            return False
        limit = 1 if topic in shown.refused else MOST_IN_FLIGHT
        mark = await self.hold()
        rows = await self._store.events.json_after(mark.read_to, limit=limit)
        if not rows:
            self._note(shown, topic, None)
            return False
        box = await self._store.box_number()
        refusals = await line.put(
            [
                MqttMessage(topic=topic, payload=text.encode(), expiry_seconds=EVENT_EXPIRY_SECONDS, box=box)
                for _, text in rows
            ]
        )
        taken = next((place for place, refusal in enumerate(refusals) if refusal is not None), len(rows))
        self._note(shown, topic, refusals[taken] if taken < len(rows) else None)
        if taken:
            self._mark = replace(mark, read_to=rows[taken - 1][0], read_at=self._clock.wall().micros)
            await self._store.read_cursors.save([self._mark])
        return taken == limit

    def _tell(self, state: ConnectionState, reason: Words) -> None:
        before = self._status
        if (before.state, before.reason) == (state, reason):
            return
        if before.state is not state:
            self._since = self._clock.monotonic()
        self._status = replace(before, state=state, reason=reason)
        log.info("mqtt_line", state=state.value, broker=self._status.broker, reason=str(reason))
        self._store.changes.bump()
