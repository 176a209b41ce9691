"""A person's stop: what it holds, what ends it, and that one that fails takes nothing away."""

from __future__ import annotations

import pytest
from lane_rules import POINT, changed

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.events import EventKind as E
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.orders import Order, OrderKind

OPEN, CLOSE, STOP = GateAction.OPEN, GateAction.CLOSE, GateAction.STOP
ON, OFF, UNKNOWN = PointState.ON, PointState.OFF, PointState.UNKNOWN
SCHEDULED = Order(OrderKind.HOLD_OPEN, "schedule")


def lane_of(rules, make_script, **changes):
    lane = make_script(changed(rules, **changes))
    lane.ready()
    return lane


def close_it(lane):
    """The gate closes on our word."""
    lane.gate(GatePosition.OPEN)
    lane.wait(5)
    lane.wish(CLOSE)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.wait(0.3)
    lane.sent.clear()


def stop_it(lane):
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.STOPPED)
    lane.wait(3)


def refuse(lane, *, sent=False):
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "no answer" if sent else "unit busy", sent=sent))


def stopped_half_way(lane):
    """Let in a vehicle that goes away again, and have a person stop the gate half-way."""
    lane.is_opened()
    lane.wait(0.5)
    stop_it(lane)
    lane.arming(OFF)
    lane.wait(5)
    lane.sent.clear()


# Until it is seen to have worked, nothing is taken away


@pytest.mark.parametrize("fate", ["under way", "refused", "unanswered", "acknowledged"])
def test_a_gate_that_closes_on_is_opened_again(lane, fate):
    close_it(lane)
    lane.wish(STOP)
    if fate == "acknowledged":
        lane.acknowledge()
    elif fate != "under way":
        refuse(lane, sent=fate == "unanswered")
    lane.gate(GatePosition.CLOSING)
    lane.wait(0.3)
    lane.closing(ON)
    assert lane.actions() == [STOP, OPEN]
    lane.acknowledge()
    assert E.GATE_REOPENED in lane.events


def test_a_stop_asked_for_before_the_gate_is_seen_to_close_takes_nothing_away(lane):
    lane.gate(GatePosition.OPEN)
    lane.wait(5)
    lane.wish(CLOSE)
    lane.acknowledge()
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.OPEN)
    lane.gate(GatePosition.CLOSING)
    lane.safety(ON)
    assert lane.actions() == [CLOSE, STOP, OPEN]
    lane.gate(GatePosition.OPEN)
    lane.safety(OFF)
    lane.wait(60)
    assert lane.actions() == [CLOSE, STOP, OPEN], "it was stopped all the same: nobody closes it"


def test_once_it_is_seen_stopped_it_is_held(lane):
    close_it(lane)
    stop_it(lane)
    lane.closing(ON)
    lane.wait(60)
    lane.closing(OFF)
    lane.wait(60)
    assert lane.actions() == [STOP]
    assert E.GATE_REOPENED not in lane.events


def test_a_stop_beside_an_open_against_something_in_the_way_is_given_a_second(lane):
    close_it(lane)
    lane.safety(ON)
    lane.acknowledge()
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    assert lane.actions() == [OPEN, STOP]
    lane.wait(1.1)
    assert lane.actions() == [OPEN, STOP, OPEN]


def test_a_close_that_never_went_out_is_sent_after_a_stop_that_did_not_either(lane):
    lane.gate(GatePosition.OPEN)
    lane.wait(5)
    lane.wish(CLOSE)
    lane.wish(STOP)
    lane.do(m.CommandFailed(lane.sent[0].command_id, "a later command has taken its place", sent=False))
    lane.closing(ON)
    assert lane.actions() == [CLOSE, STOP], "no close is under way"
    lane.closing(OFF)
    refuse(lane)
    assert lane.state.stop.by == ""
    lane.wait(6)
    assert lane.actions() == [CLOSE, STOP, CLOSE]


