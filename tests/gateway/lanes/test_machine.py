"""Scripts of events in and commands out."""

from __future__ import annotations

import pytest
from lane_rules import changed

from drivers.contract import GatePosition, PointState
from gateway.domain.access import decide
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.credentials import Card, Credential
from gateway.domain.events import EventKind as E
from gateway.domain.passages import PassageOutcome
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import CLOSE_TRIES, PAUSE_SECONDS
from gateway.lanes.snapshots import Phase

ON, OFF, UNKNOWN = PointState.ON, PointState.OFF, PointState.UNKNOWN
OPEN, CLOSE = GateAction.OPEN, GateAction.CLOSE


def test_vehicle_with_card_passes_and_gate_closes_behind_it(lane):
    lane.arming(ON)
    assert lane.state.visits.phase is Phase.ARMED
    lane.card()
    assert lane.state.visits.phase is Phase.OPENING
    assert lane.actions() == [OPEN]
    lane.open_gate()
    assert lane.state.visits.phase is Phase.OPEN
    lane.drive_through()
    assert [p.outcome for p in lane.passages] == [PassageOutcome.PASSED]
    assert lane.passages[0].card_id == 7
    assert lane.actions() == [OPEN, CLOSE]
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.gate(GatePosition.CLOSED)
    assert lane.state.shown_phase is Phase.IDLE
    assert lane.events == [E.VEHICLE_ARRIVED, E.ACCESS_GRANTED, E.GATE_OPENED, E.VEHICLE_PASSED, E.GATE_CLOSED]
    assert lane.filmed == 2
    assert set(lane.reached.values()) == {CommandState.DONE}


def test_bits_of_an_unknown_card_are_told_so_that_it_can_be_explained_and_enrolled(lane):
    lane.arming(ON)
    read = Credential(bit_length=26, bits=0x25A69)
    lane.do(m.CardRead(102, read, lane.at))
    lane.do(m.Decided(lane.asked[-1].number, decide(read, (), now=1)))
    assert lane.texts[-1].endswith("; read as 0x25A69 of 26 bits")


def test_gate_is_commanded_before_anything_is_written(lane):
    lane.arming(ON)
    lane.card()
    kinds = [type(command) for command in lane.out]
    granted = next(
        i
        for i, c in enumerate(lane.out)
        if isinstance(c, m.Record) and any(e.kind is E.ACCESS_GRANTED for e in c.entry.events)
    )
    assert kinds.index(m.SendCommand) < granted


def test_unknown_card_is_denied_with_its_reason_and_footage(lane):
    lane.arming(ON)
    lane.card("9999")
    assert lane.state.visits.phase is Phase.ARMED
    assert lane.actions() == []
    assert lane.events[-1] is E.ACCESS_DENIED
    assert "no card has this number or plate" in lane.texts[-1]
    assert lane.filmed == 2
    lane.card()
    assert lane.actions() == [OPEN]


def test_card_without_vehicle_is_ignored_and_told(lane):
    lane.card()
    lane.wait(1)
    assert lane.actions() == []
    assert lane.events == [E.CARD_IGNORED]


def test_card_read_between_two_looks_at_the_loop_counts_once_its_vehicle_is_seen(lane):
    lane.card()
    assert lane.events == []
    lane.wait(0.5)
    lane.arming(ON)
    lane.answer(granted=True)
    assert lane.actions() == [OPEN]
    lane.wait(1)
    assert E.CARD_IGNORED not in lane.events


def test_card_read_early_is_ignored_when_something_comes_the_other_way(lane):
    lane.gate(GatePosition.OPEN)
    lane.card()
    lane.closing(ON)
    lane.arming(ON)
    assert lane.asked == []
    assert lane.events.count(E.CARD_IGNORED) == 1


def test_another_card_in_an_early_ones_stead_ends_it(lane):
    lane.card("0007")
    lane.card("0008")
    assert lane.events == [E.CARD_IGNORED]
    assert "0007" in lane.texts[-1]
    lane.arming(ON)
    assert lane.state.visits.present.credential == credential("0008")


@pytest.mark.parametrize("state", [UNKNOWN])
def test_card_on_unknown_arming_loop_is_ignored(lane, state):
    lane.arming(ON)
    lane.arming(state)
    lane.card()
    assert lane.actions() == []


