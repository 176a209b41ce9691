"""How long a thing usually takes, and whether that counts as slow. Pure."""

from __future__ import annotations

from collections import deque
from statistics import median

_LAST = 5
_WELL_SHARE = 0.5


class UsualTime:
    """The last five times of a thing.

    It is slow once three of five took longer than `limit_seconds`, and well again once three took less than half of
    that: one at the border is told once.
    """

    def __init__(self, *, limit_seconds: float) -> None:
        self.limit_seconds = limit_seconds
        self._last = deque[float](maxlen=_LAST)
        self._is_slow = False

    def took(self, seconds: float) -> None:
        """Take in how long it took."""
        self._last.append(seconds)
        if len(self._last) < _LAST:
            return
        usual = median(self._last)
        self._is_slow = usual > (_WELL_SHARE * self.limit_seconds if self._is_slow else self.limit_seconds)

    @property
    def slow_seconds(self) -> float:
        """The limit while it counts as slow, else 0."""
        return self.limit_seconds if self._is_slow else 0.0
