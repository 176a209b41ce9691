"""Histograms of durations since the start, counted by upper bounds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

FAST_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds in seconds for work that normally takes milliseconds."""
SLOW_BOUNDS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 60.0)
"""Upper bounds in seconds for movements of gates and other machines."""


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
