"""The box: it runs one gateway after the other on the same disk, through stops and power cuts."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable, Mapping
from typing import Protocol

from drivers.contract import Gate
from simulation.virtual_site.disk import CutAt, Disk
from simulation.virtual_site.inputs import SimulatedInputs
from simulation.virtual_site.lane_field import LaneField
from simulation.virtual_site.life import Around, Life, Liveness
from simulation.virtual_site.witness import Witness

_COMMIT_WITHIN = 30.0


class GateMaker(Protocol):
    """A function that makes the driver of a lane's gate for one life."""

    def __call__(self, *, field: LaneField, witness: Witness, dice: random.Random, alive: Callable[[], bool]) -> Gate:
        """Make one driver; `alive` says whether this life of the gateway still goes on."""
        ...


class Box:
    """The box: one life after the other, until `end`.

    Attributes:
        life: the present life, or the last one while the box is off.
        up_since: the instant at which the present life's lanes began.
    """

    def __init__(
        self, *, around: Around, disk: Disk, fields: Mapping[int, LaneField], gate: GateMaker, dice: random.Random
    ) -> None:
        self._around = around
        self._disk = disk
        self._fields = fields
        self._gate = gate
        self._dice = dice
        self._off = 1.0
        self._over = False
        self._proven = 0
        self._number = 0
        self._dead = asyncio.Event()
        self.life = self._next_life()
        self.up_since = float("inf")

    @property
    def is_up(self) -> bool:
        """True while lanes are under control."""
        return self.life.up

    async def run(self) -> None:
        """Run one life after the other, until `end`. A box that is off then stays off."""
        while not self._over:
            folder = self._disk.folder
            self.up_since = self._around.clock.monotonic()
            await self.life.live()
            self._proven = self.life.proven
            if self._disk.folder != folder:
                shutil.rmtree(folder)
            if not self._over:
                await asyncio.sleep(self._off)
                self._disk.restarted()
                self.life = self._next_life()

    def restart(self, *, off: float) -> None:
        """Stop in order, and start again after `off` seconds."""
        self._off = off
        self.life.stop()

    async def cut(self, kind: CutAt, *, off: float) -> None:
        """Cut the power, within the next commit or now, and start again after `off` seconds."""
        if not self.life.up:
            return
        self._off = off
        life = self.life
        if kind is not CutAt.REST:
            self._dead.clear()
            self._disk.cut_at_next_commit(kind, self._die_of_commit)
            try:
                async with asyncio.timeout(_COMMIT_WITHIN):
                    await self._dead.wait()
            except TimeoutError:
                pass
            else:
                return
        if life is self.life and life.up:
            self._disk.cut_now()
            life.die()

    def end(self) -> None:
        """Stop in order, for good."""
        self._over = True
        self.life.stop()

    def _die_of_commit(self) -> None:
        self.life.die()
        self._dead.set()

    def _next_life(self) -> Life:
        self._number += 1
        liveness = Liveness()

        def alive() -> bool:
            return liveness.alive

        gates = {
            field.gate_id: self._gate(field=field, witness=self._around.witness, dice=self._dice, alive=alive)
            for field in self._fields.values()
        }
        modules = {
            number: SimulatedInputs(
                field=field,
                module_id=number,
                witness=self._around.witness,
                monotonic=self._around.clock.monotonic,
                dice=self._dice,
                alive=alive,
            )
            for field in self._fields.values()
            for number in field.modules
        }
        return Life(
            around=self._around,
            folder=self._disk.folder,
            boot=f"boot{self._number}",
            liveness=liveness,
            gates=gates,
            modules=modules,
            proven=self._proven,
        )
