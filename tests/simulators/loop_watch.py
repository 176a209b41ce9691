"""The time for which single callbacks hold up the event loop by their own doing.

What counts is the time that a callback computes, and the time that it waits for something else than a processor: a
disk, a socket, a lock, a sleep. The time for which the thread was ready and others had the processor does not count, so
that load on the machine is not taken for a fault of the program.

What the machine does to a program that computes cannot all be told from the program's own doing: a wait for another
thread that has no processor, one that is just being started, one that holds the interpreter; memory that the system
first has to find; a processor that the machine below takes away. It does not come again and again: one short hold is
let go, and whoever watches a thing several times remembers its place, where a second one counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_SHORT = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Held:
    """One callback's share: seconds, whether it waited for most of them, what it was, and the name of its code."""

    seconds: float
    waited: bool
    what: str
    place: str


@dataclass
class Watched:
    """The callbacks that took longer than `limit`, as they came."""

    limit: float
    too_long: list[Held] = field(default_factory=list)

    def let_go(self) -> Held | None:
        """The only hold there was, if it was a short one: it may be the machine's doing."""
        return self.too_long[0] if len(self.too_long) == 1 and self.too_long[0].seconds < _SHORT else None

    def worst(self) -> Held | None:
        """The longest of those that are a fault of the program, or None."""
        if self.let_go() is not None:
            return None
        return max(self.too_long, key=lambda held: held.seconds, default=None)


@contextlib.contextmanager
def watch_callbacks(*, limit: float) -> Iterator[Watched]:
    """Meanwhile every callback of the loops of this thread is measured. Garbage is collected afterwards."""
    watched = Watched(limit)
    usual = asyncio.Handle._run
    clock = _Clock()

    def measured(handle: asyncio.Handle) -> None:
        before = clock.read()
        usual(handle)
        if asyncio.Handle._run is not measured:  # it was this callback that ended the watch
            return
        after = clock.read()
        seconds = after.own_since(before)
        if seconds > limit and after.waits > before.waits:
            seconds = max(after.computed - before.computed, seconds - _ready_of_threads_since(before.wall))
        if seconds > limit:
            watched.too_long.append(_held(handle, seconds, after.computed - before.computed))

    gc.disable()
    asyncio.Handle._run = measured
    try:
        yield watched
    finally:
        asyncio.Handle._run = usual
        clock.close()
        gc.enable()


@dataclass(frozen=True)
class _Reading:
    """Clocks of the thread at one instant: all time, its own computing, its readiness without processor, its waits."""

    wall: float
    computed: float
    ready: float
    waits: int

    def own_since(self, before: _Reading) -> float:
        computed = self.computed - before.computed
        if self.waits == before.waits:
            return computed  # it never let go of the processor by itself
        return max(computed, self.wall - before.wall - (self.ready - before.ready))


class _Clock:
    def __init__(self) -> None:
        try:
            self._standing = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:  # a kernel without these figures
            self._standing = -1

    def read(self) -> _Reading:
        return _Reading(
            wall=time.monotonic(),
            computed=time.thread_time(),
            ready=self._ready(),
            waits=resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw,
        )

    def close(self) -> None:
        if self._standing >= 0:
            os.close(self._standing)

    def _ready(self) -> float:
        if self._standing < 0:
            return 0.0
        return int(os.pread(self._standing, 100, 0).split()[1]) / 1e9


def _ready_of_threads_since(wall: float) -> float:
    """Add up how long this process's threads that began since then, and still run, were ready but without processor.

    A callback that starts a child waits for the thread that forks it, which holds the interpreter's lock meanwhile.
    """
    ready = 0.0
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it ended meanwhile
            began = int((thread / "stat").read_text().rpartition(")")[2].split()[19]) / _TICKS
            if began + 1 / _TICKS >= wall:
                ready += int((thread / "schedstat").read_text().split()[1]) / 1e9
    return ready


def _held(handle: asyncio.Handle, seconds: float, computed: float) -> Held:
    step = getattr(handle._callback, "__self__", None)
    code = step.get_coro() if isinstance(step, asyncio.Task) else handle._callback
    return Held(
        seconds=seconds,
        waited=computed < seconds / 2,
        what=repr(step if isinstance(step, asyncio.Task) else handle),
        place=getattr(code, "__qualname__", type(code).__name__),
    )