def test_vehicle_that_leaves_before_its_decision_is_not_let_in(lane):
    lane.arming(ON)
    (decide,) = (c for c in lane.do(m.CardRead(102, credential("0007"), lane.at)) if isinstance(c, m.Decide))
    lane.arming(OFF)
    lane.do(m.Decided(decide.number, granted()))
    assert lane.actions() == []
    assert lane.passages[-1].outcome is PassageOutcome.BACKED_OUT


def test_late_decision_of_the_vehicle_before_does_not_open_for_the_next(lane):
    lane.arming(ON)
    (first,) = (c for c in lane.do(m.CardRead(102, credential("0007"), lane.at)) if isinstance(c, m.Decide))
    lane.arming(OFF)
    lane.arming(ON)
    lane.do(m.CardRead(102, credential("9999"), lane.at))
    lane.do(m.Decided(first.number, granted()))
    assert lane.actions() == []


def test_gate_that_does_not_move_times_out(lane):
    lane.arming(ON)
    lane.card()
    lane.acknowledge()
    lane.wait(lane.rules.lane.opening_seconds + 0.1)
    assert E.OPENING_TIMED_OUT in lane.events
    assert E.COMMAND_UNKNOWN in lane.events
    assert any("did not move" in text for text in lane.texts)
    assert lane.state.visits.phase is Phase.ARMED, "the vehicle still stands there and may try again"
    assert lane.actions() == [OPEN], "nothing is sent again by itself"


def test_chattering_closing_loop_before_a_gate_that_does_not_move_holds_nobody(lane):
    lane.arming(ON)
    lane.card()
    lane.acknowledge()
    lane.wait(2)
    lane.closing(ON)
    lane.closing(OFF)
    lane.wait(lane.rules.lane.opening_seconds + 0.1)
    assert E.OPENING_TIMED_OUT in lane.events
    assert lane.state.visits.phase is Phase.ARMED
    lane.card()
    assert lane.actions() == [OPEN, OPEN], "the next card counts"


def test_gate_whose_controller_does_not_answer(lane):
    lane.arming(ON)
    lane.card()
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "no answer", sent=True))
    assert E.OPENING_TIMED_OUT not in lane.events, "it may have heard the command all the same"
    lane.wait(lane.rules.lane.opening_seconds + 0.1)
    assert E.OPENING_TIMED_OUT in lane.events
    assert any("no answer" in text for text in lane.texts)
    assert lane.reached[lane.sent[-1].command_id] is CommandState.UNKNOWN


def test_of_open_and_close_thrice_at_once_the_last_alone_may_act(lane):
    """The others wait for the line meanwhile: none is settled before its driver tells whether it went out."""
    wishes = [lane.wish(action) for action in (OPEN, CLOSE, OPEN, CLOSE, OPEN)]
    first, *overtaken, newest = [wish.command_id for wish in wishes]
    assert {lane.reached[one] for one in (first, *overtaken, newest)} == {CommandState.SENT}
    lane.do(m.CommandAcknowledged(first, lane.at))
    for command_id in overtaken:
        lane.do(m.CommandFailed(command_id, "a later command has taken its place", sent=False))
    assert lane.reached[first] is CommandState.UNKNOWN
    assert {lane.reached[one] for one in overtaken} == {CommandState.REFUSED}
    assert lane.texts[-1] == "close by demo: replaced by open before it was sent"
    assert lane.reached[newest] is CommandState.SENT
    lane.do(m.CommandAcknowledged(newest, lane.at))
    lane.at += 0.1
    lane.gate(GatePosition.OPEN)
    assert lane.reached[newest] is CommandState.DONE


def test_card_takes_the_place_of_the_lanes_own_close_that_waits_for_the_line(lane):
    lane.let_in()
    lane.drive_through()
    lane.wait(5)
    assert lane.actions() == [OPEN, CLOSE]
    lane.arming(ON)
    lane.card()
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    close = lane.sent[1].command_id
    lane.do(m.CommandFailed(close, "a later command has taken its place", sent=False))
    assert lane.reached[close] is CommandState.REFUSED
    assert lane.texts[-1] == "close by the lane: replaced by open before it was sent"
    lane.wait(5)
    assert lane.actions() == [OPEN, CLOSE, OPEN], "and is not tried again before the vehicle"


