"""Vehicles of the simulated field: they come, present a card, and drive through when the gate opens."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from simulation.far_ends.barrier import Barrier

R_co = TypeVar("R_co", bound="Presents", covariant=True)

_OPEN_ENOUGH = 0.9
_LOOK_SECONDS = 0.05


class Presents(Protocol):
    """A reader that a card can be held to."""

    def present(self, card: str) -> None:
        """Hold this card to the reader."""
        ...


class Outcome(StrEnum):
    """The outcome of a drive."""

    PASSED = "passed"
    TURNED_AWAY = "turned_away"
    BACKED_OUT = "backed_out"


@dataclass(frozen=True, slots=True)
class Manners:
    """The times of a driver's behaviour, in seconds."""

    finds_card: float = 0.6
    waits_for_gate: float = 6.0
    starts: float = 0.4
    rolls: float = 0.9


class DrivingLane(Generic[R_co]):
    """One lane of the simulated field. Vehicles queue: one at a time is at the gate."""

    def __init__(
        self,
        *,
        barrier: Barrier,
        reader: R_co,
        monotonic: Callable[[], float] = time.monotonic,
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        """Make a lane. `look_seconds` is the interval at which a driver looks whether the arm is up."""
        self.barrier = barrier
        self.reader = reader
        self._monotonic = monotonic
        self._look_seconds = look_seconds
        self._gate = asyncio.Lock()
        self.waiting = 0

    async def drive(self, card: str, *, backs_out: bool = False, manners: Manners | None = None) -> Outcome:
        """Drive one vehicle with one card, from the loop in front until it has left; return the outcome."""
        manners = manners or Manners()
        self.waiting += 1
        try:
            async with self._gate:
                return await self._drive(card, backs_out=backs_out, manners=manners)
        finally:
            self.waiting -= 1

    async def _drive(self, card: str, *, backs_out: bool, manners: Manners) -> Outcome:
        self._arming(occupied=True)
        try:
            await asyncio.sleep(manners.finds_card)
            self.reader.present(card)
            if not await self._opens(within=manners.waits_for_gate):
                return Outcome.TURNED_AWAY
            await asyncio.sleep(manners.starts)
            if backs_out:
                return Outcome.BACKED_OUT
            self._under(occupied=True)
            await asyncio.sleep(manners.rolls)
            self._arming(occupied=False)
            await asyncio.sleep(manners.rolls)
            return Outcome.PASSED
        finally:
            self._arming(occupied=False)
            self._under(occupied=False)

    async def _opens(self, *, within: float) -> bool:
        until = self._monotonic() + within
        while self._monotonic() < until:
            if self.barrier.state(now=self._monotonic()).opening >= _OPEN_ENOUGH:
                return True
            await asyncio.sleep(self._look_seconds)
        return False

    def _arming(self, *, occupied: bool) -> None:
        self.barrier.set_arming_loop(occupied=occupied, now=self._monotonic())

    def _under(self, *, occupied: bool) -> None:
        self.barrier.set_closing_loop(occupied=occupied, now=self._monotonic())


@dataclass(frozen=True, slots=True)
class Mix:
    """Traffic: good and bad cards, the share of bad ones and of drivers who change their mind."""

    good: tuple[str, ...]
    bad: tuple[str, ...]
    bad_share: float = 0.2
    back_out_share: float = 0.08
    shortest_pause: float = 4.0
    longest_pause: float = 10.0


class Parked:
    """The vehicles of the traffic inside the car park: as many leave as have come in."""

    def __init__(self) -> None:
        self._inside = asyncio.Semaphore(0)

    def came(self) -> None:
        """Take in one vehicle."""
        self._inside.release()

    async def leaves(self) -> None:
        """Let one vehicle go to the exit, as soon as there is one."""
        await self._inside.acquire()


async def keep_coming(lane: DrivingLane[Presents], mix: Mix, *, dice: random.Random, parked: Parked) -> None:
    """Send vehicles into the car park through one lane until cancelled."""
    while True:
        await asyncio.sleep(dice.uniform(mix.shortest_pause, mix.longest_pause))
        if await _send_one(lane, mix, dice) is Outcome.PASSED:
            parked.came()


async def keep_leaving(lane: DrivingLane[Presents], mix: Mix, *, dice: random.Random, parked: Parked) -> None:
    """Send the vehicles inside out through one lane until cancelled; one that does not get out tries again."""
    while True:
        await parked.leaves()
        await asyncio.sleep(dice.uniform(mix.shortest_pause, mix.longest_pause))
        if await _send_one(lane, mix, dice) is not Outcome.PASSED:
            parked.came()


async def _send_one(lane: DrivingLane[Presents], mix: Mix, dice: random.Random) -> Outcome:
    bad = dice.random() < mix.bad_share
    card = dice.choice(mix.bad if bad else mix.good)
    return await lane.drive(card, backs_out=dice.random() < mix.back_out_share)
