"""The rate limit of log lines: repeated lines are written a few times a minute, and otherwise counted."""

from __future__ import annotations

import threading
from dataclasses import dataclass

_MINUTE = 60.0
_MOST_LINES = 30
_MOST_KEYS = 500
_OTHERS = ("", "")


@dataclass(slots=True)
class _Minute:
    """The minute that began at `since`: the numbers of lines that were written and that were held back."""

    since: float
    written: int = 0
    held_back: int = 0


class LogRate:
    """A limit of `most` lines a minute for each logger and event. Thread-safe."""

    def __init__(self, *, most: int = _MOST_LINES) -> None:
        self._most = most
        self._minutes: dict[tuple[str, str], _Minute] = {}
        self._lock = threading.Lock()

    def admits(self, logger: str, event: str, *, now: float) -> tuple[bool, int]:
        """Return whether a line may be written, and how many lines like it were held back in the minute before.

        `now`: monotonic seconds.
        """
        with self._lock:
            key = (logger, event)
            if key not in self._minutes and len(self._minutes) >= _MOST_KEYS:
                self._forget(now)
                key = key if len(self._minutes) < _MOST_KEYS else _OTHERS
            minute = self._minutes.setdefault(key, _Minute(now))
            before = 0
            if now - minute.since >= _MINUTE:
                before = minute.held_back
                minute = self._minutes[key] = _Minute(now)
            if minute.written >= self._most:
                minute.held_back += 1
                return False, 0
            minute.written += 1
            return True, before

    def _forget(self, now: float) -> None:
        """Forget minutes that are over and in which no line was held back."""
        for key in [key for key, one in self._minutes.items() if now - one.since >= _MINUTE and not one.held_back]:
            del self._minutes[key]
