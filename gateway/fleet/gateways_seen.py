"""The gateways of the fleet, read from the bucket of heartbeats while somebody looks at the page."""

from __future__ import annotations

import asyncio
import secrets as randomness
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from pydantic import ValidationError

from gateway.domain.fleet_seen import FleetSeen, GatewaySeen, ProblemSeen
from gateway.fleet.heartbeat import AWAY_SECONDS, Beat
from gateway.fleet.line import FleetLine, FleetRefused
from gateway.fleet.messages import Kept
from gateway.fleet.names import BUCKET, BUCKET_STREAM
from gateway.runtime.clock import Clock

log = structlog.get_logger(__name__)

_KEYS = f"$KV.{BUCKET}."
_REST_SECONDS = 60.0
_AGAIN_SECONDS = 30.0
_MOST_AT_ONCE = 500


@dataclass(slots=True)
class _Entry:
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
    _entries: dict[str, _Entry] = field(default_factory=dict, init=False)
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

    def _take(self, kept: Kept) -> None:
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
        self._entries[name] = _Entry(kept.sequence, self._changes, seen)


def _seen(name: str, kept: Kept) -> GatewaySeen:
    """Read a heartbeat. Raises ValidationError."""
    beat = Beat.model_validate_json(kept.data)
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
