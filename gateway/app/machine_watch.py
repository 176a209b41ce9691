"""The watch over this machine: its disks and its memory, as frozen values for the list of problems."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gateway.runtime.machine_state import DiskFacts, Memory, disk_facts, memory

_LOOK_SECONDS = 2.0
_HIGH_SHARE = 0.9
_WELL_SHARE = 0.8
_HIGH_LOOKS = 3


@dataclass(slots=True)
class MemoryJudge:
    """Whether memory runs out: nine tenths are used at three looks in a row, over once it is below eight tenths.

    A clip that is made, or a backup, takes memory for a moment: that is no problem.
    """

    looks: int = 0
    high: Memory | None = None

    def judged(self, now: Memory | None) -> Memory | None:
        """Take in another look; return the memory in use while it runs out."""
        share = 0.0 if now is None else now.share
        self.looks = self.looks + 1 if share >= _HIGH_SHARE else 0
        if share < _WELL_SHARE:
            self.high = None
        elif self.looks >= _HIGH_LOOKS or self.high is not None:
            self.high = now
        return self.high


@dataclass(kw_only=True)
class MachineWatch:
    """Looks every two seconds, in a thread of its own: a disk that hangs holds up no other look.

    Attributes:
        folders: the gateway's folders, by their names for people.
        read_disks, read_memory: read the facts; blocking.
    """

    folders: Mapping[str, Path]
    read_disks: Callable[[Mapping[str, Path]], DiskFacts] = disk_facts
    read_memory: Callable[[], Memory | None] = memory
    _disks: DiskFacts = field(default_factory=DiskFacts)
    _memory: MemoryJudge = field(default_factory=MemoryJudge)

    @property
    def disks(self) -> DiskFacts:
        """The facts about disks as they were read last."""
        return self._disks

    @property
    def memory_high(self) -> Memory | None:
        """The memory in use while it runs out, else None."""
        return self._memory.high

    async def run(self) -> None:
        """Look until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_disks(), name="disk facts")
            group.create_task(self._watch_memory(), name="memory facts")

    async def _watch_disks(self) -> None:
        while True:
            self._disks = await asyncio.to_thread(partial(self.read_disks, self.folders))
            await asyncio.sleep(_LOOK_SECONDS)

    async def _watch_memory(self) -> None:
        while True:
            self._memory.judged(await asyncio.to_thread(self.read_memory))
            await asyncio.sleep(_LOOK_SECONDS)
