"""The heartbeat: how the gateway is, in the fleet's bucket; on each change, and once a minute."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from gateway.fleet.line import FleetLine, FleetRefused, SubjectMoved
from gateway.fleet.messages import Outgoing
from gateway.fleet.names import FleetName
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock
from gateway.store import Store

EVERY_SECONDS: Final = 60.0
AWAY_SECONDS: Final = 150.0
"""The age from which a heartbeat says that its gateway is away."""
_MOST_PROBLEMS = 20


class ProblemTold(BaseModel):
    """A problem in a heartbeat."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: str
    severity: str
    text: str


class Beat(BaseModel):
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

    async def _beat(self, verdict: Verdict) -> Beat:
        newest = await self.store.events.latest(limit=1)
        return Beat(
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
