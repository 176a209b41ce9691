"""This process's memory: small, quick for Python to look through, and in no core dump.

A small box has better use for what is not needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import resource

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt(3)
_LARGE_BYTES = 131_072


def write_no_core_dump() -> None:
    """Make the kernel write no core dump of this process and of those that it starts: memory holds secrets."""
    with contextlib.suppress(OSError, ValueError):  # the shipped unit has the same limit, and forbids to set one
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def give_memory_back() -> None:
    """Make glibc return freed memory to the system, instead of keeping it per thread.

    Costs a page fault for each large piece; not for a process that handles pictures. Call it before any thread starts.
    Without effect where the C library is another one.
    """
    _set(_TRIM_THRESHOLD, _LARGE_BYTES)
    _set(_MMAP_THRESHOLD, _LARGE_BYTES)
    share_one_arena()


def share_one_arena() -> None:
    """Make all threads allocate from one arena; few of them allocate at the same time."""
    _set(_ARENA_MAX, 1)


def set_aside() -> None:
    """Exempt all objects that exist by now from garbage collection: they live to the end.

    A program that was only loaded has some 100,000 objects. To look through them takes a tenth of a second, for which
    the event loop and every thread stand still, and that comes again whenever enough new ones have lived for a while.
    Takes that long itself, so call it before anything runs.
    """
    gc.collect()
    gc.freeze()


def _set(name: int, value: int) -> None:
    try:
        ctypes.CDLL(None).mallopt(name, value)
    except AttributeError:  # not glibc
        return
