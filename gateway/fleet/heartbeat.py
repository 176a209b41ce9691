"""The heartbeat: how the gateway is, in the fleet's bucket; on each change, and once a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, ConfigDict

from gateway.fleet.line import FleetLine
from gateway.fleet.messages import Outgoing
from gateway.fleet.names import FleetName
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock
from gateway.store import Changes
from gateway.store.events.events import Events

EVERY_SECONDS: Final = 60.0
AWAY_SECONDS: Final = 150.0
"""The age from which a heartbeat says that its gateway is away."""
_SOONEST_SECONDS = 2.0
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
    last_event_at: int | None = None
    waiting: int


@dataclass(kw_only=True)
class Heartbeat:
    """The sender of heartbeats. `waiting` returns how many records are not in the stream yet."""

    name: str = field(default="heartbeat", init=False)
    fleet_name: FleetName
    site_name: str
    version: str
    verdict: Callable[[], Verdict]
    events: Events
    waiting: Callable[[], int]
    changes: Changes
    clock: Clock

    async def run(self, line: FleetLine, works: Callable[[], None]) -> None:
        """Send heartbeats until cancelled."""
        told: tuple[object, ...] | None = None
        told_at, version = float("-inf"), -1
        while True:
            verdict = self.verdict()
            now, signs = self.clock.monotonic(), tuple(_signs(verdict))
            if signs != told or now - told_at >= EVERY_SECONDS:
                beat = await self._beat(verdict)
                await line.put([Outgoing(self.fleet_name.heartbeat, beat.model_dump_json().encode())])
                works()
                told, told_at = signs, now
            await asyncio.sleep(_SOONEST_SECONDS)  # problems that come together are told together
            left = max(0.0, told_at + EVERY_SECONDS - self.clock.monotonic())
            version = await self.changes.beyond(version, within=left)

    async def _beat(self, verdict: Verdict) -> Beat:
        newest = await self.events.latest(limit=1)
        return Beat(
            version=self.version,
            site=self.site_name,
            ready=not verdict.not_ready,
            headline=verdict.headline,
            problem_count=len(verdict.problems),
            problems=tuple(
                ProblemTold(kind=one.kind.value, severity=one.severity.name.lower(), text=one.sentence)
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
