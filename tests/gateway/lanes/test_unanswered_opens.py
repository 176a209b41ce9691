"""Opens that got no answer, at a gate that stands open and begins to close later, as one with a warning lamp does."""

from __future__ import annotations

import pytest

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.events import EventKind
from gateway.domain.passages import PassageOutcome
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.snapshots import Phase


@pytest.fixture
def closing_lane(lane):
    """A lane whose controller has acknowledged the close, and whose gate still stands open."""
    lane.arming(PointState.ON)
    lane.card()
    lane.open_gate()
    lane.drive_through()
    assert lane.actions()[-1] is GateAction.CLOSE
    lane.acknowledge()
    lane.wait(0.3)
    return lane


def unanswered(lane, *, hangs_up: bool) -> None:
    """Let the last command get no answer, and the gate read as before."""
    lane.at += 0.4
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "no answer", sent=True))
    if hangs_up:
        lane.do(m.GateLost("the line was reset"))
        lane.at += 0.1
        lane.do(m.GateRegained())
    lane.gate(GatePosition.OPEN)


def something_passes(lane) -> None:
    """Let something come into the way and leave it; the open that it causes gets no answer."""
    lane.closing(PointState.ON)
    unanswered(lane, hangs_up=False)
    lane.closing(PointState.OFF)


@pytest.mark.parametrize("hangs_up", [True, False])
@pytest.mark.parametrize("by", ["lane", "person"])
@pytest.mark.parametrize("warns_for", [0.0, 0.5, 2.5])
def test_gate_that_closes_after_an_unanswered_open_is_opened_again(closing_lane, by, hangs_up, warns_for):
    lane = closing_lane
    if by == "person":
        lane.wish(GateAction.OPEN)
    lane.closing(PointState.ON)
    before = len(lane.sent)
    unanswered(lane, hangs_up=hangs_up)
    lane.wait(warns_for)
    lane.gate(GatePosition.CLOSING)
    lane.wait(1.1)
    assert set(lane.actions()[before:]) == {GateAction.OPEN}


def test_close_is_watched_on_when_the_way_is_free_for_a_moment_after_an_unanswered_open(closing_lane):
    lane = closing_lane
    something_passes(lane)
    lane.wait(1.5)
    before = len(lane.sent)
    lane.closing(PointState.ON)
    lane.gate(GatePosition.CLOSING)
    lane.wait(0.1)
    assert lane.actions()[before:] == [GateAction.OPEN]


@pytest.mark.parametrize("hangs_up", [True, False])
def test_gate_that_merely_stands_open_is_not_told_as_opened_again(closing_lane, hangs_up):
    lane = closing_lane
    lane.closing(PointState.ON)
    reopening = lane.sent[-1]
    unanswered(lane, hangs_up=hangs_up)
    lane.wait(0.3)
    assert EventKind.GATE_REOPENED not in lane.events
    assert lane.reached.get(reopening.command_id) is not CommandState.DONE
    lane.wait(1)
    lane.acknowledge()
    lane.wait(0.1)
    assert EventKind.GATE_REOPENED in lane.events, "the next open was acknowledged"


@pytest.mark.parametrize(
    ("moves", "text"),
    [
        (False, "the gate was told to close and is opened again: the closing loop is active"),
        (True, "the gate was closing and is opened again: the closing loop is active"),
    ],
)
def test_only_a_gate_that_was_seen_to_close_is_told_as_closing(closing_lane, moves, text):
    lane = closing_lane
    if moves:
        lane.gate(GatePosition.CLOSING)
    lane.closing(PointState.ON)
    lane.acknowledge()
    lane.wait(0.1)
    assert text in lane.texts


def test_unanswered_open_of_an_open_gate_is_of_unknown_outcome(lane):
    lane.order(None)
    lane.gate(GatePosition.OPEN)
    asked = lane.wish(GateAction.OPEN)
    lane.at += 0.4
    lane.do(m.CommandFailed(asked.command_id, "no answer", sent=True))
    lane.wait(lane.rules.lane.opening_seconds + 1)
    assert lane.reached[asked.command_id] is CommandState.UNKNOWN


def test_unanswered_open_is_done_once_the_gate_opens_after_it(lane):
    asked = lane.wish(GateAction.OPEN)
    lane.at += 0.4
    lane.do(m.CommandFailed(asked.command_id, "no answer", sent=True))
    lane.gate(GatePosition.OPENING)
    assert lane.reached[asked.command_id] is CommandState.DONE


@pytest.mark.parametrize("by", ["person", "lane"])
def test_close_before_an_unanswered_open_is_watched_on_when_the_next_close_never_goes_out(closing_lane, by):
    lane = closing_lane
    something_passes(lane)
    lane.wait(3.2)
    if by == "person":
        lane.wish(GateAction.CLOSE)
    else:
        lane.wait(lane.rules.lane.closing_seconds)
    before = len(lane.sent)
    assert lane.actions()[-1] is GateAction.CLOSE
    lane.closing(PointState.ON)
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "closing loop is active", sent=False))
    lane.gate(GatePosition.CLOSING)
    lane.wait(1.1)
    assert set(lane.actions()[before:]) == {GateAction.OPEN}


def test_gate_that_is_to_stay_open_is_opened_once_more_where_a_close_may_not_be_undone(closing_lane):
    lane = closing_lane
    something_passes(lane)
    lane.wait(1.5)
    before = len(lane.sent)
    lane.order(OrderKind.HOLD_OPEN)
    lane.wait(0.1)
    assert lane.actions()[before:] == [GateAction.OPEN]


@pytest.fixture
def lane_without_line(lane):
    """A lane that has commanded an open for a card, and whose controller is away since."""
    lane.arming(PointState.ON)
    lane.card()
    lane.do(m.GateLost("the line was reset"))
    return lane


def test_gate_that_opened_while_its_controller_was_away_lets_its_vehicle_pass(lane_without_line):
    lane = lane_without_line
    lane.wait(25, refresh=False)
    assert EventKind.OPENING_TIMED_OUT not in lane.events
    lane.do(m.GateRegained())
    lane.gate(GatePosition.OPEN)
    lane.refresh()
    lane.drive_through()
    assert lane.passages[-1].outcome is PassageOutcome.PASSED
    assert lane.passages[-1].credential == "0007"


def test_gate_that_is_seen_closed_after_the_loss_of_its_controller_did_not_open(lane_without_line):
    lane = lane_without_line
    lane.wait(25, refresh=False)
    lane.do(m.GateRegained())
    lane.gate(GatePosition.CLOSED)
    lane.wait(lane.rules.lane.opening_seconds + 0.1)
    assert lane.passages[-1].outcome is PassageOutcome.NOT_OPENED
    assert lane.state.visits.phase is Phase.ARMED


def test_vehicle_that_leaves_a_gate_without_its_controller_ends_its_visit(lane_without_line):
    """The loops are on another line."""
    lane = lane_without_line
    lane.wait(25)
    lane.arming(PointState.OFF)
    lane.wait(lane.rules.lane.back_out_seconds + 0.1)
    assert lane.passages[-1].outcome is PassageOutcome.NOT_OPENED
    assert lane.state.visits.phase is Phase.IDLE
