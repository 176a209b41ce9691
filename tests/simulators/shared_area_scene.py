"""Gateways that share an area at a real server: each with its presence, its part in the area, and its connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from at_work import running
from fleet_scene import connection
from waiting import until

from gateway.domain.presence import Movement, Presence, Way
from gateway.domain.shared_areas import Contradiction
from gateway.fleet.connection import FleetConnection
from gateway.fleet.names import FleetName
from gateway.fleet.shared_areas import SharedAreasLine
from gateway.lanes.claims import ClaimOutcome
from gateway.lanes.shared_areas import SharedAreas
from gateway.runtime.clock import Clock, SystemClock

INWARD = Way(enters="garage")


@dataclass
class Member:
    """One gateway of those that share."""

    name: str
    limit: int | None = None
    claim_seconds: float = 10.0
    clock: Clock = field(default_factory=SystemClock)
    presence: Presence = field(default_factory=Presence)
    told: list[tuple[str, Contradiction]] = field(default_factory=list)
    overfull: int = 0

    def __post_init__(self) -> None:
        self.shared = SharedAreas(
            own=self.name,
            areas=["garage"],
            presence=lambda: self.presence,
            clock=self.clock,
            claim_seconds=self.claim_seconds,
            tell=lambda holder, found, made_apart: self.told.append((holder, found)),
            counted=self._counted,
        )
        self.shared.recalled()

    def _counted(self) -> None:
        self.overfull += self.presence.count("garage") > (self.limit or 1e9)

    def connection(self, url: str, **options) -> FleetConnection:
        """Its connection, to be run."""
        name = FleetName("north", self.name)
        return connection(url, SharedAreasLine(fleet_name=name, shared=self.shared), name=name, **options)

    async def claim(self, holder: str, way: Way = INWARD):
        """Claim; the claim and its outcome."""
        own = self.shared.ask(holder, way, limit=self.limit)
        if own is None:
            return None, ClaimOutcome.AWAY
        return own, await self.shared.outcome(own, until=self.clock.monotonic() + self.claim_seconds)

    def passes(self, holder: str, way: Way = INWARD, *, at: int | None = None) -> None:
        """A vehicle passes, and that is on disk."""
        movement = Movement(way, self.clock.wall().micros if at is None else at, holder=holder, shared=True)
        self.presence.move(movement)
        self.shared.moved([movement])


@asynccontextmanager
async def sharing(*members: Member, url: str) -> AsyncIterator[None]:
    """Members that are connected and know the records."""
    async with running(*(member.connection(url).run() for member in members)):
        await until(lambda: not any(member.shared.is_apart for member in members))
        yield
