"""First steps of each process of a worker, before it imports anything large."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tie_to_parent() -> None:
    """Make the kernel end this process (SIGTERM) when the process that started it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def do_without_rich() -> None:
    """Keep structlog from loading rich, with which it would draw tracebacks: a worker's log is JSON, never drawn."""
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # None: it cannot be imported
