"""Vehicles that come over the closing loop first: they want out where others want in."""

from __future__ import annotations

import pytest

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind as E
from gateway.domain.passages import PassageOutcome as P
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.snapshots import Phase

ON, OFF = PointState.ON, PointState.OFF
OPEN = GateAction.OPEN


def out_over(lane):
    """Both loops on, then off, as a vehicle that leaves through an entry has them."""
    lane.arming(ON)
    lane.wait(1)
    lane.closing(OFF)
    lane.wait(1)
    lane.arming(OFF)


def test_card_at_a_closed_gate_is_suppressed_until_the_other_vehicle_has_gone_back(lane):
    lane.closing(ON)
    lane.wait(30)
    lane.arming(ON)
    lane.card()
    assert lane.sent == []
    assert lane.events[-1] is E.CARD_IGNORED
    assert "came the other way" in str(lane.state.note)
    lane.closing(OFF)
    lane.card()
    assert lane.actions() == [OPEN]
    assert E.UNAUTHORISED_PASSAGE not in lane.events
    assert E.WRONG_WAY not in lane.events


def test_plate_waits_meanwhile_and_counts_then(lane):
    lane.closing(ON)
    lane.wait(1)
    lane.arming(ON)
    lane.plate("ABC123", 0.99)
    lane.wait(5)
    assert lane.asked == []
    lane.closing(OFF)
    assert [one.credential.plate for one in lane.asked] == ["ABC123"]


def test_early_card_is_suppressed_too(lane):
    lane.closing(ON)
    lane.wait(1)
    lane.card()
    lane.wait(0.5)
    lane.arming(ON)
    assert lane.asked == []
    assert lane.events[-1] is E.CARD_IGNORED


def test_closing_loop_that_is_stuck_keeps_nobody_out(lane):
    lane.closing(ON)
    lane.wait(lane.rules.lane.stuck_seconds)
    assert E.INPUT_STUCK in lane.events
    lane.arming(ON)
    lane.card()
    assert lane.actions() == [OPEN]


def test_vehicle_that_stands_there_first_is_not_suppressed_by_its_own_front(lane):
    lane.arming(ON)
    lane.wait(1)
    lane.closing(ON)
    lane.card()
    assert lane.actions() == [OPEN]


@pytest.mark.parametrize("stands_there_first", [True, False])
def test_somebody_opens_for_a_vehicle_that_leaves_through_an_entry(lane, stands_there_first):
    if stands_there_first:
        lane.closing(ON)
        lane.wait(30)
    lane.wish(OPEN)
    lane.open_gate()
    lane.closing(ON)
    lane.wait(1)
    out_over(lane)
    lane.wait(lane.rules.lane.back_out_seconds + 1)
    assert [(one.direction, one.outcome, one.reason) for one in lane.passages] == [("exit", P.PASSED, "user:demo")]
    assert E.WRONG_WAY in lane.events
    assert E.VEHICLE_BACKED_OUT not in lane.events
    assert lane.state.visits.phase is Phase.IDLE
    assert lane.actions()[-1] is GateAction.CLOSE


def test_vehicle_behind_a_closed_gate_leaves_once_the_gate_is_held_open(lane):
    lane.closing(ON)
    lane.wait(30)
    lane.order(OrderKind.HOLD_OPEN)
    lane.open_gate()
    out_over(lane)
    assert [(one.direction, one.outcome, one.reason) for one in lane.passages] == [("exit", P.PASSED, "hold_open")]


def test_vehicle_behind_a_closed_gate_that_goes_back_is_no_passage(lane):
    lane.closing(ON)
    lane.wait(5)
    lane.closing(OFF)
    lane.wait(5)
    assert lane.passages == []
    lane.closing(ON)
    lane.wish(OPEN)
    lane.open_gate()
    lane.closing(OFF)
    lane.wait(lane.rules.lane.waiting_seconds + 1)
    assert lane.passages == []


def test_vehicle_behind_a_gate_that_is_forced_open_leaves_the_wrong_way(lane):
    lane.closing(ON)
    lane.wait(30)
    lane.gate(GatePosition.STOPPED)
    out_over(lane)
    assert [(one.direction, one.outcome) for one in lane.passages] == [("exit", P.UNAUTHORISED)]
    assert E.WRONG_WAY in lane.events


@pytest.mark.parametrize("seconds", [0.3, 5])
def test_who_comes_after_one_that_was_let_out_is_let_in(lane, seconds):
    """The closing loop was unknown for a moment under a vehicle that a person let out from over it."""
    lane.gate(GatePosition.OPEN)
    lane.closing(ON)
    lane.wait(1)
    lane.wish(OPEN)
    lane.acknowledge()
    lane.gate(GatePosition.OPEN)
    lane.closing(PointState.UNKNOWN)
    lane.wait(1)
    lane.closing(ON)
    lane.wait(1)
    lane.closing(OFF)
    lane.wait(seconds)
    lane.arming(ON)
    lane.card()
    assert lane.state.visits.phase is Phase.OPENING
