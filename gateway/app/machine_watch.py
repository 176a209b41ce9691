"""The watch over this machine's disks and memory, for the list of problems."""

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
    """Detection of low memory: at least 90 % used at three checks in a row, until it is below 80 %.

    Making a clip or a backup takes memory for a moment, which is no problem; therefore three checks.
    """

    looks: int = 0
    high: Memory | None = None

    def judged(self, now: Memory | None) -> Memory | None:
        """Take in another reading; return it while memory is low, else None."""
        share = 0.0 if now is None else now.share
        self.looks = self.looks + 1 if share >= _HIGH_SHARE else 0
        if share < _WELL_SHARE:
            self.high = None
        elif self.looks >= _HIGH_LOOKS or self.high is not None:
            self.high = now
        return self.high


@dataclass(kw_only=True)
class MachineWatch:
    """The watch, which reads disks and memory every two seconds, each in a thread, so that a hung disk blocks nothing.

    Attributes:
        folders: the gateway's folders, by the names that people see.
        read_disks, read_memory: read the facts; they block.
    """

    folders: Mapping[str, Path]
    read_disks: Callable[[Mapping[str, Path]], DiskFacts] = disk_facts
    read_memory: Callable[[], Memory | None] = memory
    _disks: DiskFacts = field(default_factory=DiskFacts)
    _memory: MemoryJudge = field(default_factory=MemoryJudge)

    @property
    def disks(self) -> DiskFacts:
        """The last reading of the disks."""
        return self._disks

    @property
    def memory_high(self) -> Memory | None:
        """The memory in use while memory is low, else None."""
        return self._memory.high

    async def run(self) -> None:
        """Read disks and memory until cancelled."""
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
