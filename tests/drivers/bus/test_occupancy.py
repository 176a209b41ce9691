"""How long silent units rest, how long each is waited for, and when a probe may go."""

from hypothesis import given
from hypothesis import strategies as st

from drivers.bus.occupancy import FULL_PROBE_SECONDS, Standings, rest_after

TIMEOUTS = st.floats(0.02, 0.9)


@given(timeout=TIMEOUTS, failures=st.integers(2, 1000), units=st.integers(1, 32))
def test_silent_units_together_take_at_most_a_fifth(timeout, failures, units):
    rest = rest_after(failures=failures, timeout=timeout, silent_units=units)
    assert units * timeout / (timeout + rest) <= 0.25


@given(timeout=TIMEOUTS)
def test_one_lost_answer_costs_nothing(timeout):
    assert rest_after(failures=1, timeout=timeout) == 0


def silent(standings, unit, *, now=10.0, timeout=0.3):
    standings.failed(unit, timeout=timeout, now=now)
    standings.failed(unit, timeout=timeout, now=now)


def test_an_answer_ends_the_rest():
    standings = Standings()
    silent(standings, 3)
    assert standings.rest_left(3, now=10.0) > 0
    assert standings.rest_left(4, now=10.0) == 0
    assert standings.silent == {3}
    standings.answered(3, took=0.01)
    assert standings.rest_left(3, now=10.0) == 0
    assert standings.silent == frozenset()


def test_silent_units_rest_longer_beside_live_ones():
    alone, beside = Standings(), Standings()
    beside.answered(1, took=0.01)
    silent(alone, 3)
    silent(beside, 3)
    assert beside.rest_left(3, now=10.0) > 2 * alone.rest_left(3, now=10.0)


@given(answers=st.lists(st.floats(0.001, 0.5), min_size=1, max_size=40), allowed=TIMEOUTS)
def test_a_live_unit_is_waited_for_by_its_own_pace_within_what_is_allowed(answers, allowed):
    standings = Standings()
    for took in answers:
        standings.answered(1, took=took)
    timeout = standings.live_timeout(1, allowed)
    assert timeout <= allowed
    assert timeout == allowed or timeout >= 2 * max(answers[-32:])
    standings.failed(1, timeout=timeout, now=0.0)
    assert standings.live_timeout(1, allowed) == allowed


def test_a_probe_fits_into_the_pause_of_live_units():
    standings = Standings()
    for tenth in range(5):
        standings.asked(1, now=tenth / 10)
        standings.answered(1, took=0.02)
    silent(standings, 3, now=0.4)
    pause = standings.pause(now=0.42)
    assert 0.07 < pause < 0.09
    assert standings.probe_timeout(3, 0.3, pause=pause, now=0.42) is None, "the first is waited for in full"
    assert standings.late_probe_timeout(3, 0.3, now=0.42) == 0.3
    assert standings.probe_timeout(3, 0.3, pause=pause, now=0.5) <= pause
    assert standings.probe_timeout(3, 0.3, pause=0.01, now=0.5) is None
    assert standings.late_probe_timeout(3, 0.3, now=0.5) < 0.1
    assert standings.late_probe_timeout(3, 0.3, now=0.5 + FULL_PROBE_SECONDS) == 0.3


def test_where_nobody_lives_a_probe_takes_all_that_is_allowed():
    standings = Standings()
    silent(standings, 3)
    assert standings.pause(now=10.0) == float("inf")
    assert standings.probe_timeout(3, 0.3, pause=float("inf"), now=10.0) == 0.3