def test_superseded_command_of_which_nothing_is_heard_is_unknown_in_the_end(lane):
    first, newest = lane.wish(OPEN), lane.wish(OPEN)
    lane.wait(lane.rules.lane.opening_seconds + 0.1)
    assert (lane.reached[first.command_id], lane.reached[newest.command_id]) == (CommandState.UNKNOWN,) * 2
    assert lane.state.commands.superseded == ()


def test_lost_answer_to_an_open_that_was_heard_is_an_ordinary_passage(lane):
    lane.arming(ON)
    lane.card()
    lane.at += 0.5
    lane.do(m.CommandFailed(lane.sent[-1].command_id, "no answer within 300 ms", sent=True))
    lane.gate(GatePosition.OPENING)
    lane.wait(1)
    lane.gate(GatePosition.OPEN)
    assert lane.reached[lane.sent[0].command_id] is CommandState.DONE
    lane.drive_through()
    assert [p.outcome for p in lane.passages] == [PassageOutcome.PASSED]
    assert lane.actions() == [OPEN, CLOSE]
    assert not {E.OPENING_TIMED_OUT, E.COMMAND_UNKNOWN, E.UNAUTHORISED_PASSAGE} & set(lane.events)


def test_back_out_after_grant_closes_without_a_passage(lane):
    lane.let_in()
    lane.arming(OFF)
    lane.wait(lane.rules.lane.back_out_seconds - 0.5)
    assert lane.actions() == [OPEN]
    lane.wait(1)
    assert lane.actions() == [OPEN, CLOSE]
    assert [p.outcome for p in lane.passages] == [PassageOutcome.BACKED_OUT]


def test_vehicle_between_the_loops_is_not_a_back_out(lane):
    lane.let_in()
    lane.arming(OFF)
    lane.wait(1)
    lane.closing(ON)
    lane.wait(60)
    assert lane.actions() == [OPEN], "a vehicle under the gate holds it open without limit"
    lane.closing(OFF)
    assert lane.passages[-1].outcome is PassageOutcome.PASSED
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]


def test_vehicle_that_touches_the_closing_loop_and_returns_has_not_passed(lane):
    lane.let_in()
    lane.closing(ON)
    lane.closing(OFF)
    assert lane.state.visits.phase is Phase.OPEN
    assert lane.passages == []
    lane.arming(OFF)
    lane.wait(lane.rules.lane.back_out_seconds + 0.1)
    assert [p.outcome for p in lane.passages] == [PassageOutcome.BACKED_OUT]


@pytest.mark.parametrize(("state", "word"), [(ON, "active"), (UNKNOWN, "unknown")])
def test_close_waits_for_safety_and_says_so(lane, state, word):
    lane.let_in()
    lane.safety(state)
    lane.drive_through()
    assert CLOSE not in lane.actions()
    lane.wait(3)
    assert lane.events[-1] is E.CLOSING_HELD
    assert word in lane.texts[-1]
    lane.wait(30)
    assert lane.events.count(E.CLOSING_HELD) == 1
    lane.safety(OFF)
    lane.wait(
        lane.rules.lane.clear_after_loss_seconds + 0.1 if state is UNKNOWN else lane.rules.lane.clear_seconds + 0.1
    )
    assert lane.actions()[-1] is CLOSE


def test_close_waits_for_stale_inputs(lane):
    lane.let_in()
    lane.closing(ON)
    lane.arming(OFF)
    lane.wait(lane.rules.policy.stale_seconds + 1, refresh=False)
    lane.closing(OFF)
    lane.do(m.GateReported(GatePosition.OPEN, lane.at))
    assert CLOSE not in lane.actions(), "the safety point has not been refreshed"
    lane.safety(OFF)
    lane.clear()
    assert CLOSE not in lane.actions(), "what was not read for long is believed only after longer"
    lane.wait(lane.rules.lane.clear_after_loss_seconds)
    assert lane.actions()[-1] is CLOSE


def test_next_vehicle_may_arrive_while_the_gate_closes_and_is_let_in(lane):
    lane.let_in()
    lane.drive_through()
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.arming(ON)
    lane.card()
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    lane.open_gate()
    lane.drive_through()
    assert [p.outcome for p in lane.passages] == [PassageOutcome.PASSED] * 2


