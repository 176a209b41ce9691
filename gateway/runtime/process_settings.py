"""Settings of this process: its end with its parent, its priority, and how it handles memory."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import importlib
import itertools
import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

_PR_SET_PDEATHSIG = 1
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt(3)
_LARGE_BYTES = 131_072
_COLLECT_SECONDS = 1.0
_FULL_EVERY = 8
_YOUNG, _ALL = 1, 2  # generations of garbage collection

_Made = TypeVar("_Made")


def tie_to_parent() -> None:
    """Make the kernel end this process (SIGTERM) when the process that started it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def lower_priority(*, niceness: int, out_of_memory: int) -> None:
    """Give this process a lower priority than the gateway's own, which runs the lanes.

    Its niceness sets the priority for the processor, and through the kernel also for the disk.

    Args:
        niceness: 0 to 19, higher than that of the gateway's process.
        out_of_memory: 0 to 1000; when memory runs out, the kernel ends the process with the highest number first.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(out_of_memory), "ascii")


def write_no_core_dump() -> None:
    """Make the kernel write no core dump of this process and its children, because memory holds secrets."""
    with contextlib.suppress(OSError, ValueError):  # the shipped unit sets the same limit, and forbids setting one
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def give_memory_back() -> None:
    """Make glibc return freed memory to the system, instead of keeping it per thread.

    It costs page faults for each large allocation. All threads allocate from one arena, because few of them allocate at
    the same time. Call it before any thread starts. It has no effect with another C library.
    """
    _set(_TRIM_THRESHOLD, _LARGE_BYTES)
    _set(_MMAP_THRESHOLD, _LARGE_BYTES)
    _set(_ARENA_MAX, 1)


def do_without_rich() -> None:
    """Keep structlog from importing rich, which it only needs to draw tracebacks. Call it before structlog is imported.

    It would take 3 MB of each process and 70 ms of each start.
    """
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # None: it cannot be imported


def set_aside() -> None:
    """Exempt all present objects from garbage collection, because they live until the process ends.

    After loading, the program has some 100,000 objects. A full collection of them takes a tenth of a second, in which
    the event loop and all threads stand still, and it recurs as new objects survive. This call takes as long itself, so
    call it before anything runs.
    """
    gc.collect()
    gc.freeze()


async def collect_regularly() -> None:
    """Collect young garbage every second, and all of it every eighth time, until cancelled.

    Otherwise one card in a hundred starts such a collection by the objects of its decision, and its gate waits 1 to 5
    ms. The interpreter starts a full collection by itself only after ten younger ones.
    """
    for turn in itertools.count(1):
        await asyncio.sleep(_COLLECT_SECONDS)
        if gc.isenabled():  # not while `made_beside` makes thousands of objects
            gc.collect(_ALL if turn % _FULL_EVERY == 0 else _YOUNG)


def import_beside(module: str) -> None:
    """Import a large module in a thread beside a running loop, as `made_beside` does."""
    if module not in sys.modules:
        made_beside(partial(importlib.import_module, module))


def made_beside(make: Callable[[], _Made]) -> _Made:
    """Import modules and build objects in a thread beside a running loop, exempt from garbage collection.

    Nothing is collected at the end, because that would stop the loop; modules leave no garbage.
    """
    gc.disable()
    try:
        return loop_first(make)
    finally:
        gc.freeze()
        gc.enable()


def loop_first(make: Callable[[], _Made]) -> _Made:
    """Make something in a thread beside a running loop, which may ask for the interpreter lock ten times as often."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 10)
    try:
        return make()
    finally:
        sys.setswitchinterval(usual)


def _set(name: int, value: int) -> None:
    try:
        ctypes.CDLL(None).mallopt(name, value)
    except AttributeError:  # not glibc
        return
