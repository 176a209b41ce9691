"""How long silent units rest."""

from hypothesis import given
from hypothesis import strategies as st

from drivers.transactions import Exchange, Rests, rest_after

TIMEOUTS = st.floats(0.02, 0.9)


@given(timeout=TIMEOUTS, failures=st.integers(2, 1000), units=st.integers(1, 32), tagged=st.booleans())
def test_silent_units_together_take_at_most_a_fifth(timeout, failures, units, tagged):
    rest = rest_after(failures=failures, timeout=timeout, tagged=tagged, silent_units=units)
    assert units * timeout / (timeout + rest) <= 0.25


@given(timeout=TIMEOUTS, failures=st.integers(1, 1000))
def test_an_unnumbered_answer_has_a_second_to_come(timeout, failures):
    assert timeout + rest_after(failures=failures, timeout=timeout, tagged=False) >= 0.999


@given(timeout=TIMEOUTS)
def test_one_lost_numbered_answer_costs_nothing(timeout):
    assert rest_after(failures=1, timeout=timeout, tagged=True) == 0


def test_an_answer_ends_the_rest():
    rests = Rests()
    exchange = Exchange(3, b"", lambda _: None, tagged=False)
    rests.blame(exchange, timeout=0.3, now=10.0)
    assert rests.left(3, now=10.0) > 0
    assert rests.left(4, now=10.0) == 0
    rests.forgive(3)
    assert rests.left(3, now=10.0) == 0
