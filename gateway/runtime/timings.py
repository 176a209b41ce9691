"""Durations: histograms since the start, and the usual duration of an operation with whether that is slow. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from statistics import median

FAST_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds in seconds for work that normally takes milliseconds."""
SLOW_BOUNDS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 60.0)
"""Upper bounds in seconds for movements of gates and other machines."""
_LAST = 5
_WELL_SHARE = 0.5


class Timings:
    """Durations counted by upper bounds. Any thread may add; readers may miss the duration being added."""

    def __init__(self, bounds: tuple[float, ...] = FAST_BOUNDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    @property
    def count(self) -> int:
        """The number of durations counted."""
        return sum(self._counts)

    def up_to(self) -> Iterator[tuple[float, int]]:
        """Yield each bound, infinity last, with the number of durations that were not longer."""
        so_far = 0
        for bound, count in zip((*self._bounds, float("inf")), tuple(self._counts), strict=True):
            so_far += count
            yield bound, so_far


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
