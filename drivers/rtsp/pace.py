"""The pace at which a camera counts time, from when its pictures arrive. Pure.

Many cameras count the frame rate that is set and deliver another, so that their seconds are too short or too long.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from drivers.rtsp.audio_clock import SenderReport, difference
from drivers.rtsp.frames import TICKS_PER_SECOND

_WINDOW_SECONDS = 0.5
"""The shortest time of which the least late picture counts. A reader that batches pictures delays them by less."""
_COARSER = 5
_LEVELS = 4
"""Windows of 0.5, 2.5, 12.5 and 62.5 s show large errors soon, and small ones later."""
_POINTS = 9
_FEWEST_POINTS = 5
_LEAST_SLOPE = 0.001
"""Smaller errors are those of any camera's clock; a recording follows them."""
_YOUNG_SECONDS = 60.0
_OFF_TICKS = TICKS_PER_SECOND * 3 // 10
_OLD_OFF_TICKS = TICKS_PER_SECOND // 2
"""The lateness that proves a wrong pace, in the first minute and later, where congestion is more likely."""
_JITTER_TICKS = TICKS_PER_SECOND // 20
_MOST_STEP_TICKS = TICKS_PER_SECOND // 2
_SETTLED_SECONDS = 20.0
_TOLD_ERROR = 0.01
_LONGEST_FACTOR = 100.0
_REPORTS_SECONDS = 3.0
_REPORTS_AGREE = 0.01


@dataclass(frozen=True, slots=True)
class Correction:
    """A change of the pace.

    Attributes:
        owed: the ticks by which earlier pictures count as too late, or too early (negative).
        slope: the error that was corrected, as a share of real time.
    """

    owed: int
    slope: float


class _Point(NamedTuple):
    """The least late picture of a window: when it arrived, and its lateness in ticks."""

    at: float
    late: float


class _Level:
    """The newest points of windows of one length."""

    def __init__(self) -> None:
        self.points = deque[_Point](maxlen=_POINTS)
        self.added = 0

    def add(self, point: _Point) -> None:
        """Take the next point."""
        self.points.append(point)
        self.added += 1

    def lines(self) -> Iterator[Sequence[_Point]]:
        """Yield what may be a line: all points, and the newest ones."""
        if len(self.points) >= _FEWEST_POINTS:
            points = list(self.points)
            yield points
            if len(points) > _FEWEST_POINTS:
                yield points[-_FEWEST_POINTS:]


