"""The time of an operation by the program's own doing: load on the machine is not taken for slowness.

Seconds for which a thread of this process was ready and others had the processor do not count. Where two threads were
ready at once, both are taken off: on a busy machine it says too little rather than too much, on an idle one it is a
clock.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from processes import children_of

_LONGEST_END = 60.0


class Stopwatch:
    """Runs from when it is made. With `children`, what held up the processes that this one started is taken off too."""

    def __init__(self, *, children: bool = False) -> None:
        self._children = children
        self._ready = _ready_by_thread(children=children)
        self._began = time.monotonic()

    def seconds(self) -> float:
        """Seconds until now, without those in which others had the processor."""
        return time.monotonic() - self._began - self.held_up()

    def held_up(self) -> float:
        """Those in which others had it: what a bound on times that the program itself wrote down is moved by."""
        now = _ready_by_thread(children=self._children)
        return sum(ready - self._ready.get(thread, 0.0) for thread, ready in now.items())


def seconds_to_end(process: subprocess.Popen[bytes]) -> float:
    """Wait until a child ends; return the seconds until then, without those in which others had the processor."""
    watch, took = Stopwatch(children=True), 0.0
    while process.poll() is None:  # once it has ended, the system no longer tells how long it stood ready
        took = watch.seconds()
        assert took < _LONGEST_END, "it does not end"
        time.sleep(0.005)  # noqa: TID251  # looks again; nothing depends on how long this is
    return took


def _ready_by_thread(*, children: bool) -> dict[str, float]:
    """Seconds for which each thread was ready without a processor; empty on a kernel without these figures."""
    found = {}
    for process in _with_children(os.getpid()) if children else (os.getpid(),):
        for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                found[thread.parent.name] = int(thread.read_text().split()[1]) / 1e9
    return found


def _with_children(process: int) -> Iterator[int]:
    yield process
    for child in children_of(process):
        yield from _with_children(child)
