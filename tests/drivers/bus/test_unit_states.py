"""Rests of silent units, the wait for each, and the time for a probe."""

from hypothesis import given
from hypothesis import strategies as st

from drivers.bus.unit_states import FULL_PROBE_SECONDS, UnitStates, rest_after

TIMEOUTS = st.floats(0.02, 0.9)


@given(timeout=TIMEOUTS, failures=st.integers(2, 1000), units=st.integers(1, 32))
def test_silent_units_together_take_at_most_a_fifth(timeout, failures, units):
    rest = rest_after(failures=failures, timeout=timeout, silent_units=units)
    assert units * timeout / (timeout + rest) <= 0.25


@given(timeout=TIMEOUTS)
def test_one_lost_answer_costs_nothing(timeout):
    assert rest_after(failures=1, timeout=timeout) == 0


def silent(states, unit, *, now=10.0, timeout=0.3):
    states.failed(unit, timeout=timeout, now=now)
    states.failed(unit, timeout=timeout, now=now)


def test_an_answer_ends_the_rest():
    states = UnitStates()
    silent(states, 3)
    assert states.rest_left(3, now=10.0) > 0
    assert states.rest_left(4, now=10.0) == 0
    assert states.silent == {3}
    states.answered(3, took=0.01)
    assert states.rest_left(3, now=10.0) == 0
    assert states.silent == frozenset()


def test_silent_units_rest_longer_beside_live_ones():
    alone, beside = UnitStates(), UnitStates()
    beside.answered(1, took=0.01)
    silent(alone, 3)
    silent(beside, 3)
    assert beside.rest_left(3, now=10.0) > 2 * alone.rest_left(3, now=10.0)


@given(answers=st.lists(st.floats(0.001, 0.5), min_size=1, max_size=40), allowed=TIMEOUTS)
def test_a_live_unit_is_waited_for_by_its_own_pace_within_what_is_allowed(answers, allowed):
    states = UnitStates()
    for took in answers:
        states.answered(1, took=took)
    timeout = states.live_timeout(1, allowed)
    assert timeout <= allowed
    assert timeout == allowed or timeout >= 2 * max(answers[-32:])
    states.failed(1, timeout=timeout, now=0.0)
    assert states.live_timeout(1, allowed) == allowed


def test_a_probe_fits_into_the_pause_of_live_units():
    states = UnitStates()
    for tenth in range(5):
        states.asked(1, now=tenth / 10)
        states.answered(1, took=0.02)
    silent(states, 3, now=0.4)
    pause = states.pause(now=0.42)
    assert 0.07 < pause < 0.09
    assert states.probe_timeout(3, 0.3, pause=pause, now=0.42) is None, "the first is waited for in full"
    assert states.late_probe_timeout(3, 0.3, now=0.42) == 0.3
    assert states.probe_timeout(3, 0.3, pause=pause, now=0.5) <= pause
    assert states.probe_timeout(3, 0.3, pause=0.01, now=0.5) is None
    assert states.late_probe_timeout(3, 0.3, now=0.5) < 0.1
    assert states.late_probe_timeout(3, 0.3, now=0.5 + FULL_PROBE_SECONDS) == 0.3


def test_where_nobody_lives_a_probe_takes_all_that_is_allowed():
    states = UnitStates()
    silent(states, 3)
    assert states.pause(now=10.0) == float("inf")
    assert states.probe_timeout(3, 0.3, pause=float("inf"), now=10.0) == 0.3
