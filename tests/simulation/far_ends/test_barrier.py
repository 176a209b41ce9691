"""The barrier as a machine, with instants given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.far_ends.barrier import Barrier, Wish


@pytest.fixture
def barrier():
    return Barrier(travel_seconds=1.0, close_delay=0.5, wait_seconds=10.0)


def test_opening_takes_its_time(barrier):
    barrier.command(Wish.OPEN, now=100.0)
    assert barrier.state(now=100.0).closed_limit
    halfway = barrier.state(now=100.5)
    assert halfway.opening == pytest.approx(0.5)
    assert not halfway.closed_limit
    assert not halfway.open_limit
    assert halfway.moving == 1
    opened = barrier.state(now=101.0)
    assert opened.open_limit
    assert opened.moving == 0


def test_stop_and_reverse(barrier):
    barrier.command(Wish.OPEN, now=0.0)
    barrier.command(Wish.STOP, now=0.5)
    assert barrier.state(now=5.0).opening == pytest.approx(0.5)
    barrier.command(Wish.CLOSE, now=5.0)
    assert barrier.state(now=5.5).closed_limit


def test_it_closes_by_itself_behind_a_vehicle(barrier):
    barrier.command(Wish.OPEN, now=0.0)
    barrier.set_closing_loop(occupied=True, now=2.0)
    assert barrier.state(now=60.0).open_limit
    barrier.set_closing_loop(occupied=False, now=60.0)
    assert barrier.state(now=60.4).open_limit
    assert barrier.state(now=60.6).moving == -1
    assert barrier.state(now=70.0).closed_limit


def test_it_closes_when_no_vehicle_comes(barrier):
    barrier.command(Wish.OPEN, now=0.0)
    assert barrier.state(now=10.9).open_limit
    assert barrier.state(now=12.1).closed_limit


def test_one_that_does_not_close_by_itself_stays_open():
    barrier = Barrier(closes_itself=False)
    barrier.command(Wish.OPEN, now=0.0)
    barrier.set_closing_loop(occupied=True, now=2.0)
    barrier.set_closing_loop(occupied=False, now=3.0)
    assert barrier.state(now=1000.0).open_limit


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


def test_a_closing_that_the_beam_stopped_goes_on_when_it_is_clear(barrier):
    barrier.command(Wish.OPEN, now=0.0)
    barrier.command(Wish.CLOSE, now=2.0)
    barrier.set_photocell(interrupted=True, now=2.4)
    barrier.set_photocell(interrupted=False, now=5.0)
    assert barrier.state(now=5.4).moving == 0
    assert barrier.state(now=7.0).closed_limit


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


def test_somebody_pushes_the_arm(barrier):
    barrier.force(opening=0.7, now=1.0)
    assert barrier.state(now=2.0).opening == pytest.approx(0.7)


@given(
    st.lists(
        st.tuples(st.sampled_from(["open", "close", "stop", "on", "off", "beam", "clear"]), st.floats(0, 3)),
        max_size=40,
    )
)
def test_it_never_moves_down_on_a_vehicle(steps):
    barrier, now = Barrier(travel_seconds=1.0, wait_seconds=2.0), 0.0
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
