"""Rests of silent units, the wait for each, and the time for a probe."""

from hypothesis import given
from hypothesis import strategies as st

from drivers.bus.occupancy import FULL_PROBE_SECONDS, Occupancy, rest_after

TIMEOUTS = st.floats(0.02, 0.9)


@given(timeout=TIMEOUTS, failures=st.integers(2, 1000), units=st.integers(1, 32))
def test_silent_units_together_take_at_most_a_fifth(timeout, failures, units):
    rest = rest_after(failures=failures, timeout=timeout, silent_units=units)
    assert units * timeout / (timeout + rest) <= 0.25


@given(timeout=TIMEOUTS)
def test_one_lost_answer_costs_nothing(timeout):
    assert rest_after(failures=1, timeout=timeout) == 0


def silent(occupancy, unit, *, now=10.0, timeout=0.3):
    occupancy.failed(unit, timeout=timeout, now=now)
    occupancy.failed(unit, timeout=timeout, now=now)


def test_an_answer_ends_the_rest():
    occupancy = Occupancy()
    silent(occupancy, 3)
    assert occupancy.rest_left(3, now=10.0) > 0
    assert occupancy.rest_left(4, now=10.0) == 0
    assert occupancy.silent == {3}
    occupancy.answered(3, took=0.01)
    assert occupancy.rest_left(3, now=10.0) == 0
    assert occupancy.silent == frozenset()


def test_silent_units_rest_longer_beside_live_ones():
    alone, beside = Occupancy(), Occupancy()
    beside.answered(1, took=0.01)
    silent(alone, 3)
    silent(beside, 3)
    assert beside.rest_left(3, now=10.0) > 2 * alone.rest_left(3, now=10.0)


@given(answers=st.lists(st.floats(0.001, 0.5), min_size=1, max_size=40), allowed=TIMEOUTS)
def test_a_live_unit_is_waited_for_by_its_own_pace_within_what_is_allowed(answers, allowed):
    occupancy = Occupancy()
    for took in answers:
        occupancy.answered(1, took=took)
    timeout = occupancy.live_timeout(1, allowed)
    assert timeout <= allowed
    assert timeout == allowed or timeout >= 2 * max(answers[-32:])
    occupancy.failed(1, timeout=timeout, now=0.0)
    assert occupancy.live_timeout(1, allowed) == allowed


def test_a_probe_fits_into_the_pause_of_live_units():
    occupancy = Occupancy()
    for tenth in range(5):
        occupancy.asked(1, now=tenth / 10)
        occupancy.answered(1, took=0.02)
    silent(occupancy, 3, now=0.4)
    pause = occupancy.pause(now=0.42)
    assert 0.07 < pause < 0.09
    assert occupancy.probe_timeout(3, 0.3, pause=pause, now=0.42) is None, "the first is waited for in full"
    assert occupancy.late_probe_timeout(3, 0.3, now=0.42) == 0.3
    assert occupancy.probe_timeout(3, 0.3, pause=pause, now=0.5) <= pause
    assert occupancy.probe_timeout(3, 0.3, pause=0.01, now=0.5) is None
    assert occupancy.late_probe_timeout(3, 0.3, now=0.5) < 0.1
    assert occupancy.late_probe_timeout(3, 0.3, now=0.5 + FULL_PROBE_SECONDS) == 0.3


def test_where_nobody_lives_a_probe_takes_all_that_is_allowed():
    occupancy = Occupancy()
    silent(occupancy, 3)
    assert occupancy.pause(now=10.0) == float("inf")
    assert occupancy.probe_timeout(3, 0.3, pause=float("inf"), now=10.0) == 0.3
