"""Telling sparingly: of what may happen thousands of times, so many are told an hour, and how many more there were."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

_SECONDS = 3600.0


class Sparing:
    """Says which of many alike are told. `monotonic` is the gateway's own clock."""

    def __init__(self, *, monotonic: Callable[[], float], most: int) -> None:
        self._monotonic = monotonic
        self._most = most
        self._told: deque[float] = deque(maxlen=most)
        self._untold = 0

    def turn(self) -> int | None:
        """For one more: None when it is not told; else how many were not since the last that was."""
        now = self._monotonic()
        if len(self._told) == self._most and now - self._told[0] < _SECONDS:
            self._untold += 1
            return None
        self._told.append(now)
        untold, self._untold = self._untold, 0
        return untold
