"""Conversion of RTP timestamps to presentation and decoding times that a recording can rely on. Pure.

Cameras send timestamps that wrap, repeat, jump and run backwards although no picture is missing. So an implausible
step is replaced by the time between the arrivals, and no picture is dropped. Timestamps that run at another pace than
real time are scaled.

Many cameras count the frame rate that is set and deliver another, so that their seconds are too short or too long.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from drivers.rtsp.audio_clock import SenderReport, difference
from drivers.rtsp.frames import TICKS_PER_SECOND

_EARLIEST_TICKS = TICKS_PER_SECOND
"""A picture may come late. If it comes earlier than its timestamp says by more than this, the timestamp jumped."""
_LONGEST_BACK_TICKS = 2 * TICKS_PER_SECOND
_LONGEST_SLIP_TICKS = TICKS_PER_SECOND // 2
"""Timestamps that are off by more than this, or for longer, belong to a new count."""
_ASSUMED_STEP = TICKS_PER_SECOND // 25
_MOST_OF_ONE_STAMP = 4
"""More pictures with one timestamp mean that the count stands still."""
_CATCH_UP = 4
"""Once the pace is known, what is owed is made up by so many times its error, and by half of each step at most."""

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


class Timestamps:
    """The times of one connection's pictures, in decoding order.

    Args:
        reordering: how many pictures may be decoded before one and shown after it; 0 when both orders are the same.
        factor: the factor of the pace that an earlier connection showed.
    """

    def __init__(self, *, reordering: int = 0, factor: float = 1.0) -> None:
        self._reordering = reordering
        self._raw: int | None = None
        self._part_of_tick = 0.0
        self._pts = 0
        self._step = _ASSUMED_STEP
        self._by_camera = 0
        self._of_one_stamp = 1
        self._usual_of_one_stamp = (1, 1)
        self._stamped_at = (0, 0.0)
        self._slipped_at: float | None = None
        self._is_repaired = False
        self._arrived = 0.0
        self._earliest = 0.0
        self._first_arrived = 0.0
        self._waiting: list[int] = []
        self._seen = 0
        self._first_pts = 0
        self._last_dts: int | None = None
        self.pace = Pace(factor=factor)
        """The pace at which the camera counts."""
        self._owed = 0
        self._catch_up = 0.0
        self.repaired = 0
        """The number of implausible timestamps that were replaced."""

    def times(self, raw: int, arrived: float, *, clock: int = TICKS_PER_SECOND) -> tuple[int, int]:
        """Return the presentation and decoding time of the next picture.

        Decoding times always grow, and none is after its presentation time.

        Args:
            raw: the RTP timestamp, 32 bits.
            arrived: when the picture arrived, in monotonic seconds.
            clock: the rate of the RTP clock.
        """
        pts = self._presentation(raw, arrived, clock)
        if self._reordering:
            dts = self._decoding(pts)
        else:
            dts = pts if self._last_dts is None or pts > self._last_dts else self._last_dts + 1
        self._last_dts = dts
        return max(pts, dts), dts

    def reported(self, report: SenderReport, *, clock: int = TICKS_PER_SECOND) -> None:
        """Take a sender report of the pictures, which tells the pace of their timestamps."""
        self.pace.reported(report, clock=clock)

    def _presentation(self, raw: int, arrived: float, clock: int) -> int:
        before = self._raw
        self._raw = raw
        if before is None:
            self._pts = self._by_camera = self._first_pts = raw * TICKS_PER_SECOND // clock
            self._first_arrived = arrived
            self._stamped_at = self._pts, arrived
            ticks: float = 0
        elif raw == before and self._shares_stamp(arrived):
            self._spread()
            ticks = 0
        else:
            ticks = self._advance(raw, before, arrived, clock)
        correction = self.pace.note(ticks, arrived, step=self._step)
        if correction is not None:
            self._owed += correction.owed
            self._catch_up = min(0.5, _CATCH_UP * abs(correction.slope))
        self._arrived = arrived
        late = (arrived - self._first_arrived) * TICKS_PER_SECOND - (self._pts - self._first_pts)
        self._earliest = min(self._earliest, late)
        return self._pts

    def _shares_stamp(self, arrived: float) -> bool:
        """Return whether pictures share timestamps on purpose. Otherwise the count slipped, or it stands still."""
        if self._of_one_stamp >= _MOST_OF_ONE_STAMP:
            return False
        together = (arrived - self._arrived) * TICKS_PER_SECOND < self._step * 3 // 4
        return together or self._of_one_stamp < max(self._usual_of_one_stamp)

    def _spread(self) -> None:
        """Place a picture with the timestamp of the one before it, as of two fields, on the way to the next one."""
        self._of_one_stamp += 1
        usual = max(self._usual_of_one_stamp)
        self.repaired += self._of_one_stamp > usual
        self._pts += max(1, self._step // max(usual, self._of_one_stamp))

    def _advance(self, raw: int, before: int, arrived: float, clock: int) -> float:
        """Place a picture by its timestamp; return the ticks that count for the pace."""
        step = (raw - before + 0x80000000 & 0xFFFFFFFF) - 0x80000000
        # The counter wraps in units of its own clock, so the step is scaled, never the counter.
        if clock == TICKS_PER_SECOND and self.pace.factor == 1.0 and not self._part_of_tick:
            ticks = step
        else:
            exact = step * TICKS_PER_SECOND * self.pace.factor / clock + self._part_of_tick
            ticks = math.floor(exact)
            self._part_of_tick = exact - ticks
        counted: float = ticks
        by_camera = self._by_camera = self._by_camera + ticks + (self._made_up(ticks) if self._owed else 0)
        if self._is_true(step, arrived):
            self._step = min(max(by_camera - self._stamped_at[0], _ASSUMED_STEP // 10), TICKS_PER_SECOND)
            self._pts = by_camera
            self._slipped_at = None
            self._is_repaired = False
        else:
            if abs(ticks) > _LONGEST_SLIP_TICKS:  # a jump is no time that passed
                counted = (arrived - self._arrived) * TICKS_PER_SECOND
            self._repair(ticks, arrived)
        if step:
            self._usual_of_one_stamp = self._usual_of_one_stamp[1], self._of_one_stamp
            self._of_one_stamp = 1
            self._stamped_at = self._pts, arrived
        else:
            self._of_one_stamp += 1
        return counted

    def _repair(self, ticks: int, arrived: float) -> None:
        """Place a picture with an implausible timestamp."""
        self.repaired += 1
        if self._slipped_at is None:
            self._slipped_at = arrived
        # After a single slip the camera's count goes on: then a late picture must not shift the next ones.
        is_single_slip = not self._is_repaired and abs(ticks) <= _LONGEST_SLIP_TICKS
        stamped_pts, stamped_arrived = self._stamped_at
        since = int((arrived - stamped_arrived) * TICKS_PER_SECOND) - (self._pts - stamped_pts)
        passed = 0 if is_single_slip else since
        # pictures that come together are as far apart as earlier ones
        self._pts += passed if passed > 0 else self._step
        self._is_repaired = True
        off_for = (arrived - self._slipped_at) * TICKS_PER_SECOND
        if max(abs(self._pts - self._by_camera), off_for) > _LONGEST_SLIP_TICKS:
            self._by_camera = self._pts  # the camera began a new count: go on from here
            self._slipped_at = None

    def _made_up(self, ticks: int) -> int:
        """Return the part of what is owed by which a picture is moved. Pictures that are shown earlier move no more."""
        most = int(max(0, ticks) * self._catch_up)
        part = max(-most, min(most, self._owed))
        self._owed -= part
        self._earliest -= min(part, 0)
        return part

    def _is_true(self, step: int, arrived: float) -> bool:
        forward = self._by_camera - self._pts
        if forward <= 0 and not (self._reordering and step and forward > -_LONGEST_BACK_TICKS):
            return False
        late = (arrived - self._first_arrived) * TICKS_PER_SECOND - (self._by_camera - self._first_pts)
        return late > self._earliest - _EARLIEST_TICKS

    def _decoding(self, pts: int) -> int:
        """Return a decoding time: the presentation times in rising order, delayed by `reordering` pictures."""
        heapq.heappush(self._waiting, pts)
        self._seen += 1
        if self._seen <= self._reordering:
            dts = self._first_pts - (self._reordering + 1 - self._seen) * _ASSUMED_STEP
        else:
            dts = heapq.heappop(self._waiting)
        return dts if self._last_dts is None else max(dts, self._last_dts + 1)
