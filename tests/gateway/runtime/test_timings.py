"""Durations by upper bounds."""

from __future__ import annotations

from gateway.runtime.timings import Timings


def test_a_duration_counts_at_its_bound_and_at_all_above():
    timings = Timings((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        timings.add(seconds)
    assert list(timings.up_to()) == [(0.1, 2), (1.0, 3), (float("inf"), 4)]
    assert timings.count == 4
    assert timings.sum == 7.65
