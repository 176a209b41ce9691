"""Waits between tries to reach something that fails. Pure, but for the jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between restarts: doubling from `first` to `longest` seconds, reduced at random by up to half (jitter).

    `spread`: up to so many seconds more, at random, where many lose the same server at once.
    """

    first: float = 0.5
    longest: float = 30.0
    spread: float = 0.0

    def wait(self, failures: int) -> float:
        """Return the seconds to wait after the given number of failures in a row (1 or more)."""
        full = min(self.longest, self.first * 2.0 ** min(failures - 1, 16))
        seconds = full * random.uniform(0.5, 1.0)  # noqa: S311 (spreads load; guards nothing)
        return seconds + random.uniform(0.0, self.spread) if self.spread else seconds  # noqa: S311 (likewise)


class Reconnects:
    """The tries to open a line to a device, and the wait before the next one.

    Args:
        longest: the longest wait between two tries, in seconds.
        steady: a line that lasted longer than so many seconds was good: the next failure counts as the first.
    """

    def __init__(self, *, longest: float = 5.0, steady: float = float("inf")) -> None:
        self._backoff = Backoff(first=0.2, longest=longest)
        self._steady = steady
        self._failures = 0

    def failed(self, *, lasted: float = 0.0, was_good: bool = False) -> None:
        """Count a failure of a line that lasted so many seconds, or `was_good` for another reason."""
        self._failures = 1 if was_good or lasted > self._steady else self._failures + 1

    def opened(self) -> None:
        """Forget the failures, since the line is open."""
        self._failures = 0

    def wait(self) -> float:
        """Return the seconds until the next try."""
        return self._backoff.wait(self._failures)
