"""The script of a run: happenings beside the box, on time that jumps while nothing is unsettled."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from gateway.runtime.supervision import Supervisor
from gateway.simulation.disk import Disk
from gateway.simulation.lane_field import LaneField
from gateway.simulation.power import Box
from gateway.simulation.virtual_time import VirtualClock, VirtualLoop

SETTLE = 7.0
"""Seconds after which nothing is under way any more at a lane where nothing happened."""

FOREVER = float("inf")


class Script(ABC):
    """Happenings, one after the other.

    Attributes:
        busy: happenings under way; no moment is skipped while there is one.
    """

    def __init__(
        self,
        *,
        box: Box,
        clock: VirtualClock,
        disk: Disk,
        fields: Mapping[int, LaneField],
        tasks: Supervisor,
        awake_before: float = 0.0,
    ) -> None:
        """`awake_before`: seconds before each happening that are not skipped."""
        self.busy = 0
        self.tasks = tasks
        self._box = box
        self._clock = clock
        self._disk = disk
        self._fields = fields
        self._awake_before = awake_before
        self._next_at = 0.0

    @abstractmethod
    async def run(self) -> None:
        """Let everything happen; return once it has come to rest."""

    def quiet_until(self) -> float:
        """Return until when nothing happens that has not been settled; minus infinity while something does."""
        now, box = self._clock.monotonic(), self._box
        if self.busy or self._next_at <= now or not box.is_up or now - box.up_since < SETTLE:
            return -FOREVER
        life = box.life
        if self._disk.hangs_until + SETTLE > now or life.lanes.recorder.waiting or life.in_step.busy:
            return -FOREVER
        if not all(field.is_quiet(now, SETTLE) for field in self._fields.values()):
            return -FOREVER
        return self._next_at - self._awake_before

    async def wait_until(self, at: float) -> None:
        """Sleep until the next happening is due."""
        self._next_at = max(at, self._clock.monotonic())
        await asyncio.sleep(self._next_at - self._clock.monotonic())
        self._next_at = self._clock.monotonic()

    async def counted(self, doing: Awaitable[None]) -> None:
        """Await a happening, and be busy meanwhile."""
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
        """Hold a card to a reader."""
        self._read(card)


S = TypeVar("S", bound=Script)


async def play(box: Box, *, loop: VirtualLoop, clock: VirtualClock, script_with: Callable[[Supervisor], S]) -> S:
    """Run a script beside the box until either ends, then stop the box in order.

    Args:
        box: what runs the gateways.
        loop: the loop that runs all this.
        clock: of the same loop.
        script_with: makes the script, whose tasks belong to this supervisor.
    """
    async with Supervisor(clock=clock) as outside:
        living = outside.once("gateway", box.run())
        script = script_with(outside)
        loop.quiet_until = script.quiet_until
        playing = outside.once("script", script.run())
        await asyncio.wait({living, playing}, return_when=asyncio.FIRST_COMPLETED)
        box.end()
        await living
    return script
