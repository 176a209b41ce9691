"""The heartbeat: how the gateway is, in the fleet's bucket; on each change, and once a minute.

While somebody looks at the page of the fleet, `GatewaysSeen` reads all gateways from that bucket.
"""

from __future__ import annotations

import asyncio
import secrets as randomness
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.domain.server_lines import FleetSeen, GatewaySeen, ProblemSeen
from gateway.fleet.line import FleetLine, FleetRefused, SubjectMoved
from gateway.fleet.names import BUCKET, BUCKET_STREAM, FleetName, Outgoing, StreamMessage
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock
from gateway.store import Store

EVERY_SECONDS: Final = 60.0
AWAY_SECONDS: Final = 150.0
"""The age from which a heartbeat says that its gateway is away."""
_MOST_PROBLEMS = 20

log = structlog.get_logger(__name__)

_KEYS = f"$KV.{BUCKET}."
_REST_SECONDS = 60.0
_AGAIN_SECONDS = 30.0
_MOST_AT_ONCE = 500


class ProblemTold(BaseModel):
    """A problem in a heartbeat."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: str
    severity: str
    text: str


class HeartbeatValue(BaseModel):
    """The value of a gateway's key in the bucket. `problems` are the worst ones, `problem_count` counts all.

    `last_event_at` is in wall micros; older gateways do not send it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: str
    site: str
    ready: bool
    headline: str
    problem_count: int
    problems: tuple[ProblemTold, ...]
    last_event: int
    last_event_at: Annotated[int, Field(ge=0, lt=2**57)] | None = None
    waiting: int


@dataclass(kw_only=True)
class Heartbeat:
    """The sender of heartbeats. `waiting` returns how many records are not in the stream yet.

    Problems that come within `soonest_seconds` are told together.

    A heartbeat names the one before it, so that the server refuses it if somebody else has sent one with this
    gateway's name. Once may be a person who has emptied the key; twice is another gateway.
    """

    name: str = field(default="heartbeat", init=False)
    fleet_name: FleetName
    site_name: str
    version: str
    verdict: Callable[[], Verdict]
    store: Store
    waiting: Callable[[], int]
    clock: Clock
    soonest_seconds: float = 2.0
    _last: tuple[FleetLine, int] | None = field(default=None, init=False)
    _overtaken: deque[float] = field(default_factory=lambda: deque(maxlen=2), init=False)

    async def run(self, line: FleetLine, works: Callable[[], None]) -> None:
        """Send heartbeats until cancelled."""
        told: tuple[object, ...] | None = None
        told_at, version = float("-inf"), -1
        while True:
            verdict = self.verdict()
            now, signs = self.clock.monotonic(), tuple(_signs(verdict))
            if signs != told or now - told_at >= EVERY_SECONDS:
                beat = await self._beat(verdict)
                await self._put(line, Outgoing(self.fleet_name.heartbeat, beat.model_dump_json().encode()))
                if self._is_doubled(now):
                    raise FleetRefused(
                        f"another gateway is {self.fleet_name} too: give each its own `gateway` in [fleet]"
                    )
                works()
                told, told_at = signs, now
            await asyncio.sleep(self.soonest_seconds)
            left = max(0.0, told_at + EVERY_SECONDS - self.clock.monotonic())
            version = await self.store.changes.beyond(version, within=left)

    async def _put(self, line: FleetLine, beat: Outgoing) -> None:
        """Put a heartbeat, and note if another one came after this gateway's last."""
        known = self._last is not None and self._last[0] is line
        try:
            (sequence,) = await line.put([replace(beat, after=self._last[1]) if self._last and known else beat])
        except SubjectMoved:
            self._overtaken.append(self.clock.monotonic())
            (sequence,) = await line.put([beat])
        self._last = line, sequence

    def _is_doubled(self, now: float) -> bool:
        """Return whether another gateway has this one's name: it is not away, and was heard between this one's."""
        return (
            len(self._overtaken) > 1
            and now - self._overtaken[0] < 2 * AWAY_SECONDS
            and (now - self._overtaken[1] < AWAY_SECONDS)
        )

    async def _beat(self, verdict: Verdict) -> HeartbeatValue:
        newest = await self.store.events.latest(limit=1)
        return HeartbeatValue(
            version=self.version,
            site=self.site_name,
            ready=not verdict.not_ready,
            headline=str(verdict.headline),
            problem_count=len(verdict.problems),
            problems=tuple(
                ProblemTold(kind=one.kind.value, severity=one.severity.name.lower(), text=str(one.sentence))
                for one in verdict.problems[:_MOST_PROBLEMS]
            ),
            last_event=newest[0].id if newest else 0,
            last_event_at=newest[0].date_at if newest else None,
            waiting=self.waiting(),
        )


