"""Conversion of RTP timestamps to presentation and decoding times that a recording can rely on. Pure.

Cameras send timestamps that wrap, repeat, jump and run backwards although no picture is missing. So an implausible
step is replaced by the time between the arrivals, and no picture is dropped. Timestamps that run at another pace than
real time are scaled.
"""

from __future__ import annotations

import heapq
import math

from drivers.rtsp.audio_clock import SenderReport
from drivers.rtsp.frames import TICKS_PER_SECOND
from drivers.rtsp.pace import Pace

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
