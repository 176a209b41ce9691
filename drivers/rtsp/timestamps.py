"""Conversion of RTP timestamps to presentation and decoding times that a recording can rely on. Pure.

Cameras send timestamps that wrap, repeat, jump and run backwards although no picture is missing. So an implausible
step is replaced by the time between the arrivals, and no picture is dropped.
"""

from __future__ import annotations

import heapq

from drivers.rtsp.frames import TICKS_PER_SECOND

_EARLIEST_TICKS = TICKS_PER_SECOND
"""A picture may come late. If it comes earlier than its timestamp says by more than this, the timestamp jumped."""
_LONGEST_BACK_TICKS = 2 * TICKS_PER_SECOND
_LONGEST_SLIP_TICKS = TICKS_PER_SECOND // 2
"""Timestamps that are off by more than this, or for longer, belong to a new count."""
_LONGEST_FORWARD_TICKS = 10 * TICKS_PER_SECOND
_JUDGED_SECONDS = 20.0
"""The time over which the pace of the timestamps is judged.

Below half the pace of the arrivals, the camera counts in another unit than it announced.
"""
_ASSUMED_STEP = TICKS_PER_SECOND // 25


class Timestamps:
    """The times of one connection's pictures, in decoding order.

    Args:
        reordering: how many pictures may be decoded before one and shown after it; 0 when both orders are the same.
    """

    def __init__(self, *, reordering: int = 0) -> None:
        self._reordering = reordering
        self._raw: int | None = None
        self._part_of_tick = 0
        self._pts = 0
        self._step = _ASSUMED_STEP
        self._by_camera = 0
        self._slipped_at: float | None = None
        self._is_repaired = False
        self._arrived = 0.0
        self._earliest = 0.0
        self._first_arrived = 0.0
        self._judged_at = 0.0
        self._counted = 0
        self._is_slow = False
        self._waiting: list[int] = []
        self._seen = 0
        self._first_pts = 0
        self._last_dts: int | None = None
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

    def _presentation(self, raw: int, arrived: float, clock: int) -> int:
        if self._raw is None:
            self._pts = self._by_camera = self._first_pts = raw * TICKS_PER_SECOND // clock
            self._first_arrived = self._judged_at = arrived
        else:
            step = (raw - self._raw + 0x80000000 & 0xFFFFFFFF) - 0x80000000
            # The counter wraps in units of its own clock, so the step is scaled, never the counter.
            if clock == TICKS_PER_SECOND and not self._part_of_tick:
                ticks = step
            else:
                ticks, self._part_of_tick = divmod(step * TICKS_PER_SECOND + self._part_of_tick, clock)
            self._by_camera += ticks
            self._judge(ticks, arrived)
            if self._is_true(step, arrived):
                self._step = min(max(self._by_camera - self._pts, _ASSUMED_STEP // 10), TICKS_PER_SECOND)
                self._pts = self._by_camera
                self._slipped_at = None
                self._is_repaired = False
            else:
                self.repaired += 1
                if self._slipped_at is None:
                    self._slipped_at = arrived
                # After a single slip the camera's count goes on: then a late picture must not shift the next ones.
                is_single_slip = not self._is_repaired and abs(ticks) <= _LONGEST_SLIP_TICKS
                passed = 0 if is_single_slip else int((arrived - self._arrived) * TICKS_PER_SECOND)
                self._pts += passed or self._step  # pictures that arrive together are as far apart as earlier ones
                self._is_repaired = True
                off_for = (arrived - self._slipped_at) * TICKS_PER_SECOND
                if max(abs(self._pts - self._by_camera), off_for) > _LONGEST_SLIP_TICKS:
                    self._by_camera = self._pts  # the camera began a new count: go on from here
                    self._slipped_at = None
        self._raw = raw
        self._arrived = arrived
        self._earliest = min(self._earliest, self._lateness(self._pts, arrived))
        return self._pts

    def _judge(self, ticks: int, arrived: float) -> None:
        """Note a step, and judge the pace of the timestamps every 20 s. Jumps and pauses do not count."""
        if -_LONGEST_BACK_TICKS <= ticks <= _LONGEST_FORWARD_TICKS:
            self._counted += ticks
        else:
            self._judged_at += arrived - self._arrived
        passed = arrived - self._judged_at
        if passed >= _JUDGED_SECONDS:
            self._is_slow = 2 * self._counted < passed * TICKS_PER_SECOND
            self._judged_at, self._counted = arrived, 0

    def _is_true(self, step: int, arrived: float) -> bool:
        if self._is_slow and not self._reordering:
            return False
        forward = self._by_camera - self._pts
        if forward <= 0 and not (self._reordering and step and forward > -_LONGEST_BACK_TICKS):
            return False
        return self._lateness(self._by_camera, arrived) > self._earliest - _EARLIEST_TICKS

    def _lateness(self, pts: int, arrived: float) -> float:
        return (arrived - self._first_arrived) * TICKS_PER_SECOND - (pts - self._first_pts)

    def _decoding(self, pts: int) -> int:
        """Return a decoding time: the presentation times in rising order, delayed by `reordering` pictures."""
        heapq.heappush(self._waiting, pts)
        self._seen += 1
        if self._seen <= self._reordering:
            dts = self._first_pts - (self._reordering + 1 - self._seen) * _ASSUMED_STEP
        else:
            dts = heapq.heappop(self._waiting)
        return dts if self._last_dts is None else max(dts, self._last_dts + 1)
