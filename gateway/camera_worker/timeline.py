"""From a camera's ticks to a clock of the machine, wall or monotonic, so that consecutive segments touch exactly. Pure.

A frame arrives late or in time, never early: the earliest arrival seen, compared with the time the ticks give, is the
best estimate of the true offset. It is judged once per segment, so one late burst moves nothing.
"""

from __future__ import annotations

LONGEST_DRIFT_MICROS = 500_000
"""Beyond this the anchor is set anew, at a segment's boundary: that is no drift, but a clock that was set."""
EASY_DRIFT_MICROS = 150_000
"""Below this segments touch exactly: a reader that gathers holds frames up."""
WINDOW_TICKS = 4 * 90_000
"""A drift is judged over so much: a busy machine may have all of a segment's frames arrive late."""
LONGEST_SLEW_MICROS = 10_000
"""A clock that runs too fast or too slow is followed by at most this from one segment to the next, far less than two
segments may be apart and still count as one run of footage."""


class Timeline:
    """The mapping for one connection, or for one run of continuous timestamps in it."""

    def __init__(self, *, pts: int, at: int) -> None:
        self._pts = pts
        self._at = at
        self._earliest: int | None = None
        self._window: tuple[int, int] | None = None
        self._least: int | None = None
        self._owed = 0

    def moment_of(self, pts: int) -> int:
        """Micros of a presentation time."""
        return self._at + (pts - self._pts) * 100 // 9

    def observe(self, *, pts: int, arrived: int) -> None:
        """A frame came at the micros `arrived`."""
        offset = arrived - self.moment_of(pts)
        self._earliest = offset if self._earliest is None else min(self._earliest, offset)
        self._window = (pts, pts) if self._window is None else (self._window[0], pts)

    def settle(self, *, first: bool) -> bool:
        """Judge what was observed since the last call; True when the anchor was set anew and segments no longer touch.

        In the first segment of a connection the anchor follows any earlier estimate (a server that sends its cached
        frames in one burst), since nothing precedes it that it would have to touch.
        """
        offset = self._earliest or 0
        self._earliest = None
        if first:
            self._at += min(offset, 0)
            return False
        if abs(offset) <= LONGEST_DRIFT_MICROS:
            self._follow(offset)
            return False
        self._at += offset
        self._window = self._least = None
        self._owed = 0
        return True

    def _follow(self, offset: int) -> None:
        """Move a little towards where frames have been arriving, when they have been doing so for long enough."""
        self._least = offset if self._least is None else min(self._least, offset)
        if self._window is not None and self._window[1] - self._window[0] >= WINDOW_TICKS:
            beyond = max(0, abs(self._least) - EASY_DRIFT_MICROS)
            self._owed = beyond if self._least > 0 else -beyond
            self._window = self._least = None
        step = max(-LONGEST_SLEW_MICROS, min(LONGEST_SLEW_MICROS, self._owed))
        self._at += step
        self._owed -= step
        if self._least is not None:
            self._least -= step
