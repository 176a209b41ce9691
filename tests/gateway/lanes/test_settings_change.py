"""The times at which a lane's settings may be changed, and the lane's knowledge then."""

from __future__ import annotations

import pytest
from lane_rules import POINT, changed

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.safety import why_not_close
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.machine.troubles import why_not_changed
from gateway.runtime.clock import Stamp
from gateway.site import Role

ON, OFF, UNKNOWN = PointState.ON, PointState.OFF, PointState.UNKNOWN


def why(lane) -> str:
    return why_not_changed(lane.rules, lane.state, lane.at)


def start_afresh(lane, *, gate_lost: str = "") -> None:
    now = m.Now(lane.at, Stamp(0, trusted=True))
    lane.state = lane.state.afresh(now, gate_lost=gate_lost)


def test_a_passage_keeps_the_lane_until_its_vehicle_has_gone(lane):
    assert why(lane) == ""
    lane.arming(ON)
    assert why(lane) == "a vehicle is in it"
    lane.card()
    assert why(lane) == "a command to its gate is under way"
    lane.open_gate()
    assert why(lane) == "a vehicle is in it"
    lane.closing(ON)
    lane.arming(OFF)
    assert why(lane) == "a vehicle is in it"
    lane.closing(OFF)
    assert why(lane) == ""  # the gate stands open, and is closed later
    lane.clear()
    assert lane.actions()[-1] is GateAction.CLOSE
    assert why(lane) == "a command to its gate is under way"
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    assert why(lane) != ""
    lane.gate(GatePosition.CLOSED)
    assert why(lane) == ""


def test_somebody_under_the_gate_or_a_fire_keeps_it(lane):
    lane.rules = changed(lane.rules, fire=POINT)
    lane.ready()
    lane.closing(ON)
    assert why(lane) == "the closing loop is active"
    lane.closing(OFF)
    assert why(lane) == ""
    lane.fire(ON)
    assert why(lane) == "its fire input is active"


def test_a_vehicle_that_leaves_over_the_far_loop_keeps_it(make_script, rules):
    lane = make_script(changed(rules, direction="two-way", far=POINT, far_readers=frozenset({103})))
    lane.ready()
    lane.let_in()
    lane.closing(ON)
    lane.far(ON)
    lane.arming(OFF)
    lane.closing(OFF)
    lane.clear()
    lane.close_gate()
    assert why(lane) == "a vehicle is leaving it"
    lane.far(OFF)
    assert why(lane) == ""


def test_a_gate_that_moves_by_itself_keeps_it(lane):
    lane.gate(GatePosition.OPENING)
    assert why(lane) == "its gate moves"
    lane.gate(GatePosition.UNKNOWN)
    assert "its position is not known" in why(lane)
    lane.wait(lane.rules.travel_seconds + 1)
    assert why(lane) == ""


def test_a_person_may_say_that_nobody_is_in_it_but_a_command_ends_first(lane):
    lane.rules = changed(lane.rules, fire=POINT)
    lane.ready()
    for turn in (lane.fire, lane.arming, lane.closing):
        turn(ON)
    assert "under way" in why_not_changed(lane.rules, lane.state, lane.at, is_free=True)
    lane.open_gate()
    assert why(lane) == "its fire input is active"
    assert why_not_changed(lane.rules, lane.state, lane.at, is_free=True) == ""


def test_a_close_of_the_gateway_is_watched_to_its_end_whatever_a_person_says(lane):
    lane.let_in()
    lane.drive_through()
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    assert why_not_changed(lane.rules, lane.state, lane.at, is_free=True) == "the gateway closes its gate"
    lane.gate(GatePosition.CLOSED)
    assert why_not_changed(lane.rules, lane.state, lane.at, is_free=True) == ""


def test_what_is_away_does_not_keep_the_lane_from_being_mended(lane):
    lane.arming(ON)
    lane.arming(UNKNOWN)
    assert why(lane) == ""
    lane.arming(ON)
    lane.do(m.GateLost("nobody answers"))
    assert why(lane) == ""


@pytest.mark.parametrize("action", [GateAction.OPEN, GateAction.CLOSE])
def test_afterwards_nothing_is_known_and_no_close_is_sent(lane, action):
    lane.wish(GateAction.OPEN)
    lane.open_gate()
    lane.gate(GatePosition.CLOSED)
    lane.gate(GatePosition.OPEN)
    assert why_not_close(lane.rules, lane.state, lane.at) == ""
    made = lane.state.commands.made
    start_afresh(lane)
    assert why_not_close(lane.rules, lane.state, lane.at) != ""
    assert lane.state.commands.made == made
    sent = len(lane.sent)
    lane.wait(30, refresh=False)
    if action is GateAction.CLOSE:
        lane.wish(action)
    assert len(lane.sent) == sent
    lane.gate(GatePosition.OPEN)
    lane.wait(30, refresh=False)
    assert len(lane.sent) == sent
    for role in (Role.ARMING, Role.CLOSING):
        lane.do(m.InputReported(role, OFF, lane.at))
    for index in range(len(lane.rules.lane.points(Role.SAFETY))):
        lane.safety(OFF, index)
    lane.wait(lane.rules.lane.clear_after_loss_seconds + 5)
    assert lane.actions()[sent:] in ([], [GateAction.CLOSE])


def test_an_order_and_a_stop_stay(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.open_gate()
    order = lane.state.orders.operator
    start_afresh(lane, gate_lost="nobody answers")
    assert lane.state.orders.operator == order
    assert str(why_not_close(lane.rules, lane.state, lane.at)) == "the gate's controller is offline: nobody answers"

    lane.order(None)
    lane.state = lane.state.with_part(lane.state.stop.took_effect("guard", lane.at))
    start_afresh(lane)
    assert lane.state.stop.by == "guard"
