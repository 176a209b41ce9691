"""First steps of each process of a worker, before it imports anything large."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def tie_to_parent() -> None:
    """Make the kernel end this process (SIGTERM) when the process that started it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def stand_behind(*, niceness: int, out_of_memory: int) -> None:
    """Let the gateway's own process go first: for the processor, for the disk, and when the machine runs out of memory.

    The kernel derives a process's place at the disk from its niceness.

    Args:
        niceness: 0 to 19, more than the lanes' process has.
        out_of_memory: 0 to 1000; the kernel ends the process with the most first.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(out_of_memory), "ascii")


def do_without_rich() -> None:
    """Keep structlog from loading rich, with which it would draw tracebacks: a worker's log is JSON, never drawn."""
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # None: it cannot be imported
