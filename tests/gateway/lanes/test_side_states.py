"""Side states of a lane: each begins with one report and ends with one."""

from __future__ import annotations

import pytest
from lane_rules import POINT, changed

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind as E
from gateway.domain.passages import PassageOutcome as P
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LEAVING_SECONDS
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.snapshots import Phase

ON, OFF, UNKNOWN = PointState.ON, PointState.OFF, PointState.UNKNOWN
UNKNOWN_POSITION = GatePosition.UNKNOWN
OPEN, CLOSE, STOP = GateAction.OPEN, GateAction.CLOSE, GateAction.STOP


def outcomes(lane):
    return [passage.outcome for passage in lane.passages]


def test_tailgate_by_a_vehicle_that_was_denied_names_its_card(lane):
    lane.let_in()
    lane.drive_through()
    lane.arming(ON)
    lane.card("9999")
    lane.closing(ON)
    lane.arming(OFF)
    lane.wait(1)
    lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED, P.UNAUTHORISED]
    assert lane.events[-1] is E.VEHICLE_TAILGATED
    assert "card 9999 had been denied" in lane.texts[-1]
    assert E.VEHICLE_BACKED_OUT not in lane.events


def test_bumper_to_bumper_the_second_vehicle_is_a_tailgate_though_the_loop_was_never_free(lane):
    lane.let_in()
    lane.next_arrives()
    lane.wait(1)
    lane.arming(OFF)
    lane.wait(1)
    lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED, P.UNAUTHORISED]
    assert lane.events.count(E.VEHICLE_TAILGATED) == 1


def test_next_vehicle_waiting_at_the_loop_is_no_tailgate(lane):
    lane.let_in()
    lane.next_arrives()
    lane.wait(0.5)
    lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED]
    assert lane.state.visits.phase is Phase.ARMED


def test_wrong_way_is_told_and_its_card_does_not_count(lane):
    lane.let_in()
    lane.drive_through()
    lane.wait(1)
    lane.closing(ON)
    lane.wait(0.5)
    lane.arming(ON)
    lane.card()
    assert lane.actions() == [OPEN, CLOSE]
    lane.closing(OFF)
    lane.wait(0.5)
    lane.arming(OFF)
    assert E.WRONG_WAY in lane.events
    assert lane.passages[-1].direction == "exit"
    assert lane.passages[-1].outcome is P.UNAUTHORISED
    lane.arming(ON)
    assert lane.state.visits.phase is Phase.ARMED, "the next vehicle is as welcome as any"


def test_vehicle_that_takes_over_the_loop_of_a_wrong_way_driver_is_noticed_soon(lane):
    lane.let_in()
    lane.drive_through()
    lane.wait(1)
    lane.closing(ON)
    lane.arming(ON)
    lane.closing(OFF)
    assert lane.state.visits.phase is Phase.IDLE
    lane.wait(LEAVING_SECONDS)
    assert lane.state.visits.phase is Phase.ARMED


def test_forced_open_is_an_alarm_with_footage_and_is_over_when_closed(lane):
    lane.gate(GatePosition.STOPPED)
    lane.wait(lane.rules.lane.forced_seconds - 0.1)
    assert lane.events == []
    lane.wait(0.2)
    assert lane.events == [E.FORCED_OPEN]
    assert lane.filmed == 2
    lane.gate(GatePosition.CLOSED)
    assert lane.events[-1] is E.TROUBLE_ENDED
    assert lane.state.troubles.present == ()
    assert lane.sent == [], "nobody asked for anything"


def test_arm_that_only_shakes_is_not_forced(lane):
    lane.gate(GatePosition.STOPPED)
    lane.wait(2)
    lane.gate(GatePosition.CLOSED)
    lane.wait(30)
    assert E.FORCED_OPEN not in lane.events


def test_gate_found_open_after_its_controller_was_away_is_forced(lane):
    lane.do(m.GateLost("no power"))
    lane.wait(20, refresh=False)
    lane.do(m.GateRegained())
    lane.gate(GatePosition.OPEN)
    lane.wait(5)
    assert E.FORCED_OPEN in lane.events


