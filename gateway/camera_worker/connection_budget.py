"""A site's connection attempts, spread over time: when the power comes back, all its cameras do at once.

All workers of a gateway share one small file, which holds the moment of the next free turn. It is monotonic time, the
same for all processes of a machine; nothing is lost when the file is.
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
    """Turns to connect, at most `per_second` of them over all that share `path`. Thread-safe; blocking."""

    def __init__(self, *, path: Path, monotonic: Callable[[], float], per_second: float = ATTEMPTS_PER_SECOND) -> None:
        self._path = path
        self._monotonic = monotonic
        self._interval = 1.0 / per_second

    def wait_for_turn(self, given_up: threading.Event) -> bool:
        """Wait until it is our turn; False when `given_up` was set meanwhile."""
        return not given_up.wait(max(0.0, self.next_turn() - self._monotonic()))

    def next_turn(self) -> float:
        """Take a turn; its monotonic moment. Where the file cannot be had, it is now: a camera is worth more."""
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
            # a moment far ahead is of the time before the machine was started
            turn = turn if now <= turn <= now + _LONGEST_AHEAD else now
            os.pwrite(descriptor, _TURN.pack(turn + self._interval), 0)
        except OSError:
            return now
        finally:
            os.close(descriptor)
        return turn


def _locked(descriptor: int) -> bool:
    """Try to take the lock for a bounded time: a worker that was stopped with it must not stop the others."""
    never = threading.Event()
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            never.wait(_LOCK_WAIT)
        else:
            return True
    return False
