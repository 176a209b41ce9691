"""The barrier as a machine, with instants given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.far_ends.barrier import Barrier, Wish


@pytest.fixture
def barrier():
    return Barrier(travel_seconds=1.0)


@pytest.mark.parametrize("obstruct", ["loop", "photocell"])
def test_its_own_controller_stops_a_closing_arm(barrier, obstruct):
    barrier.command(Wish.OPEN, now=0.0)
    barrier.command(Wish.CLOSE, now=2.0)
    if obstruct == "loop":
        barrier.set_closing_loop(occupied=True, now=2.4)
    else:
        barrier.set_photocell(interrupted=True, now=2.4)
    assert barrier.state(now=9.0).opening == pytest.approx(0.6)
    barrier.command(Wish.CLOSE, now=9.0)
    assert barrier.state(now=9.5).opening == pytest.approx(0.6)


def test_locked_and_faulty_ones_do_not_move(barrier):
    barrier.set_locked(locked=True, now=0.0)
    barrier.command(Wish.OPEN, now=0.0)
    assert barrier.state(now=5.0).closed_limit
    barrier.set_locked(locked=False, now=5.0)
    barrier.command(Wish.OPEN, now=5.0)
    barrier.set_fault(present=True, now=5.5)
    state = barrier.state(now=9.0)
    assert state.fault
    assert state.opening == pytest.approx(0.5)


@given(
    st.lists(
        st.tuples(st.sampled_from(["open", "close", "stop", "on", "off", "beam", "clear"]), st.floats(0, 3)),
        max_size=40,
    )
)
def test_it_never_moves_down_on_a_vehicle(steps):
    barrier, now = Barrier(travel_seconds=1.0), 0.0
    for step, pause in steps:
        now += pause
        match step:
            case "on" | "off":
                barrier.set_closing_loop(occupied=step == "on", now=now)
            case "beam" | "clear":
                barrier.set_photocell(interrupted=step == "beam", now=now)
            case _:
                barrier.command(Wish(step), now=now)
        state = barrier.state(now=now)
        assert 0.0 <= state.opening <= 1.0
        if state.closing_loop or state.photocell:
            assert state.moving >= 0
            assert barrier.state(now=now + pause).moving >= 0
            now += pause