def test_gate_that_opens_late_is_not_forced_and_is_closed_again(lane):
    lane.arming(ON)
    lane.card()
    lane.acknowledge()
    lane.wait(lane.rules.lane.opening_seconds)
    assert lane.events[-2:] == [E.OPENING_TIMED_OUT, E.COMMAND_UNKNOWN]
    assert "did not move (locked?)" in lane.texts[-2]
    lane.wait(5)
    lane.gate(GatePosition.OPENING)
    lane.gate(GatePosition.OPEN)
    assert E.OPENED_LATE in lane.events
    lane.wait(5)
    assert lane.actions() == [OPEN, CLOSE]
    assert E.FORCED_OPEN not in lane.events


def test_key_switch_explains_movement_and_keeps_the_lane_from_closing(rules, make_script):
    lane = make_script(changed(rules, key_switch=POINT))
    lane.ready()
    lane.key_switch(ON)
    assert lane.events == [E.KEY_SWITCH_ON]
    lane.gate(GatePosition.OPENING)
    lane.gate(GatePosition.OPEN)
    lane.wait(10)
    assert E.FORCED_OPEN not in lane.events
    lane.wish(CLOSE)
    assert lane.sent == []
    assert "key switch is active" in lane.texts[-1]
    lane.key_switch(OFF)
    assert lane.events[-1] is E.TROUBLE_ENDED
    lane.wish(CLOSE)
    assert lane.actions() == [CLOSE]


def test_gate_open_too_long_is_told_once_and_is_over_when_closed(lane):
    lane.let_in()
    lane.closing(ON)
    lane.wait(lane.rules.lane.held_open_seconds + 30)
    assert lane.events.count(E.HELD_OPEN) == 1
    lane.arming(OFF)
    lane.closing(OFF)
    lane.close_gate()
    assert "the gate has been open for more than 60 s" in lane.texts[-1]
    assert lane.events[-1] is E.TROUBLE_ENDED


def test_steady_traffic_is_not_open_too_long(lane):
    for _ in range(6):
        lane.let_in()
        lane.wait(15)
        lane.drive_through()
        lane.gate(GatePosition.OPEN)
    assert E.HELD_OPEN not in lane.events


def test_vehicle_stuck_under_the_gate(lane):
    lane.let_in()
    lane.closing(ON)
    lane.wait(lane.rules.lane.vehicle_stuck_seconds)
    assert E.VEHICLE_STUCK in lane.events
    lane.arming(OFF)
    lane.closing(OFF)
    assert E.TROUBLE_ENDED in lane.events


def test_stuck_input_is_named_with_its_time(lane):
    lane.arming(ON)
    lane.wait(299)
    assert lane.events == [E.VEHICLE_ARRIVED]
    lane.wait(1)
    assert lane.events[1:] == [E.INPUT_STUCK]
    assert lane.texts[1:] == ["the arming loop has been on for more than 5 minutes"]
    lane.arming(OFF)
    assert lane.events[1:] == [E.INPUT_STUCK, E.TROUBLE_ENDED]


@pytest.mark.parametrize("turn", [lambda lane, state: lane.closing(state), lambda lane, state: lane.safety(state)])
def test_an_input_under_the_gate_is_stuck_after_a_minute_while_the_lane_rests(lane, turn):
    turn(lane, ON)
    lane.wait(59)
    assert lane.events == []
    lane.wait(1)
    assert lane.events == [E.INPUT_STUCK]
    assert lane.texts[0].endswith(" has been on for more than 60 s")
    lane.arming(ON)
    lane.wait(60)
    assert lane.events == [E.INPUT_STUCK, E.VEHICLE_ARRIVED], "it is stuck until it is off, whoever comes"
    turn(lane, OFF)
    assert lane.events[2:] == [E.TROUBLE_ENDED]


