"""A close in the place of another: the first may move the gate while the second waits for the line."""

from __future__ import annotations

import pytest

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.lanes.machine import messages as m

ON, OFF = PointState.ON, PointState.OFF
OPEN, CLOSE, STOP = GateAction.OPEN, GateAction.CLOSE, GateAction.STOP


def fail(lane, command, *, sent):
    lane.do(m.CommandFailed(command.command_id, "no answer" if sent else "the line was not free", sent=sent))


@pytest.fixture
def twice(lane):
    """A lane whose close was acknowledged, and in whose place a person's close waits for the line."""
    lane.let_in()
    lane.drive_through()
    lane.acknowledge()
    lane.wish(CLOSE)
    assert lane.actions() == [OPEN, CLOSE, CLOSE]
    return lane


def test_what_comes_into_the_way_undoes_the_first_close_at_once(twice):
    twice.safety(ON)
    assert twice.actions() == [OPEN, CLOSE, CLOSE, OPEN]


def test_the_first_close_is_watched_when_the_second_did_not_go_out(twice):
    fail(twice, twice.sent[-1], sent=False)
    twice.safety(ON)
    assert twice.actions() == [OPEN, CLOSE, CLOSE, OPEN]


def test_the_drivers_last_question_that_stops_the_second_undoes_the_first(twice):
    """The obstacle comes while the second close has its turn."""
    close = twice.sent[-1]
    twice.safety(ON)
    fail(twice, close, sent=False)
    assert twice.actions() == [OPEN, CLOSE, CLOSE, OPEN]


def test_a_stop_that_waits_keeps_the_first_close_watched(twice):
    second = twice.sent[-1]
    twice.wish(STOP)
    fail(twice, second, sent=False)
    twice.safety(ON)
    assert twice.actions() == [OPEN, CLOSE, CLOSE, STOP, OPEN]


def test_a_first_close_that_never_went_out_is_not_undone(lane):
    """Nor is the second while it waits: beside it, an open would close a gate that moves step by step."""
    lane.let_in()
    lane.drive_through()
    first = lane.sent[-1]
    lane.wish(CLOSE)
    fail(lane, first, sent=False)
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, CLOSE]


def test_a_first_close_that_turns_out_to_have_gone_out_is_undone_then(lane):
    lane.let_in()
    lane.drive_through()
    first = lane.sent[-1]
    lane.wish(CLOSE)
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, CLOSE]
    fail(lane, first, sent=True)
    assert lane.actions() == [OPEN, CLOSE, CLOSE, OPEN]


def test_the_open_for_a_vehicle_goes_on_undoing_the_first_close(twice):
    """The second close, whose place the open takes, never went out; the first may still move the gate."""
    second = twice.sent[-1]
    twice.arming(ON)
    twice.card()
    opening = twice.sent[-1]
    assert opening.action is OPEN
    fail(twice, second, sent=False)
    fail(twice, opening, sent=False)
    twice.gate(GatePosition.CLOSING)
    twice.safety(ON)
    assert twice.actions() == [OPEN, CLOSE, CLOSE, OPEN, OPEN]