# A stop that fails


def test_an_opening_goes_on_over_a_stop_that_is_refused(lane):
    lane.is_opened()
    stop = lane.wish(STOP)
    refuse(lane)
    assert lane.reached[stop.command_id] is CommandState.REFUSED
    lane.gate(GatePosition.OPEN)
    lane.drive_through()
    lane.wait(5)
    assert lane.actions() == [OPEN, STOP, CLOSE]
    assert E.OPENING_TIMED_OUT not in lane.events
    assert E.UNAUTHORISED_PASSAGE not in lane.events
    assert E.VEHICLE_PASSED in lane.events


def test_an_opening_goes_on_over_a_stop_that_nobody_answered(lane):
    lane.is_opened()
    stop = lane.wish(STOP)
    refuse(lane, sent=True)
    lane.gate(GatePosition.OPEN)
    lane.wait(9)
    assert lane.reached[stop.command_id] is CommandState.UNKNOWN
    lane.drive_through()
    lane.wait(5)
    assert lane.actions() == [OPEN, STOP, CLOSE]
    assert E.UNAUTHORISED_PASSAGE not in lane.events


def test_a_stop_that_nobody_answered_holds_when_the_gate_is_seen_stopped(lane):
    close_it(lane)
    lane.wish(STOP)
    refuse(lane, sent=True)
    lane.gate(GatePosition.STOPPED)
    assert lane.state.stop.by == "demo"
    lane.wait(60)
    assert lane.actions() == [STOP]


def test_a_stop_of_unknown_outcome_holds_when_the_gate_is_found_stopped(lane):
    close_it(lane)
    lane.wish(STOP)
    lane.do(m.GateLost("cable"))
    lane.wait(3, refresh=False)
    lane.do(m.GateRegained())
    lane.gate(GatePosition.STOPPED)
    lane.wait(60)
    assert lane.actions() == [STOP]
    assert lane.events.count(E.STOP_BEGAN) == 1


def twice_stopped(lane):
    """A gate that was let open is stopped: the first stop works and is not answered yet, the second is refused."""
    lane.is_opened()
    lane.wait(0.3)
    first = lane.wish(STOP)
    lane.gate(GatePosition.STOPPED)
    lane.wait(0.4)
    lane.wish(STOP)
    refuse(lane)
    lane.wait(2)
    lane.sent.clear()
    return first


def test_a_stop_that_is_answered_late_holds_though_the_next_one_was_refused(lane):
    first = twice_stopped(lane)
    lane.do(m.CommandAcknowledged(first.command_id, lane.at))
    lane.arming(OFF)
    lane.wait(60)
    assert lane.actions() == []
    assert lane.events.count(E.STOP_BEGAN) == 1


def test_a_stop_that_nobody_answered_holds_though_the_next_one_was_refused(lane):
    twice_stopped(lane)
    lane.arming(OFF)
    lane.wait(60)
    assert lane.actions() == []
    assert lane.events.count(E.STOP_BEGAN) == 1


def test_stops_that_all_fail_hold_nothing(lane):
    lane.is_opened()
    lane.wait(0.3)
    stops = [lane.wish(STOP) for _ in range(3)]
    for stop in (stops[1], stops[2], stops[0]):
        lane.do(m.CommandFailed(stop.command_id, "unit busy", sent=False))
    lane.gate(GatePosition.OPEN)
    lane.arming(OFF)
    lane.wait(60)
    assert lane.actions()[-1] is CLOSE
    assert E.STOP_BEGAN not in lane.events


def test_an_open_after_two_stops_is_not_undone_by_a_late_answer(lane):
    first = twice_stopped(lane)
    lane.wish(OPEN)
    lane.do(m.CommandAcknowledged(first.command_id, lane.at))
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    lane.gate(GatePosition.OPEN)
    lane.drive_through()
    lane.wait(30)
    assert lane.actions()[-1] is CLOSE


