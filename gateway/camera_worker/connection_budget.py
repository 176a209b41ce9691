"""The limit on a site's connection attempts: when power returns, all cameras return at once.

All workers of a gateway share one small file, which holds the monotonic time of the next free turn. All processes of a
machine have the same monotonic clock. If the file is lost, only the limit is lost for a moment.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

ATTEMPTS_PER_SECOND = 4.0
_LONGEST_AHEAD = 30.0
_LOCK_TRIES = 20
_LOCK_WAIT = 0.005
_TURN = struct.Struct("<d")


class ConnectionBudget:
    """The turns to connect: at most `per_second` for all processes that share `path`. Thread-safe; blocking."""

    def __init__(self, *, path: Path, monotonic: Callable[[], float], per_second: float = ATTEMPTS_PER_SECOND) -> None:
        self._path = path
        self._monotonic = monotonic
        self._interval = 1.0 / per_second

    def wait_for_turn(self, given_up: threading.Event) -> bool:
        """Wait for a turn; return False when `given_up` was set meanwhile."""
        return not given_up.wait(max(0.0, self.next_turn() - self._monotonic()))

    def next_turn(self) -> float:
        """Take a turn; return its monotonic time. If the file cannot be used, that is now: recording matters more."""
        now = self._monotonic()
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return now
        try:
            if not _locked(descriptor):
                return now
            stored = os.pread(descriptor, _TURN.size, 0)
            turn = _TURN.unpack(stored)[0] if len(stored) == _TURN.size else now
            # a time far ahead was written before the machine restarted
            turn = turn if now <= turn <= now + _LONGEST_AHEAD else now
            os.pwrite(descriptor, _TURN.pack(turn + self._interval), 0)
        except OSError:
            return now
        finally:
            os.close(descriptor)
        return turn


def _locked(descriptor: int) -> bool:
    """Try for at most 0.1 s to take the lock, so that a worker suspended with it does not block the others."""
    never = threading.Event()
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            never.wait(_LOCK_WAIT)
        else:
            return True
    return False