def _signs(verdict: Verdict) -> Iterator[object]:
    """Yield what makes a change: sentences are left out, because they hold figures that change all the time."""
    for problem in verdict.problems:
        yield problem.key
        yield problem.lanes


@dataclass(slots=True)
class _BucketEntry:
    """A key of the bucket: its present value, None once it is gone, and the number of its last change here."""

    sequence: int
    change: int
    seen: GatewaySeen | None


@dataclass(kw_only=True)
class GatewaysSeen:
    """The reader of the bucket. It reads only while it is asked, and for a minute after."""

    name: str = field(default="gateways", init=False)
    clock: Clock
    _run: str = field(default_factory=lambda: randomness.token_hex(4), init=False)
    _entries: dict[str, _BucketEntry] = field(default_factory=dict, init=False)
    _changes: int = field(default=0, init=False)
    _complete: bool = field(default=False, init=False)
    _fault: str = field(default="", init=False)
    _asked_at: float = field(default=float("-inf"), init=False)
    _asked: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def since(self, mark: str) -> FleetSeen:
        """Return what has changed since a mark, "" for everything. Never waits."""
        self._asked_at = self.clock.monotonic()
        self._asked.set()
        run, _, number = mark.partition("-")
        known = run == self._run and number.isdecimal()
        changed = {name: one for name, one in self._entries.items() if not known or one.change > int(number)}
        return FleetSeen(
            mark=f"{self._run}-{self._changes}",
            anew=not known,
            seen=tuple(one.seen for one in changed.values() if one.seen is not None),
            gone=tuple(name for name, one in changed.items() if one.seen is None),
            complete=self._complete,
            fault=self._fault,
            away_seconds=AWAY_SECONDS,
        )

    async def run(self, line: FleetLine, works: Callable[[], None]) -> None:
        """Read the bucket whenever somebody asks, until cancelled. The page says why it cannot be read."""
        works()
        while True:
            await self._asked.wait()
            try:
                await self._follow(line)
            except FleetRefused as error:
                self._fault = str(error)
                await asyncio.sleep(_AGAIN_SECONDS)
            self._asked.clear()

    async def _follow(self, line: FleetLine) -> None:
        async for batch in line.follow(BUCKET_STREAM, f"{_KEYS}>", after=0, most=_MOST_AT_ONCE):
            self._fault = ""
            for kept in batch:
                self._take(kept)
            self._complete = self._complete or len(batch) < _MOST_AT_ONCE
            if self.clock.monotonic() - self._asked_at > _REST_SECONDS:
                return

    def _take(self, kept: StreamMessage) -> None:
        name = kept.subject.removeprefix(_KEYS)
        before = self._entries.get(name)
        if before is not None and before.sequence == kept.sequence:
            return
        try:
            seen = _seen(name, kept) if kept.data else None  # a key that was deleted has an empty value
        except ValidationError:
            log.warning("heartbeat_unreadable", key=kept.subject)
            return
        self._changes += 1
        self._entries[name] = _BucketEntry(kept.sequence, self._changes, seen)


def _seen(name: str, kept: StreamMessage) -> GatewaySeen:
    """Read a heartbeat. Raises ValidationError."""
    beat = HeartbeatValue.model_validate_json(kept.data)
    return GatewaySeen(
        name=name,
        at=kept.at,
        site=beat.site,
        version=beat.version,
        ready=beat.ready,
        headline=beat.headline,
        problem_count=beat.problem_count,
        problems=tuple(ProblemSeen(one.severity, one.text) for one in beat.problems),
        last_event=beat.last_event,
        last_event_at=beat.last_event_at,
        waiting=beat.waiting,
    )
