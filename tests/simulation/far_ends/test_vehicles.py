"""The demo's traffic: vehicles leave as fast as they come."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.vehicles import DrivingLane, Mix, Parked, keep_coming, keep_leaving
from simulation.virtual_site.virtual_time import VirtualLoop

HOUR = 3600.0
LIMIT = 40
"""The places of the demo's car park."""


class ClosingBarrier(Barrier):
    """A barrier that is told to close behind each vehicle."""

    def set_closing_loop(self, *, occupied, now):
        super().set_closing_loop(occupied=occupied, now=now)
        if not occupied:
            self.command(Wish.CLOSE, now=now)


class Gate:
    """A barrier that opens for each good card while there is room, as its lane's gateway would."""

    def __init__(self, loop, inside, *, by):
        self.barrier, self._loop, self._inside, self._by = ClosingBarrier(), loop, inside, by
        self.refused = 0
        self.lane = DrivingLane(barrier=self.barrier, reader=self, monotonic=loop.time, look_seconds=0.25)

    def present(self, card):
        if card == "bad" or (self._by > 0 and self._inside[0] >= LIMIT):
            self.refused += card != "bad"
            return
        self.barrier.command(Wish.OPEN, now=self._loop.time())


@pytest.fixture
def loop():
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_the_car_park_does_not_fill_up_in_two_hours(loop):
    inside, parked = [0], Parked()
    entries = [Gate(loop, inside, by=1) for _ in range(2)]
    leaving = Gate(loop, inside, by=-1)
    took, let = parked.came, parked.leaves
    mix = Mix(good=("good",), bad=("bad",))
    out = Mix(good=("good",), bad=("bad",), bad_share=0.1, shortest_pause=0.5, longest_pause=2.0)
    most = 0

    def came():
        nonlocal most
        inside[0] += 1
        most = max(most, inside[0])
        took()

    async def leaves():
        await let()
        inside[0] -= 1

    parked.came, parked.leaves = came, leaves

    async def traffic():
        drives = [keep_coming(one.lane, mix, dice=random.Random(n), parked=parked) for n, one in enumerate(entries)]
        drives.append(keep_leaving(leaving.lane, out, dice=random.Random(9), parked=parked))
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * HOUR):
                await asyncio.gather(*drives)

    loop.run_until_complete(traffic())
    assert sum(one.refused for one in entries) == 0
    assert 0 < most < LIMIT