def test_second_vehicle_without_a_decision_is_told(lane):
    lane.let_in()
    lane.drive_through()
    lane.arming(ON)
    lane.closing(ON)
    lane.wait(1)
    lane.arming(OFF)
    lane.wait(1)
    lane.closing(OFF)
    assert lane.events[-1] is E.VEHICLE_TAILGATED
    assert lane.passages[-1].outcome is PassageOutcome.UNAUTHORISED


def test_gate_reopened_by_its_own_safety_is_closed_again_then_a_person_is_called(lane):
    lane.let_in()
    lane.drive_through()
    for _ in range(CLOSE_TRIES):
        lane.acknowledge()
        lane.gate(GatePosition.CLOSING)
        lane.gate(GatePosition.OPENING)
        lane.gate(GatePosition.OPEN)
        lane.wait(PAUSE_SECONDS + 0.1)
    assert lane.actions().count(CLOSE) == CLOSE_TRIES
    assert lane.events.count(E.CLOSING_TIMED_OUT) == 1
    lane.wait(120)
    assert lane.actions().count(CLOSE) == CLOSE_TRIES


def test_device_that_closes_itself_is_never_sent_close(lane):
    lane.rules = changed(lane.rules, closes="device")
    lane.let_in()
    lane.drive_through()
    assert lane.state.shown_phase is Phase.CLOSING
    lane.gate(GatePosition.CLOSED)
    assert lane.state.shown_phase is Phase.IDLE
    assert lane.actions() == [OPEN]


def test_operator_opens_without_a_vehicle_and_the_gate_closes_after_waiting(lane):
    command = lane.wish(OPEN)
    assert lane.sent == [command]
    lane.open_gate()
    assert lane.reached[command.command_id] is CommandState.DONE
    assert [k for k in lane.events if k in {E.COMMAND_SENT, E.COMMAND_ACKNOWLEDGED, E.COMMAND_DONE}] == [
        E.COMMAND_SENT,
        E.COMMAND_ACKNOWLEDGED,
        E.COMMAND_DONE,
    ]
    lane.wait(lane.rules.lane.waiting_seconds - 1)
    assert lane.actions() == [OPEN]
    lane.wait(2)
    assert lane.actions() == [OPEN, CLOSE]
    assert lane.passages == []


def test_operator_close_is_refused_while_a_vehicle_is_under_the_gate(lane):
    lane.wish(OPEN)
    lane.open_gate()
    lane.closing(ON)
    command = lane.wish(CLOSE)
    assert lane.actions() == [OPEN]
    assert lane.reached[command.command_id] is CommandState.REFUSED
    assert "closing loop is active" in lane.texts[-1]


def test_command_after_its_deadline_does_nothing(lane):
    command = lane.wish(OPEN, life=-0.001)
    assert lane.sent == []
    assert lane.reached[command.command_id] is CommandState.REFUSED


def test_command_for_a_lost_controller_is_refused_not_kept(lane):
    lane.do(m.GateLost("unplugged"))
    command = lane.wish(OPEN)
    lane.do(m.GateRegained())
    lane.gate(GatePosition.CLOSED)
    lane.wait(10)
    assert lane.sent == []
    assert lane.reached[command.command_id] is CommandState.REFUSED


def test_controller_lost_under_way_leaves_an_unknown_outcome(lane):
    lane.arming(ON)
    lane.card()
    lane.do(m.GateLost("unplugged"))
    assert lane.reached[lane.sent[-1].command_id] is CommandState.UNKNOWN
    assert lane.state.shown_phase is Phase.FAULT


def test_vehicle_that_stands_on_the_loop_at_the_start_may_use_its_card(fresh_lane):
    lane = fresh_lane
    lane.do(m.GateRegained())
    lane.arming(ON)
    lane.closing(OFF)
    lane.safety(OFF)
    lane.gate(GatePosition.CLOSED)
    lane.card()
    assert lane.actions() == [OPEN]


def test_gate_closed_by_hand_under_a_waiting_vehicle(lane):
    lane.let_in()
    lane.gate(GatePosition.CLOSED)
    assert lane.passages[-1].outcome is PassageOutcome.BACKED_OUT
    assert lane.state.visits.phase is Phase.ARMED


def credential(text):
    return Credential(text=text)


def granted():
    return decide(credential("0007"), (Card(7, "0007"),), now=0)