def test_a_queue_through_a_gate_that_is_held_open_is_not_stuck_after_a_minute(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.open_gate()
    lane.closing(ON)
    lane.wait(290)
    assert E.INPUT_STUCK not in lane.events
    lane.order(None)
    lane.wait(9)
    assert E.INPUT_STUCK not in lane.events
    lane.wait(2)
    assert E.INPUT_STUCK in lane.events


def test_chattering_input_is_named_forbids_closing_and_is_believed_again_when_quiet(lane):
    lane.let_in()
    lane.drive_through()
    lane.gate(GatePosition.OPEN)
    lane.acknowledge()
    for state in [ON, OFF] * 12:
        lane.safety(state)
        lane.wait(0.25)
    assert lane.events[-1] is E.INPUT_CHATTERS
    assert lane.texts[-1] == "safety point 1 changes too often to be trusted"
    lane.wish(CLOSE)
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    assert "chatters" in lane.texts[-1]
    lane.wait(11)
    assert lane.events[-1] is E.TROUBLE_ENDED
    lane.wait(10)
    assert lane.actions() == [OPEN, CLOSE, OPEN, CLOSE]


def test_closing_waits_while_the_closing_loop_chatters_and_goes_on_by_itself(lane):
    lane.let_in()
    lane.arming(OFF)
    for state in [ON, OFF] * 12:
        lane.closing(state)
        lane.wait(0.25)
    assert CLOSE not in lane.actions()[2:]
    lane.wait(12)
    assert lane.actions()[-1] is CLOSE


def test_short_burst_of_a_loop_is_not_believed_as_soon_as_it_rests(lane):
    """A loose contact that rests for a second may hide the vehicle that stands there."""
    lane.let_in()
    lane.arming(OFF)
    for state in [ON, OFF] * 4:
        lane.closing(state)
        lane.wait(0.35)
    before = lane.actions()
    lane.wait(9)
    assert lane.actions() == before
    lane.wait(3)
    assert lane.actions() == [*before, CLOSE]


# Fire


@pytest.fixture
def burning(rules, make_script):
    lane = make_script(changed(rules, fire=POINT))
    lane.ready()
    lane.fire(ON)
    return lane


def test_fire_opens_at_once_and_keeps_open(burning):
    lane = burning
    assert lane.actions() == [OPEN]
    assert lane.events == [E.FIRE_INPUT]
    lane.open_gate()
    lane.wait(600)
    assert lane.actions() == [OPEN]
    lane.wish(CLOSE)
    assert lane.actions() == [OPEN]
    assert "fire" in lane.texts[-1]
    lane.gate(GatePosition.CLOSING)
    assert lane.actions() == [OPEN, OPEN], "whoever closes it, it is opened again"


def test_fire_is_tried_again_without_limit_but_with_pauses(burning):
    burning.wait(130)
    assert 8 <= len(burning.sent) <= 12


def test_fire_that_is_over_closes_the_gate_when_safe(burning):
    lane = burning
    lane.open_gate()
    lane.closing(ON)
    lane.fire(OFF)
    assert lane.actions() == [OPEN]
    lane.closing(OFF)
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]
    assert E.TROUBLE_ENDED in lane.events


def test_lost_fire_input_is_no_all_clear(burning):
    lane = burning
    lane.open_gate()
    lane.fire(UNKNOWN)
    lane.wait(60)
    assert CLOSE not in lane.actions()
    assert lane.state.inputs.on_fire


def test_stop_counts_for_more_than_fire_until_the_next_fire_or_open(burning):
    lane = burning
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.STOPPED)
    lane.wait(120)
    assert lane.actions() == [OPEN, STOP]
    lane.fire(OFF)
    lane.wait(5)
    lane.fire(ON)
    lane.wait(60)
    assert lane.actions() == [OPEN, STOP], "a contact that blinks"
    lane.fire(OFF)
    lane.wait(11)
    assert lane.actions() == [OPEN, STOP], "the end of a fire closes nothing that a person stopped"
    lane.fire(ON)
    assert lane.actions() == [OPEN, STOP, OPEN]
    assert lane.events.count(E.STOP_ENDED) == 1


def test_fire_supersedes_a_close_under_way(rules, make_script):
    lane = make_script(changed(rules, fire=POINT))
    lane.ready()
    lane.let_in()
    lane.drive_through()
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.fire(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


@pytest.mark.parametrize("position", [GatePosition.CLOSED, GatePosition.CLOSING, GatePosition.STOPPED])
def test_fire_opens_again_soon_when_its_first_open_did_not_go_out(rules, make_script, position):
    lane = make_script(changed(rules, fire=POINT))
    lane.ready()
    lane.gate(position)
    lane.fire(ON)
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "the line was reset", sent=False))
    lane.wait(0.3)
    assert lane.actions() == [OPEN, OPEN]
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "the line was reset", sent=False))
    lane.wait(5)
    assert lane.actions() == [OPEN, OPEN], "and with the usual pauses after that"


def test_fire_opens_a_gate_that_closes_on_our_word_as_what_comes_into_its_way_does(rules, make_script):
    lane = make_script(changed(rules, fire=POINT))
    lane.ready()
    lane.let_in()
    lane.drive_through()
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.fire(ON)
    for opens in (2, 3):
        lane.do(m.CommandFailed(lane.sent[-1].command_id, "the line was reset", sent=False))
        lane.wait(1.1)
        assert lane.actions() == [OPEN, CLOSE, *[OPEN] * opens]
    lane.acknowledge()
    assert E.GATE_REOPENED in lane.events


