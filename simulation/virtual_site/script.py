"""The script of a run: what happens around the box. Time jumps whenever nothing is under way."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from gateway.runtime.supervision import Supervisor
from simulation.far_ends.vehicles import DrivingLane
from simulation.virtual_site.lane_field import SETTLE
from simulation.virtual_site.virtual_time import VirtualLoop
from simulation.virtual_site.world import World

FOREVER = float("inf")
_ENDS_WITHIN = 1800.0  # a box that is off stays off for minutes first


class Script(ABC):
    """Happenings, one after the other.

    Attributes:
        busy: the number of happenings under way; time does not jump while there is one.
    """

    def __init__(self, *, world: World, tasks: Supervisor, awake_before: float = 0.0) -> None:
        """Prepare the script. `awake_before`: time does not jump over this many seconds before each happening."""
        self.busy = 0
        self.tasks = tasks
        self._world = world
        self._awake_before = awake_before
        self._next_at = 0.0
        self._drives = {
            number: DrivingLane(
                barrier=field.barrier,
                reader=HeldReader(partial(self._present, number)),
                monotonic=world.now,
                look_seconds=world.plan.poll,
            )
            for number, field in world.fields.items()
        }

    @abstractmethod
    async def run(self) -> None:
        """Let everything happen; return once it has come to rest."""

    def quiet_until(self) -> float:
        """Return the instant to which time may jump; minus infinity while something is under way."""
        now, box = self._world.now(), self._world.box
        if self.busy or self._next_at <= now or not box.is_up or now - box.up_since < SETTLE:
            return -FOREVER
        life = box.life
        if self._world.disk.hangs_until + SETTLE > now or life.lanes.recorder.waiting or life.central_sync.busy:
            return -FOREVER
        if not all(field.is_quiet(now, SETTLE) for field in self._world.fields.values()):
            return -FOREVER
        return self._next_at - self._awake_before

    async def wait_until(self, at: float) -> None:
        """Sleep until the next happening is due."""
        self._next_at = max(at, self._world.now())
        await asyncio.sleep(self._next_at - self._world.now())
        self._next_at = self._world.now()

    def _present(self, lane: int, card: str) -> None:
        """Hold a card to the reader of a lane."""
        if self._world.box.is_up:
            self._world.box.life.present(self._world.fields[lane].reader_id, card)

    async def counted(self, doing: Awaitable[None]) -> None:
        """Await a happening, and count as busy meanwhile."""
        self.busy += 1
        try:
            await doing
        finally:
            self.busy -= 1


class HeldReader:
    """The reader of a lane, as drivers of vehicles meet it."""

    def __init__(self, read: Callable[[str], None]) -> None:
        self._read = read

    def present(self, card: str) -> None:
        """Hold a card to the reader."""
        self._read(card)


S = TypeVar("S", bound=Script)


async def play(world: World, *, loop: VirtualLoop, script_with: Callable[[Supervisor], S]) -> S:
    """Run a script beside the box until either ends, then stop the box in order. Raises TimeoutError if it runs on.

    Args:
        world: the box, which runs the gateways, and its surroundings.
        loop: the virtual loop on which this runs.
        script_with: the function that makes the script, whose tasks belong to the given supervisor.
    """
    async with Supervisor(clock=world.clock) as outside:
        living = outside.once("gateway", world.box.run())
        script = script_with(outside)
        loop.quiet_until = script.quiet_until
        playing = outside.once("script", script.run())
        await asyncio.wait({living, playing}, return_when=asyncio.FIRST_COMPLETED)
        world.box.end()
        async with asyncio.timeout(_ENDS_WITHIN):
            await living
    return script
