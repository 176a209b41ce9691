"""The watch over the machine: disks and memory as they are, and memory only once it stays high."""

from __future__ import annotations

import asyncio

from waiting import until

from gateway.app.machine_watch import MachineWatch, MemoryJudge
from gateway.runtime.machine_state import DiskFacts, Memory


def judged(*shares):
    judge = MemoryJudge()
    return [judge.judged(Memory(int(share * 100), 100, of_unit=True)) is not None for share in shares]


def test_memory_is_high_once_nine_tenths_are_used_three_times_in_a_row():
    assert judged(0.9, 0.95, 0.9) == [False, False, True]
    assert judged(0.9, 0.9, 0.89, 0.9, 0.9) == [False] * 5, "a clip that is made takes memory for a moment"


def test_memory_stays_high_until_it_is_below_eight_tenths():
    assert judged(0.9, 0.9, 0.9, 0.85, 0.8, 0.79, 0.9) == [False, False, True, True, True, False, False]


def test_a_machine_that_does_not_tell_is_well():
    assert MemoryJudge().judged(None) is None


async def test_it_shows_what_was_read_last():
    watch = MachineWatch(
        folders={}, read_disks=lambda _: DiskFacts(read_only=("media folder",)), read_memory=lambda: None
    )
    assert watch.disks == DiskFacts()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        running = group.create_task(watch.run())
        await until(lambda: watch.disks.read_only)
        running.cancel()
    assert watch.memory_high is None