class Pace:
    """The estimate of one connection. Each picture costs a comparison, each half second a little more.

    A late picture says nothing, since networks delay pictures. But the least late pictures of several windows lie on a
    line, and its slope is the error of the pace.
    """

    def __init__(self, *, factor: float = 1.0) -> None:
        """`factor` is that of an earlier connection to the camera."""
        self.factor = factor
        """The real time that passes while the camera counts one second."""
        self.settled_at: float | None = None
        """Since when the factor has hardly changed, in monotonic seconds; None before the first picture."""
        self._levels = [_Level() for _ in range(_LEVELS)]
        self._first = self._corrected_at = 0.0
        self._count = 0.0
        self._late = self._late_at = 0.0
        self._until = -math.inf
        self._report: SenderReport | None = None
        self._reported: float | None = None

    def has_held(self, now: float) -> bool:
        """Return whether the factor has hardly changed for a while."""
        return self.settled_at is not None and now - self.settled_at >= _SETTLED_SECONDS

    def told(self, now: float) -> float:
        """Return the seconds that the camera counts in a real one: 1.0 until another pace has held for a while."""
        if not self.has_held(now):
            return 1.0
        return 1 / self.factor if abs(self.factor - 1) >= _TOLD_ERROR else 1.0

    def reported(self, report: SenderReport, *, clock: int) -> None:
        """Take a sender report of the pictures, whose RTP clock has the rate `clock`."""
        if self._report is not None:
            real = (report.clock - self._report.clock) / 2**32
            if 0 <= real < _REPORTS_SECONDS:
                return
            counted = difference(report.timestamp, self._report.timestamp) / clock
            is_plausible = real > 0 and counted > 0 and 1 / _LONGEST_FACTOR < real / counted < _LONGEST_FACTOR
            self._reported = real / counted if is_plausible else None
        self._report = report

    def note(self, ticks: float, arrived: float, *, step: int) -> Correction | None:
        """Note a picture, `ticks` after the one before it by the camera's count times the factor.

        Args:
            ticks: the time since the picture before; for one with an implausible timestamp, that between the arrivals.
            arrived: when the picture arrived, in monotonic seconds.
            step: the usual ticks between two pictures.
        """
        if arrived < self._until:
            self._count += ticks
            late = (arrived - self._first) * TICKS_PER_SECOND - self._count
            if late < self._late:
                self._late, self._late_at = late, arrived
            return None
        # the picture begins a window, so that those that arrive with it are in the same one
        correction = None
        if self.settled_at is None:
            self.settled_at = self._first = self._corrected_at = arrived
        else:
            correction = self._take(_Point(self._late_at, self._late), step=step, now=arrived)
        self._until = arrived + _WINDOW_SECONDS
        self._count += ticks
        self._late, self._late_at = (arrived - self._first) * TICKS_PER_SECOND - self._count, arrived
        return correction

    def _take(self, point: _Point, *, step: int, now: float) -> Correction | None:
        """Take the least late picture of a window into the levels, and judge those that it changes."""
        for level in self._levels:
            level.add(point)
            for line in level.lines():
                if (correction := self._judge(line, step=min(step, _MOST_STEP_TICKS), now=now)) is not None:
                    self._correct(correction.slope, now=now)
                    return correction
            if level.added % _COARSER:
                break
            point = min(list(level.points)[-_COARSER:], key=lambda each: each.late)
        return None

    def _judge(self, line: Sequence[_Point], *, step: int, now: float) -> Correction | None:
        """Return the correction where the lateness grows or shrinks in a clear line, by more than networks explain."""
        first, last = line[0], line[-1]
        lasted, grown = (last.at - first.at) * TICKS_PER_SECOND, last.late - first.late
        if not lasted / _LONGEST_FACTOR < lasted - grown < lasted * _LONGEST_FACTOR:
            return None
        slope = grown / lasted
        proof = self._proof(slope, now=now) + step
        if abs(slope) < _LEAST_SLOPE or abs(grown) < proof or not _is_line(line, slope, step=step):
            return None
        usual = min((each.late for level in self._levels for each in level.points if each.at < first.at), default=None)
        usual = first.late if usual is None else min(usual, first.late)
        if grown < 0 and usual - last.late < proof:
            return None  # pictures that were held up catch up
        late = first.late + slope * (now - first.at) * TICKS_PER_SECOND
        return Correction(owed=int(late - usual), slope=slope)

    def _proof(self, slope: float, *, now: float) -> float:
        """Return the lateness that proves this slope: less where the camera's reports agree, more where they do not."""
        needed: float = _OFF_TICKS if now - self._corrected_at < _YOUNG_SECONDS else _OLD_OFF_TICKS
        if self.factor != 1.0:
            needed /= 2  # the pace of this camera is wrong for certain, and only its estimate is rough
        if self._reported is None:
            return needed
        wanted = self.factor / (1 - slope) if slope < 1 else _LONGEST_FACTOR
        if abs(self._reported / wanted - 1) < max(_REPORTS_AGREE, abs(slope) / 4):
            return needed / 2
        return needed * 3 if abs(self._reported / self.factor - 1) < _REPORTS_AGREE else needed

    def _correct(self, slope: float, *, now: float) -> None:
        self.factor /= 1 - slope
        self._corrected_at = now
        if abs(slope) > 0.01:
            self.settled_at = now
        self._levels = [_Level() for _ in range(_LEVELS)]


def _is_line(points: Sequence[_Point], slope: float, *, step: int) -> bool:
    """Return whether points of which none stands far apart lie on a line, but for the jitter of arrivals."""
    first, last = points[0], points[-1]
    if 2 * max(after.at - before.at for before, after in pairwise(points)) > last.at - first.at:
        return False
    grown = abs(last.late - first.late)
    off = min(max(_JITTER_TICKS + step, grown / 5), grown / 3)
    return all(abs(each.late - first.late - slope * (each.at - first.at) * TICKS_PER_SECOND) <= off for each in points)