def test_passages_during_a_fire_are_counted_as_passages(burning):
    lane = burning
    lane.open_gate()
    for _ in range(2):
        lane.arming(ON)
        lane.closing(ON)
        lane.wait(1)
        lane.arming(OFF)
        lane.closing(OFF)
    assert outcomes(lane) == [P.PASSED, P.PASSED]
    assert {passage.reason for passage in lane.passages} == {"fire"}


def test_fire_during_lock_down_opens(rules, make_script):
    lane = make_script(changed(rules, fire=POINT))
    lane.ready()
    lane.order(OrderKind.LOCK_DOWN)
    lane.fire(ON)
    assert lane.actions() == [OPEN]
    lane.open_gate()
    lane.fire(OFF)
    assert lane.actions() == [OPEN]
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]


@pytest.mark.parametrize("first", ["gate", "loop"])
def test_vehicle_let_in_before_a_restart_is_no_intruder(make_script, rules, first):
    lane = make_script(rules)
    lane.do(m.GrantRemembered(7, "0007", until=lane.at + 30))
    if first == "gate":
        lane.gate(GatePosition.OPEN)
    lane.closing(ON)
    lane.gate(GatePosition.OPEN)
    lane.wait(1)
    lane.closing(OFF)
    (passage,) = lane.passages
    assert (passage.outcome, passage.card_id, passage.reason) == (P.PASSED, 7, "granted_before_restart")
    assert "before the gateway restarted" in next(text for text in lane.texts if "passed" in text)
    lane.closing(ON)
    lane.closing(OFF)
    assert lane.passages[-1].outcome is P.UNAUTHORISED, "it was one vehicle's"


def test_a_grant_before_a_restart_counts_for_a_minute_at_most(make_script, rules):
    lane = make_script(rules)
    lane.ready()
    lane.do(m.GrantRemembered(7, "0007", until=lane.at + 30))
    lane.gate(GatePosition.OPEN)
    lane.wait(31)
    lane.closing(ON)
    lane.wait(1)
    lane.closing(OFF)
    assert lane.passages[-1].outcome is P.UNAUTHORISED


def test_vehicles_close_behind_each_other_are_no_chatter(lane):
    """Nine in ten seconds, as through a gate that is held open, or people through a turnstile."""
    for state in [ON, OFF] * 9:
        lane.safety(state)
        lane.wait(0.55)
    assert E.INPUT_CHATTERS not in lane.events


def test_position_unknown_for_longer_than_a_travel_is_a_trouble_until_it_is_known(fresh_lane):
    lane = fresh_lane
    lane.ready()
    lane.gate(UNKNOWN_POSITION)
    lane.wait(lane.rules.travel_seconds - 0.1)
    assert lane.state.troubles.present == ()
    lane.wait(0.2)
    assert lane.events[-1] is E.POSITION_UNKNOWN
    assert "open it, then close it" in lane.texts[-1]
    lane.gate(GatePosition.OPENING)
    assert lane.events[-1] is E.TROUBLE_ENDED


def test_controller_that_is_away_is_one_trouble_and_its_position_another_once_it_answers_again(lane):
    lane.do(m.GateLost("no power"))
    lane.wait(lane.rules.travel_seconds + 60, refresh=False)
    lane.do(m.GateRegained())
    assert E.POSITION_UNKNOWN not in lane.events, "it has not been read yet"
    lane.gate(UNKNOWN_POSITION)
    lane.wait(lane.rules.travel_seconds - 1)
    assert E.POSITION_UNKNOWN not in lane.events
    lane.wait(1)
    assert lane.events[-1] is E.POSITION_UNKNOWN


@pytest.mark.parametrize("away", [False, True])
def test_passage_at_a_gate_of_unknown_position_is_unauthorised(lane, away):
    if away:
        lane.do(m.GateLost("no power"))
    else:
        lane.gate(UNKNOWN_POSITION)
    lane.arming(ON)
    lane.wait(1)
    lane.closing(ON)
    lane.wait(1)
    lane.arming(OFF)
    lane.wait(1)
    lane.closing(OFF)
    assert outcomes(lane) == [P.UNAUTHORISED]
    assert "position was not known" in lane.texts[-1]
    assert lane.sent == []
