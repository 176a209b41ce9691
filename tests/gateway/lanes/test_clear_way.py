"""Loops that drop out under a vehicle: no close too soon, no gate that goes on closing, nobody who is not there."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from lane_rules import POINT, changed

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.events import EventKind as E
from gateway.domain.passages import PassageOutcome as P
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import PAUSE_SECONDS
from gateway.lanes.machine.safety import is_close_near
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.snapshots import Phase
from gateway.site import Role

ON, OFF, UNKNOWN = PointState.ON, PointState.OFF, PointState.UNKNOWN
OPEN, CLOSE, STOP = GateAction.OPEN, GateAction.CLOSE, GateAction.STOP


def under_the_gate(lane):
    lane.let_in()
    lane.closing(ON)
    lane.wait(0.5)
    lane.arming(OFF)
    lane.wait(0.5)


def closing_gate(lane):
    lane.let_in()
    lane.drive_through()
    assert lane.actions() == [OPEN, CLOSE]
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)


def outcomes(lane):
    return [passage.outcome for passage in lane.passages]


# Before a close


def test_dropout_under_a_vehicle_closes_nothing_and_is_no_second_vehicle(lane):
    under_the_gate(lane)
    lane.closing(OFF)
    lane.wait(0.15)
    lane.closing(ON)
    lane.wait(8)
    assert lane.actions() == [OPEN]
    lane.closing(OFF)
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]
    assert outcomes(lane) == [P.PASSED]


def test_one_reading_is_not_enough_for_a_close(lane):
    under_the_gate(lane)
    lane.closing(OFF)
    lane.wait(1.5, refresh=False)
    assert lane.actions() == [OPEN]
    lane.closing(OFF)
    assert lane.actions() == [OPEN, CLOSE]


def test_each_closing_point_must_be_clear(lane):
    under_the_gate(lane)
    lane.safety(ON)
    lane.closing(OFF)
    lane.wait(0.9)
    lane.safety(OFF)
    lane.wait(0.9)
    assert lane.actions() == [OPEN]
    lane.wait(0.2)
    assert lane.actions() == [OPEN, CLOSE]


@pytest.mark.parametrize("seconds", [0.3, 4.0])
def test_the_clear_time_is_the_lanes_own(rules, make_script, seconds):
    lane = make_script(changed(rules, clear_seconds=seconds))
    lane.ready()
    under_the_gate(lane)
    lane.closing(OFF)
    lane.wait(seconds - 0.1)
    assert lane.actions() == [OPEN]
    lane.wait(0.2)
    assert lane.actions() == [OPEN, CLOSE]


def test_point_that_comes_back_from_a_loss_must_be_clear_for_longer(lane):
    under_the_gate(lane)
    lane.closing(OFF)
    lane.safety(UNKNOWN)
    lane.wait(0.5)
    lane.safety(OFF)
    lane.wait(lane.rules.lane.clear_after_loss_seconds - 0.1)
    assert lane.actions() == [OPEN]
    lane.wait(0.2)
    assert lane.actions() == [OPEN, CLOSE]


def test_a_persons_close_needs_a_clear_way_too(lane):
    lane.wish(OPEN)
    lane.open_gate()
    lane.closing(ON)
    lane.wait(1)
    lane.closing(OFF)
    close = lane.wish(CLOSE)
    assert lane.reached[close.command_id] is CommandState.REFUSED
    assert "has not been free for 1 s yet" in lane.texts[-1]


def test_what_comes_up_before_the_first_byte_is_no_failed_try(lane):
    under_the_gate(lane)
    lane.closing(OFF)
    lane.clear()
    for _ in range(5):
        close = lane.sent[-1]
        assert close.action is CLOSE
        lane.closing(ON)
        lane.do(m.CommandFailed(close.command_id, "the closing loop is active", sent=False))
        lane.wait(3)
        lane.closing(OFF)
        lane.clear()
    assert OPEN not in lane.actions()[1:], "nothing was on the wire: there is nothing to undo"
    assert E.CLOSING_TIMED_OUT not in lane.events
    assert lane.actions()[-1] is CLOSE


def test_the_point_that_holds_is_named_as_in_the_site_file_and_as_it_changes(rules, make_script):
    lane = make_script(replace(rules, safety_names=("photocell",)))
    lane.ready()
    under_the_gate(lane)
    lane.order(OrderKind.HOLD_OPEN)
    lane.order(None)
    lane.wait(4)
    lane.closing(OFF)
    lane.closing(ON)
    lane.wait(4)
    assert str(lane.state.note) == "closing waits: the closing loop is active"
    lane.safety(ON)
    lane.closing(OFF)
    lane.wait(1)
    assert str(lane.state.note) == "closing waits: photocell is active"
    lane.safety(OFF)
    lane.wait(0.2)
    assert str(lane.state.note) == "closing waits: photocell has not been free for 1 s yet"
    lane.clear()
    assert str(lane.state.note) == ""


# While it closes


@pytest.mark.parametrize("state", [ON, UNKNOWN])
@pytest.mark.parametrize("point", ["closing", "safety"])
def test_what_comes_into_the_way_opens_it_again_at_once(lane, point, state):
    closing_gate(lane)
    getattr(lane, point)(state)
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    assert E.GATE_REOPENED not in lane.events, "asked, and not acknowledged yet"
    assert "asked to open again" in str(lane.state.note)
    lane.acknowledge()
    assert E.GATE_REOPENED in lane.events
    assert outcomes(lane) == [P.PASSED]
    lane.open_gate()
    getattr(lane, point)(OFF)
    lane.wait(10)
    assert lane.actions() == [OPEN, CLOSE, OPEN, CLOSE], "and closes once the way is clear"


def test_point_that_goes_stale_opens_it_again(lane):
    closing_gate(lane)
    lane.wait(lane.rules.policy.stale_seconds + 0.5, refresh=False)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_close_on_the_wire_is_undone_as_soon_as_it_is_known_to_be_there(lane):
    lane.let_in()
    lane.drive_through()
    lane.closing(ON)
    assert lane.actions() == [OPEN, CLOSE], "an open may come before it"
    lane.acknowledge()
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_close_that_may_have_been_heard_is_undone(lane):
    lane.let_in()
    lane.drive_through()
    lane.closing(ON)
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "no answer", sent=True))
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_a_persons_close_is_undone_too_in_a_lock_down_as_well(lane):
    lane.wish(OPEN)
    lane.open_gate()
    lane.order(OrderKind.LOCK_DOWN)
    lane.wish(CLOSE)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_an_opening_again_that_nobody_acknowledged_is_not_on_record(lane):
    closing_gate(lane)
    lane.closing(ON)
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "the line was reset", sent=False))
    lane.closing(OFF)
    lane.wait(2)
    assert E.GATE_REOPENED not in lane.events
    assert any("but its controller did not acknowledge: the closing loop is active" in text for text in lane.texts)


def test_gate_that_is_closed_before_its_open_moves_it_is_closed_again_later(lane):
    closing_gate(lane)
    lane.closing(ON)
    lane.gate(GatePosition.CLOSED)
    lane.acknowledge()
    assert E.GATE_REOPENED in lane.events
    lane.gate(GatePosition.OPENING)
    lane.gate(GatePosition.OPEN)
    lane.closing(OFF)
    lane.wait(PAUSE_SECONDS + lane.rules.lane.clear_seconds)
    assert lane.actions() == [OPEN, CLOSE, OPEN, CLOSE]


def test_closed_gate_that_an_open_does_not_move_is_left_closed(lane):
    closing_gate(lane)
    lane.closing(ON)
    lane.gate(GatePosition.CLOSED)
    lane.acknowledge()
    lane.closing(OFF)
    lane.wait(60)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_an_open_that_did_not_go_out_is_asked_for_again_soon(lane):
    closing_gate(lane)
    lane.closing(ON)
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "the line was reset", sent=False))
    lane.wait(0.3)
    assert lane.actions() == [OPEN, CLOSE, OPEN, OPEN]


@pytest.fixture(params=["fire", "hold_open"])
def keep_open(request, rules, make_script):
    """A lane whose close is on its way to an open gate, and what has the gate kept open."""
    lane = make_script(changed(rules, fire=POINT))
    lane.ready()
    lane.let_in()
    lane.drive_through()
    assert lane.actions() == [OPEN, CLOSE]
    return lane, (lambda: lane.fire(ON)) if request.param == "fire" else (lambda: lane.order(OrderKind.HOLD_OPEN))


def test_gate_that_is_to_stay_open_is_opened_again_though_its_close_has_not_moved_it_yet(keep_open):
    lane, begin = keep_open
    lane.acknowledge()
    begin()
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    lane.acknowledge()
    lane.gate(GatePosition.OPEN)
    lane.wait(60)
    assert lane.actions() == [OPEN, CLOSE, OPEN], "and left alone once it is seen open after that"
    assert E.CLOSING_HELD not in lane.events


def test_gate_that_is_to_stay_open_is_opened_again_once_its_close_was_answered(keep_open):
    lane, begin = keep_open
    begin()
    lane.wait(0.3)
    assert lane.actions() == [OPEN, CLOSE], "an open may come before it"
    lane.acknowledge()
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_gate_that_is_to_stay_open_is_left_alone_when_its_close_never_went_out(keep_open):
    lane, begin = keep_open
    begin()
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "it is to stay open", sent=False))
    lane.wait(60)
    assert lane.actions() == [OPEN, CLOSE]
    assert E.CLOSING_HELD not in lane.events


def test_vehicle_that_is_let_in_before_the_close_is_answered_does_not_keep_it_from_being_undone(keep_open):
    lane, begin = keep_open
    begin()
    lane.arming(ON)
    lane.card()
    assert lane.state.visits.phase is Phase.OPEN
    lane.acknowledge()
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_controller_that_was_lost_with_a_close_under_way_is_told_to_stay_open(keep_open):
    lane, begin = keep_open
    lane.acknowledge()
    lane.do(m.GateLost("no power"))
    begin()
    lane.wait(5, refresh=False)
    lane.do(m.GateRegained())
    lane.gate(GatePosition.OPEN)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_order_to_hold_open_undoes_no_close_while_somebody_works_at_the_gate(rules, make_script):
    lane = make_script(changed(rules, key_switch=POINT))
    lane.ready()
    closing_gate(lane)
    lane.key_switch(ON)
    lane.order(OrderKind.HOLD_OPEN)
    assert lane.actions() == [OPEN, CLOSE]
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN], "what comes into its way does"


def test_stop_of_a_person_in_a_fire_counts_for_more_than_undoing_a_close(rules, make_script):
    lane = make_script(changed(rules, fire=POINT))
    lane.ready()
    lane.fire(ON)
    lane.open_gate()
    lane.fire(OFF)
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]
    lane.acknowledge()
    lane.wish(STOP)
    lane.acknowledge()
    lane.fire(ON)
    lane.wait(1)
    assert lane.actions() == [OPEN, CLOSE, STOP], "the same fire, whose contact blinks"


def test_open_of_a_gate_that_stands_open_is_asked_for_again_when_it_did_not_go_out(keep_open):
    lane, begin = keep_open
    lane.acknowledge()
    begin()
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "the line was reset", sent=False))
    lane.wait(0.3)
    assert lane.actions() == [OPEN, CLOSE, OPEN, OPEN]


def test_close_that_has_not_moved_the_gate_yet_is_undone_again_when_the_open_did_not_go_out(lane):
    lane.let_in()
    lane.drive_through()
    lane.acknowledge()
    lane.safety(ON)
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "the line was reset", sent=False))
    lane.wait(0.3)
    assert lane.actions() == [OPEN, CLOSE, OPEN, OPEN]


@pytest.mark.parametrize("who", ["vehicle", "person"])
def test_close_is_watched_on_when_an_open_in_its_place_did_not_go_out(lane, who):
    closing_gate(lane)
    lane.arming(ON)
    if who == "vehicle":
        lane.card()
    else:
        lane.wish(OPEN)
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "the line was reset", sent=False))
    lane.wait(1)
    assert lane.actions() == [OPEN, CLOSE, OPEN], "no close is repeated while it moves"
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN, OPEN]


def test_what_came_into_the_way_before_an_open_turned_out_to_be_lost_opens_it_again(lane):
    closing_gate(lane)
    lane.arming(ON)
    lane.card()
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN], "an open is on its way"
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "the line was reset", sent=False))
    assert lane.actions() == [OPEN, CLOSE, OPEN, OPEN]


def test_lost_open_of_a_gate_that_has_closed_meanwhile_leaves_it_closed(lane):
    closing_gate(lane)
    lane.arming(ON)
    lane.card()
    lane.gate(GatePosition.CLOSED)
    lane.safety(ON)
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "the line was reset", sent=False))
    lane.wait(60)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_no_close_on_an_input_whose_device_did_not_answer(lane):
    under_the_gate(lane)
    lane.closing(OFF)
    lane.wait(0.9)
    lane.do(m.InputMissed(Role.CLOSING, 1))
    lane.wait(2, refresh=False)
    assert lane.actions() == [OPEN]
    lane.wait(0.1)
    lane.wait(lane.rules.lane.clear_after_loss_seconds - 0.1)
    assert lane.actions() == [OPEN]
    lane.wait(0.2)
    assert lane.actions() == [OPEN, CLOSE]


@pytest.mark.parametrize(("before", "polls"), [(ON, 1), (OFF, 1), (OFF, 2)])
def test_point_that_is_off_after_missed_polls_must_be_clear_for_longer(lane, before, polls):
    under_the_gate(lane)
    lane.closing(before)
    lane.wait(0.2)
    for number in range(1, polls + 1):
        lane.do(m.InputMissed(Role.CLOSING, number))
    lane.closing(OFF)
    lane.wait(lane.rules.lane.clear_after_loss_seconds - 0.1)
    assert lane.actions() == [OPEN]
    lane.wait(0.2)
    assert lane.actions() == [OPEN, CLOSE]


def test_detector_that_starts_with_a_vehicle_told_is_not_believed_when_it_goes_off(lane):
    under_the_gate(lane)
    lane.do(m.InputMissed(Role.CLOSING, 1))
    lane.closing(ON)
    lane.wait(0.2)
    lane.closing(OFF)
    lane.wait(lane.rules.lane.clear_after_loss_seconds - 0.4)
    assert lane.actions() == [OPEN]
    lane.wait(0.3)
    assert lane.actions() == [OPEN, CLOSE]


def test_points_are_polled_closely_while_a_close_is_near(lane):
    def is_near():
        return is_close_near(lane.rules, lane.state)

    assert not is_near()
    lane.let_in()
    assert is_near()
    lane.gate(GatePosition.STOPPED)
    assert is_near()
    lane.do(m.GateLost("no answer"))
    assert not is_near()


def test_one_missed_poll_opens_no_closing_gate_again(lane):
    closing_gate(lane)
    lane.do(m.InputMissed(Role.SAFETY, 1))
    lane.safety(OFF)
    lane.wait(1)
    assert lane.actions() == [OPEN, CLOSE]


def test_two_missed_polls_in_a_row_open_a_closing_gate_again(lane):
    closing_gate(lane)
    lane.do(m.InputMissed(Role.SAFETY, 1))
    assert lane.actions() == [OPEN, CLOSE]
    lane.do(m.InputMissed(Role.SAFETY, 2))
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_open_that_does_not_move_it_is_asked_for_again_and_then_a_person_is_called(lane):
    closing_gate(lane)
    lane.safety(ON)
    for _ in range(5):
        if lane.state.commands.flight is not None:
            lane.do(m.CommandFailed(lane.sent[-1].command_id, "no answer", sent=True))
        lane.wait(1.1)
    assert lane.actions() == [OPEN, CLOSE, OPEN, OPEN, OPEN]
    assert E.OPENING_TIMED_OUT in lane.events


def test_controller_that_was_away_while_it_closed_is_asked_where_it_is_first(lane):
    closing_gate(lane)
    lane.do(m.GateLost("no power"))
    lane.closing(UNKNOWN)
    lane.do(m.GateRegained())
    lane.gate(GatePosition.CLOSED)
    lane.closing(ON)
    lane.wait(1)
    assert lane.actions() == [OPEN, CLOSE]


def test_close_of_a_gate_that_is_closed_opens_nothing(lane):
    lane.wish(CLOSE)
    lane.acknowledge()
    lane.safety(ON)
    lane.closing(ON)
    lane.wait(1)
    assert lane.actions() == [CLOSE]


def test_gate_that_its_own_safety_stopped_half_way_is_opened(lane):
    closing_gate(lane)
    lane.gate(GatePosition.STOPPED)
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_stop_of_a_person_counts_for_more(lane):
    closing_gate(lane)
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.STOPPED)
    lane.safety(ON)
    lane.wait(1)
    assert lane.actions() == [OPEN, CLOSE, STOP]


def test_pauses_grow_when_it_is_opened_again_each_time(lane):
    closing_gate(lane)
    closed_at = []
    for _ in range(5):
        lane.safety(ON)
        lane.open_gate()
        lane.safety(OFF)
        count = len(lane.sent)
        while len(lane.sent) == count:
            lane.wait(0.5)
        closed_at.append(lane.at)
        lane.acknowledge()
        lane.gate(GatePosition.CLOSING)
    gaps = [later - sooner for sooner, later in pairwise(closed_at)]
    assert gaps == sorted(gaps)
    assert gaps[-1] > 30


# No vehicle that is not there


def test_flapping_loop_is_one_vehicle(lane):
    under_the_gate(lane)
    for _ in range(12):
        lane.closing(OFF)
        lane.wait(0.5)
        lane.closing(ON)
        lane.wait(0.5)
    lane.closing(OFF)
    lane.clear()
    assert outcomes(lane) == [P.PASSED]
    assert E.VEHICLE_TAILGATED not in lane.events
    assert lane.actions() == [OPEN, CLOSE]


@pytest.mark.parametrize("both", [False, True])
def test_flapping_arming_loop_is_no_second_vehicle(lane, both):
    under_the_gate(lane)
    for _ in range(12):
        lane.arming(ON)
        if both:
            lane.closing(OFF)
        lane.wait(0.5)
        lane.arming(OFF)
        if both:
            lane.closing(ON)
        lane.wait(0.5)
    lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED]


def test_arming_loop_that_drops_out_under_a_long_vehicle_is_one_vehicle(lane):
    lane.let_in()
    lane.closing(ON)
    lane.arming(OFF)
    lane.wait(0.15)
    lane.arming(ON)
    lane.wait(3)
    lane.arming(OFF)
    lane.wait(1)
    lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED]


def test_flapping_loop_in_a_gate_that_is_held_open_is_one_vehicle(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.open_gate()
    lane.arming(ON)
    lane.closing(ON)
    lane.arming(OFF)
    for _ in range(12):
        lane.closing(OFF)
        lane.wait(0.5)
        lane.closing(ON)
        lane.wait(0.5)
    lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED]


def test_vehicle_that_arrives_behind_a_flapping_one_may_use_its_card(lane):
    under_the_gate(lane)
    lane.closing(OFF)
    lane.wait(0.3)
    lane.closing(ON)
    lane.arming(ON)
    assert lane.state.visits.phase is Phase.ARMED
    lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED], "it stands where it stood"
    lane.card()
    assert lane.actions() == [OPEN, OPEN]


def test_second_vehicle_that_left_the_arming_loop_before_it_is_seen_is_a_tailgate(lane):
    under_the_gate(lane)
    lane.closing(OFF)
    lane.arming(ON)
    lane.wait(0.9)
    lane.arming(OFF)
    lane.wait(0.3)
    lane.closing(ON)
    lane.wait(0.5)
    lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED, P.UNAUTHORISED]
    assert lane.events[-1] is E.VEHICLE_TAILGATED


def test_without_the_arming_loop_every_passage_counts(lane):
    under_the_gate(lane)
    lane.closing(OFF)
    lane.arming(UNKNOWN)
    lane.wait(0.5)
    lane.closing(ON)
    lane.wait(0.5)
    lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED, P.UNAUTHORISED]


def test_owed_passage_is_not_used_up_by_a_loop_that_drops_out(rules, make_script):
    lane = make_script(changed(rules, vend="counted"))
    lane.ready()
    lane.wish(OPEN)
    lane.wish(OPEN)
    lane.open_gate()
    lane.arming(ON)
    lane.closing(ON)
    lane.arming(OFF)
    lane.closing(OFF)
    lane.wait(0.2)
    lane.closing(ON)
    lane.wait(0.2)
    lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED]
    lane.wait(3)
    lane.arming(ON)
    lane.drive_through()
    assert outcomes(lane) == [P.PASSED, P.PASSED]


@pytest.mark.parametrize("why", ["fire", "hold_open"])
@pytest.mark.parametrize("where", ["under", "between", "before"])
def test_vehicle_that_came_while_the_gate_was_kept_open_is_no_tailgate(rules, make_script, why, where):
    lane = make_script(changed(rules, fire=POINT))
    lane.ready()
    begin, end = (
        (lambda: lane.fire(ON), lambda: lane.fire(OFF))
        if why == "fire"
        else (lambda: lane.order(OrderKind.HOLD_OPEN), lambda: lane.order(None))
    )
    begin()
    lane.open_gate()
    lane.arming(ON)
    lane.wait(0.5)
    if where != "between":
        lane.closing(ON)
    if where == "before":
        end()
    lane.arming(OFF)
    if where != "before":
        end()
    lane.closing(ON)
    lane.wait(2)
    lane.closing(OFF)
    assert [(one.outcome, one.reason) for one in lane.passages] == [(P.PASSED, why)]
    assert E.VEHICLE_TAILGATED not in lane.events
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]


# After a start


def found_open(lane, *, under=OFF, arming=OFF, position=GatePosition.OPEN):
    lane.do(m.GateRegained())
    lane.arming(arming)
    lane.closing(under)
    lane.safety(OFF)
    lane.gate(position)


def test_gate_found_open_at_the_start_is_closed_after_the_longer_time_and_not_before(fresh_lane):
    lane = fresh_lane
    found_open(lane)
    lane.wait(lane.rules.lane.clear_after_loss_seconds - 0.1)
    assert lane.sent == []
    lane.wait(0.2)
    assert lane.actions() == [CLOSE]


def test_vehicle_under_the_gate_at_the_start_holds_it_open_and_is_not_judged(fresh_lane):
    lane = fresh_lane
    found_open(lane, under=ON)
    lane.wait(100)
    assert lane.sent == []
    lane.closing(OFF)
    lane.wait(0.5)
    assert lane.sent == []
    lane.clear()
    assert lane.actions() == [CLOSE]
    assert lane.passages == []


def test_nothing_is_closed_that_was_never_read(fresh_lane):
    lane = fresh_lane
    lane.do(m.GateRegained())
    lane.gate(GatePosition.OPEN)
    lane.closing(OFF)
    lane.wait(100)
    assert lane.sent == []


def test_gate_half_way_at_the_start_is_left_to_a_person(fresh_lane):
    lane = fresh_lane
    found_open(lane, position=GatePosition.STOPPED)
    lane.wait(100)
    assert lane.sent == []
    assert E.HELD_OPEN in lane.events


@pytest.mark.parametrize("kind", [OrderKind.HOLD_OPEN, None])
def test_order_that_is_remembered_keeps_it_open_at_the_start(fresh_lane, kind):
    lane = fresh_lane
    found_open(lane)
    lane.order(kind)
    lane.wait(60)
    assert (CLOSE in lane.actions()) is (kind is None)


def test_who_was_let_in_before_the_restart_and_stands_there_still_goes_first(fresh_lane):
    lane = fresh_lane
    lane.do(m.GrantRemembered(7, "0007", until=lane.at + 30))
    found_open(lane, arming=ON)
    lane.wait(20)
    assert lane.sent == []
    lane.drive_through()
    assert outcomes(lane) == [P.PASSED]
    assert lane.passages[0].card_id == 7
    assert lane.actions() == [CLOSE]


def test_who_was_let_in_before_the_restart_and_does_not_go_holds_it_no_longer(fresh_lane):
    lane = fresh_lane
    lane.do(m.GrantRemembered(7, "0007", until=lane.at + 30))
    found_open(lane, arming=ON)
    lane.wait(31)
    assert lane.actions() == [CLOSE]


@pytest.mark.parametrize("change", [{"closes": "device"}, {"vend": "supervised"}])
def test_gate_that_others_close_is_left_to_them_at_the_start(rules, make_script, change):
    lane = make_script(changed(rules, **change))
    found_open(lane)
    lane.wait(100)
    assert lane.sent == []


def test_what_a_person_stopped_while_it_closed_stays_until_somebody_closes_it(lane):
    lane.wish(OPEN)
    lane.acknowledge()
    lane.open_gate()
    lane.wait(35)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.STOPPED)
    before = lane.actions()
    lane.wait(120)
    assert lane.actions() == before
    assert before[-2:] == [CLOSE, STOP]
    lane.wish(CLOSE)
    assert lane.actions() == [*before, CLOSE]


def test_what_a_person_stopped_while_it_opened_is_not_closed(lane):
    lane.wish(OPEN)
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.STOPPED)
    assert str(lane.state.stop_words).startswith("demo stopped the gate; it stays so until somebody opens or closes it")
    lane.wait(120)
    assert lane.actions() == [OPEN, STOP]


def test_a_vehicle_that_is_let_in_ends_a_stop(lane):
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.STOPPED)
    lane.let_in()
    assert lane.actions()[:2] == [STOP, OPEN]
    assert lane.state.stop.by == ""
