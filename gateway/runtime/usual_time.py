"""The usual duration of an operation, and whether that is slow. Pure."""

from __future__ import annotations

from collections import deque
from statistics import median

_LAST = 5
_WELL_SHARE = 0.5


class UsualTime:
    """The last five durations of an operation.

    It is slow once three of five took longer than `limit_seconds`, and no longer slow once three took at most half of
    that. The two limits keep a duration near the limit from being reported again and again.
    """

    def __init__(self, *, limit_seconds: float) -> None:
        self.limit_seconds = limit_seconds
        self._last = deque[float](maxlen=_LAST)
        self._is_slow = False

    def took(self, seconds: float) -> None:
        """Add a duration."""
        self._last.append(seconds)
        if len(self._last) < _LAST:
            return
        usual = median(self._last)
        self._is_slow = usual > (_WELL_SHARE * self.limit_seconds if self._is_slow else self.limit_seconds)

    @property
    def slow_seconds(self) -> float:
        """The limit in seconds while the operation is slow, else 0."""
        return self.limit_seconds if self._is_slow else 0.0
