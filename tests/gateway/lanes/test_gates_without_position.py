"""A gate of which nothing reports where it is, such as a turnstile: a command that its controller has taken is done."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lane_rules import POINT, changed, lane_rules

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.events import EventKind, Severity
from gateway.domain.passages import PassageOutcome
from gateway.lanes.machine.safety import why_not_close
from gateway.lanes.machine.troubles import why_unable
from gateway.lanes.snapshots import Phase


@pytest.fixture
def lane(make_script):
    lane = make_script(replace(lane_rules(closes="device", safety_points=0), has_position=False))
    lane.arming(PointState.OFF)
    lane.closing(PointState.OFF)
    lane.gate(GatePosition.UNKNOWN)
    lane.wait(60)
    return lane


def alarms(lane) -> list[EventKind]:
    return [kind for kind in lane.events if kind.severity is Severity.ALARM]


def test_the_lane_works_while_nobody_knows_where_its_gate_is(lane):
    assert list(why_unable(lane.rules, lane.state, lane.at)) == []
    assert lane.events == []


def test_a_vehicle_passes_after_the_controller_has_taken_the_open(lane):
    lane.arming(PointState.ON)
    lane.card()
    lane.acknowledge()
    assert lane.reached[lane.sent[-1].command_id] is CommandState.DONE
    assert lane.state.visits.phase is Phase.OPEN
    lane.wait(30)
    lane.drive_through()
    assert [passage.outcome for passage in lane.passages] == [PassageOutcome.PASSED]
    lane.wait(120)
    assert (lane.state.visits.phase, lane.actions(), alarms(lane)) == (Phase.IDLE, [GateAction.OPEN], [])


def test_a_vehicle_that_first_touches_the_loop_under_the_gate_may_still_pass(lane):
    lane.arming(PointState.ON)
    lane.card()
    lane.acknowledge()
    lane.closing(PointState.ON)
    lane.closing(PointState.OFF)
    lane.wait(30)
    assert (lane.state.visits.phase, alarms(lane)) == (Phase.OPEN, [])


def test_an_open_by_a_person_that_nobody_uses_ends_without_an_alarm(lane):
    command = lane.wish(GateAction.OPEN)
    lane.acknowledge()
    assert lane.reached[command.command_id] is CommandState.DONE
    lane.wait(300)
    assert (lane.state.visits.phase, lane.actions(), alarms(lane)) == (Phase.IDLE, [GateAction.OPEN], [])


def test_a_close_by_a_person_is_left_to_the_controller(lane):
    lane.wish(GateAction.CLOSE)
    lane.wait(60)
    assert (lane.actions(), alarms(lane)) == ([], [])
    assert "its controller must close it" in str(why_not_close(lane.rules, lane.state, lane.at))


def test_an_open_that_the_controller_does_not_take_is_still_an_alarm(lane):
    lane.wish(GateAction.OPEN)
    lane.wait(60)
    assert EventKind.OPENING_TIMED_OUT in lane.events


def test_a_fire_opens_it_again_and_again_and_says_nothing_of_a_gate_that_does_not_move(lane):
    lane.rules = changed(lane.rules, fire=POINT)
    lane.fire(PointState.ON)
    for _ in range(5):
        lane.acknowledge()
        lane.wait(20)
    assert (len(lane.sent) > 3, lane.state.troubles.unmoved) == (True, "")
