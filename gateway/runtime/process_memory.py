"""Settings of this process's memory: return freed memory, shorten garbage collection, and write no core dump."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import resource
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt(3)
_LARGE_BYTES = 131_072


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


def import_beside(module: str) -> None:
    """Import a large module in a thread beside a running loop, and exempt its objects from garbage collection.

    An import holds the interpreter lock, so the loop may ask for it ten times as often meanwhile. Nothing is collected
    at the end, because that would stop the loop; modules leave no garbage.
    """
    if module in sys.modules:
        return
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 10)
    gc.disable()
    try:
        importlib.import_module(module)
    finally:
        gc.freeze()
        gc.enable()
        sys.setswitchinterval(usual)


def _set(name: int, value: int) -> None:
    try:
        ctypes.CDLL(None).mallopt(name, value)
    except AttributeError:  # not glibc
        return