def test_an_open_that_never_went_out_is_sent_after_a_stop_that_did_not_either(lane):
    lane.arming(ON)
    lane.card()
    lane.wish(STOP)
    lane.do(m.CommandFailed(lane.sent[0].command_id, "a later command has taken its place", sent=False))
    assert lane.actions() == [OPEN, STOP]
    refuse(lane)
    assert lane.actions() == [OPEN, STOP, OPEN]


def test_an_open_is_not_sent_after_its_deadline(lane):
    lane.arming(ON)
    lane.card()
    lane.wish(STOP)
    lane.do(m.CommandFailed(lane.sent[0].command_id, "a later command has taken its place", sent=False))
    lane.wait(5.5)
    refuse(lane)
    assert lane.actions() == [OPEN, STOP]


def test_an_opening_that_was_stopped_is_told_when_the_gate_is_seen_stopped(lane):
    lane.is_opened()
    lane.wish(STOP)
    assert E.OPENING_TIMED_OUT not in lane.events
    lane.acknowledge()
    lane.gate(GatePosition.STOPPED)
    assert lane.texts[-1] == "the gate did not open: stopped by demo"


# What it outlasts


def test_it_outlasts_a_lost_controller(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    stop_it(lane)
    lane.do(m.GateLost("cable"))
    lane.wait(3, refresh=False)
    lane.do(m.GateRegained())
    lane.gate(GatePosition.STOPPED)
    lane.wait(60)
    assert lane.actions() == [OPEN, STOP]


def test_it_outlasts_an_open_report_and_the_beginning_and_end_of_a_schedule(lane):
    stopped_half_way(lane)
    lane.do(m.OrderScheduled(SCHEDULED))
    lane.wait(30)
    lane.gate(GatePosition.OPEN)
    lane.gate(GatePosition.STOPPED)
    lane.wait(30)
    lane.do(m.OrderScheduled(None))
    lane.wait(30)
    assert lane.actions() == []


def test_it_outlasts_a_fire_that_is_over(rules, make_script):
    lane = lane_of(rules, make_script, fire=POINT)
    lane.fire(ON)
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    stop_it(lane)
    lane.fire(UNKNOWN)
    lane.wait(1)
    lane.fire(ON)
    assert "though the fire input is active" in str(lane.state.stop_words)
    lane.wait(30)
    lane.fire(OFF)
    lane.wait(60)
    assert lane.actions() == [OPEN, STOP]


def test_a_new_fire_opens_what_was_stopped_before(rules, make_script):
    lane = lane_of(rules, make_script, fire=POINT)
    stopped_half_way(lane)
    lane.fire(ON)
    assert lane.actions() == [OPEN]
    assert str(lane.state.stop_words) == ""


def test_after_a_restart_only_a_fire_that_is_new_opens_it(rules, make_script):
    for during_fire, wanted in ((True, []), (False, [OPEN])):
        lane = make_script(changed(rules, fire=POINT))
        lane.do(m.StopRemembered("demo", during_fire=during_fire))
        lane.do(m.GateRegained())
        lane.gate(GatePosition.STOPPED)
        lane.fire(ON)
        lane.wait(30)
        assert lane.actions()[:1] == wanted


def test_a_gate_that_was_left_stopped_open_is_not_closed_after_a_restart(fresh_lane):
    lane = fresh_lane
    lane.do(m.StopRemembered("demo", during_fire=False))
    lane.do(m.GateRegained())
    lane.arming(OFF)
    lane.closing(OFF)
    lane.safety(OFF)
    lane.gate(GatePosition.OPEN)
    lane.wait(60)
    assert lane.sent == []
    assert "demo stopped the gate" in str(lane.state.stop_words)


# What ends it


@pytest.mark.parametrize("kind", [OrderKind.NORMAL, OrderKind.LOCK_DOWN, None])
def test_an_order_ends_it_and_the_lane_closes(lane, kind):
    stopped_half_way(lane)
    lane.order(kind)
    assert lane.state.stop.by == ""
    lane.wait(5)
    assert lane.actions() == [CLOSE]


def test_the_same_order_given_again_ends_it(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    stop_it(lane)
    lane.order(OrderKind.HOLD_OPEN)
    assert lane.actions() == [OPEN, STOP, OPEN]
    assert lane.events[-1] is not E.STOP_BEGAN


def test_a_vehicle_let_in_at_a_gate_that_is_held_open_ends_it(lane):
    lane.do(m.OrderScheduled(SCHEDULED))
    lane.acknowledge()
    lane.gate(GatePosition.OPEN)
    lane.wait(2)
    lane.wish(STOP)
    lane.acknowledge()
    lane.wait(3)
    assert lane.state.stop.by == "demo"
    lane.arming(ON)
    lane.card()
    assert lane.state.stop.by == ""
    lane.drive_through()
    lane.do(m.OrderScheduled(None))
    lane.wait(10)
    assert lane.actions() == [OPEN, STOP, CLOSE]


def test_a_vehicle_let_in_behind_another_of_a_counted_lane_ends_it(rules, make_script):
    lane = lane_of(rules, make_script, vend="counted")
    lane.let_in()
    lane.closing(ON)
    lane.wait(1)
    lane.wish(STOP)
    lane.acknowledge()
    lane.arming(OFF)
    lane.wait(0.5)
    lane.arming(ON)
    lane.card()
    assert lane.state.stop.by == ""


def test_a_gate_that_is_seen_closed_ends_it(lane):
    stopped_half_way(lane)
    lane.gate(GatePosition.CLOSED)
    assert lane.state.stop.by == ""
    assert lane.texts[-1] == "no longer stopped by demo: the gate is closed"


def test_a_stop_at_a_closed_gate_holds_it_against_an_order_to_hold_it_open(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.wish(STOP)
    lane.acknowledge()
    lane.wait(120)
    assert lane.actions() == [OPEN, STOP]
    lane.wish(OPEN)
    assert lane.actions() == [OPEN, STOP, OPEN]


def test_a_stop_at_a_closed_gate_that_nothing_opens_is_done(lane):
    lane.wish(STOP)
    lane.acknowledge()
    assert E.STOP_BEGAN not in lane.events
    lane.wait(3)
    assert str(lane.state.stop_words) == ""


# What people are shown


def test_what_is_said_outlives_arrivals_and_denials(lane):
    stopped_half_way(lane)
    lane.arming(ON)
    lane.card("9999")
    lane.wait(2)
    lane.arming(OFF)
    lane.wait(60)
    assert str(lane.state.stop_words) == (
        "demo stopped the gate; it stays so until somebody opens or closes it, somebody gives the lane an "
        "order, or a vehicle is let in"
    )
    lane.order(OrderKind.HOLD_OPEN)
    assert str(lane.state.stop_words) == ""


def test_what_is_said_while_an_order_holds_the_lane_open(lane):
    lane.order(OrderKind.HOLD_OPEN, "market day")
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    stop_it(lane)
    assert str(lane.state.stop_words).startswith(
        "demo stopped the gate, though the lane is held open by guard: market day; it stays so until"
    )


def test_open_that_a_stop_overtook_does_not_move_a_gate_that_stands_stopped(rules, make_script):
    """A jammed line tells only later that the open never went out; until then something came into the way."""
    lane = lane_of(rules, make_script)
    close_it(lane)
    lane.closing(ON)
    lane.gate(GatePosition.STOPPED)
    lane.closing(OFF)
    opened = lane.wish(OPEN)
    lane.wait(0.4)
    lane.wish(STOP)
    lane.acknowledge()
    lane.wait(1.5)
    lane.closing(ON)
    lane.sent.clear()
    lane.do(m.CommandFailed(opened.command_id, "line busy", sent=False))
    lane.wait(2)
    assert lane.actions() == []
