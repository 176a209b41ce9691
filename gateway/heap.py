"""The C heap of this process, kept small: a small box has better use for memory than a heap that holds on to it."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt(3)
_LARGE_BYTES = 131_072


def give_memory_back() -> None:
    """From now on what is freed goes back to the system: glibc would keep it, by the thread and by the largest need.

    Costs a page fault for each large piece; not for a process that handles pictures. Call it before any thread starts.
    Without effect where the C library is another one.
    """
    _set(_TRIM_THRESHOLD, _LARGE_BYTES)
    _set(_MMAP_THRESHOLD, _LARGE_BYTES)
    share_one_arena()


def share_one_arena() -> None:
    """From now on all threads allocate from one arena: few of them allocate at the same time."""
    _set(_ARENA_MAX, 1)


def _set(name: int, value: int) -> None:
    try:
        ctypes.CDLL(None).mallopt(name, value)
    except AttributeError:  # not glibc
        return
