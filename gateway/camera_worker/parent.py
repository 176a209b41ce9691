"""First steps of a camera worker's processes, before they import anything large."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def tie_to_parent() -> None:
    """Make the kernel end this process (SIGTERM) when the process that started it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def stand_behind(*, niceness: int, out_of_memory: int) -> None:
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
