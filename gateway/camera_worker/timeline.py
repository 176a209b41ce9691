"""The times of frames by a clock that may drift, be set, or be read late. Pure."""

from __future__ import annotations

LONGEST_DRIFT_MICROS = 500_000
"""A larger difference is no drift but a clock that was set: the anchor is set again at a segment's boundary. Frames
that are late by this much may only have been delayed, so lateness is judged over a window."""
EASY_DRIFT_MICROS = 150_000
"""A smaller difference is ignored, because a reader that batches frames delays them; segments then touch exactly."""
WINDOW_TICKS = 4 * 90_000
"""The time over which a drift is judged, because on a busy machine all frames of one segment may arrive late."""
LONGEST_SLEW_MICROS = 10_000
"""The largest correction of a drift from one segment to the next. It is far smaller than the distance at which two
segments no longer count as one run of footage."""


class Timeline:
    """The conversion of presentation times to a clock's times, for one run of continuous timestamps.

    `at` is the clock's time, in microseconds, of the presentation time `pts`: the anchor.
    """

    def __init__(self, *, pts: int, at: int) -> None:
        self._pts = pts
        self._at = at
        self._earliest: int | None = None
        self._from: int | None = None
        self._until = 0
        self._least: int | None = None
        self._owed = 0

    def moment_of(self, pts: int) -> int:
        """Return the clock's time of a presentation time, in microseconds."""
        return self._at + (pts - self._pts) * 100 // 9

    def observe(self, *, pts: int, arrived: int) -> None:
        """Note a frame's presentation time and its arrival in microseconds."""
        offset = arrived - self._at - (pts - self._pts) * 100 // 9
        if self._earliest is None or offset < self._earliest:
            self._earliest = offset
        if self._from is None:
            self._from = pts
        self._until = pts

    @property
    def lateness(self) -> int:
        """The least delay of a frame since the last call of `settle`, in microseconds."""
        return self._earliest or 0

    def settle(self, *, first: bool, set_by: int = 0) -> bool:
        """Adjust the anchor to the frames observed since the last call.

        Return True when it was set again, so that the next segment does not touch the one before. In the first segment
        of a connection the anchor may move to any earlier time, since no segment precedes it. This serves cameras that
        send cached frames in one burst.

        Args:
            first: whether this is the first segment of a connection.
            set_by: the microseconds by which the clock was set meanwhile; up to `LONGEST_DRIFT_MICROS` this is followed
                like any drift.
        """
        offset = self.lateness
        self._earliest = None
        if first:
            self._at += min(offset, 0)
            return False
        by = set_by if abs(set_by) > LONGEST_DRIFT_MICROS else min(offset, 0)  # a frame cannot arrive before its time
        if abs(by) > LONGEST_DRIFT_MICROS:
            self._renew(by)
            return True
        return self._follow(offset)

    def _renew(self, by: int) -> None:
        self._at += by
        self._from = self._least = None
        self._owed = 0

    def _follow(self, offset: int) -> bool:
        """Move the anchor a step towards the arrivals, once they have differed from it for long enough."""
        self._least = offset if self._least is None else min(self._least, offset)
        if self._from is not None and self._until - self._from >= WINDOW_TICKS:
            if self._least > LONGEST_DRIFT_MICROS:
                self._renew(self._least)
                return True
            beyond = max(0, abs(self._least) - EASY_DRIFT_MICROS)
            self._owed = beyond if self._least > 0 else -beyond
            self._from = self._least = None
        step = max(-LONGEST_SLEW_MICROS, min(LONGEST_SLEW_MICROS, self._owed))
        self._at += step
        self._owed -= step
        if self._least is not None:
            self._least -= step
        return False
