"""A person's command that was not sent changes nothing: a lane with it and one without it go on alike."""

from __future__ import annotations

import pytest
from lane_rules import POINT, changed, lane_rules

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.events import EventKind as E
from gateway.domain.passages import PassageOutcome
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.snapshots import Phase

ON, OFF, UNKNOWN = PointState.ON, PointState.OFF, PointState.UNKNOWN
OPEN, CLOSE, STOP = GateAction.OPEN, GateAction.CLOSE, GateAction.STOP
OF_COMMANDS = {E.COMMAND_SENT, E.COMMAND_REFUSED, E.COMMAND_UNKNOWN}
REASONS = ["the closing loop did not answer when it was last asked", "the line was not free before the deadline"]


def refuse(lane, command, reason=REASONS[0]):
    lane.do(m.CommandFailed(command.command_id, reason, sent=False))


def let_in(lane):
    lane.let_in()
    lane.wait(lane.rules.lane.clear_seconds + 1)


def opening(lane):
    lane.is_opened()


def at_a_closed_gate(lane):
    lane.arming(ON)
    lane.card("9999")


def nobody_at_a_closed_gate(lane):
    pass


def closing_waits(lane):
    let_in(lane)
    lane.closing(ON)
    lane.wait(0.5)
    lane.arming(OFF)
    lane.wait(0.5)
    lane.closing(OFF)


def closes(lane):
    closing_waits(lane)
    lane.wait(lane.rules.lane.clear_seconds + 0.1)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)


def stopped_half_way(lane):
    opening(lane)
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.STOPPED)


def stopped_open(lane):
    let_in(lane)
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.OPEN)


def pushed_half_open(lane):
    lane.gate(GatePosition.STOPPED)
    lane.wait(1)


def held_open(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.open_gate()


def passes(lane):
    lane.closing(ON)
    lane.wait(0.5)
    lane.arming(OFF)
    lane.wait(0.5)
    lane.closing(OFF)


def waits(lane):
    lane.wait(1)


def opens_and_passes(lane):
    lane.gate(GatePosition.OPEN)
    passes(lane)


def leaves(lane):
    lane.wait(1)
    lane.arming(OFF)


def shut(lane):
    lane.gate(GatePosition.CLOSED)


SCENES = [
    (let_in, passes),
    (opening, opens_and_passes),
    (at_a_closed_gate, leaves),
    (nobody_at_a_closed_gate, waits),
    (closing_waits, waits),
    (closes, shut),
    (stopped_half_way, waits),
    (stopped_open, passes),
    (pushed_half_open, waits),
    (held_open, passes),
]


def told(lane):
    return [kind for kind in lane.events if kind not in OF_COMMANDS]


def outcome(lane):
    """Return all that the lane did and told, except of the person's command."""
    passages = [(one.outcome, one.credential, one.reason) for one in lane.passages]
    own = [command.action for command in lane.sent if command.source == "lane"]
    return passages, own, told(lane), lane.state.visits.phase, lane.state.stop.by, lane.state.troubles.unmoved


@pytest.mark.parametrize("vend", ["momentary", "counted", "supervised"])
@pytest.mark.parametrize(("before", "after"), SCENES, ids=lambda scene: scene.__name__)
def test_a_command_that_was_not_sent_changes_nothing(make_script, before, after, vend):
    outcomes = {}
    for action in (None, OPEN, CLOSE, STOP):
        lane = make_script(lane_rules(vend=vend, fire=POINT))
        lane.ready()
        before(lane)
        if action is not None:
            command = lane.wish(action)
            if lane.sent[-1:] == [command]:
                refuse(lane, command)
            assert lane.reached[command.command_id] is CommandState.REFUSED
        after(lane)
        for _ in range(3):
            lane.wait(20)
            if lane.sent and lane.state.commands.flight is not None:
                lane.close_gate()
        outcomes[action] = outcome(lane)
    without = outcomes.pop(None)
    assert outcomes == dict.fromkeys(outcomes, without)


@pytest.mark.parametrize("reason", REASONS)
def test_a_refused_close_takes_no_right_of_way(lane, reason):
    let_in(lane)
    close = lane.wish(CLOSE)
    lane.closing(UNKNOWN)
    refuse(lane, close, reason)
    lane.wait(4)
    lane.closing(ON)
    lane.wait(0.5)
    lane.arming(OFF)
    lane.wait(0.5)
    lane.closing(OFF)
    assert [passage.outcome for passage in lane.passages] == [PassageOutcome.PASSED]
    lane.wait(5)
    lane.close_gate()
    assert lane.actions() == [OPEN, CLOSE, CLOSE]
    assert lane.state.shown_phase is Phase.IDLE
    assert E.CLOSING_TIMED_OUT not in lane.events


@pytest.mark.parametrize("sent", [True, False])
def test_a_vehicle_that_drives_on_while_a_close_waits_for_the_line_passes(lane, sent):
    let_in(lane)
    close = lane.wish(CLOSE)
    lane.closing(ON)
    lane.do(m.CommandFailed(close.command_id, "no answer" if sent else "the closing loop is active", sent=sent))
    lane.gate(GatePosition.OPEN)
    lane.wait(0.5)
    lane.arming(OFF)
    lane.wait(0.5)
    lane.closing(OFF)
    assert [passage.outcome for passage in lane.passages] == [PassageOutcome.PASSED]


def test_a_close_of_unknown_outcome_that_did_close_the_gate_ends_the_visit(lane):
    let_in(lane)
    close = lane.wish(CLOSE)
    lane.do(m.CommandFailed(close.command_id, "no answer", sent=True))
    assert lane.state.visits.phase is Phase.OPEN
    lane.gate(GatePosition.CLOSING)
    lane.gate(GatePosition.CLOSED)
    assert [passage.outcome for passage in lane.passages] == [PassageOutcome.BACKED_OUT]
    assert lane.state.visits.phase is Phase.ARMED


@pytest.mark.parametrize("position", [GatePosition.CLOSING, GatePosition.CLOSED])
@pytest.mark.parametrize("is_seen_first", [False, True])
def test_a_close_that_the_controller_took_ends_the_right_of_way_once_the_gate_is_seen_to_close(
    lane, position, is_seen_first
):
    let_in(lane)
    lane.wish(CLOSE)
    assert lane.state.visits.phase is Phase.OPEN
    if is_seen_first:
        lane.gate(GatePosition.CLOSING)
        assert lane.state.visits.phase is Phase.OPEN
        lane.acknowledge()
    else:
        lane.acknowledge()
        assert lane.state.visits.phase is Phase.OPEN
        lane.gate(position)
    assert lane.state.visits.phase is Phase.ARMED
    assert lane.passages == []


@pytest.mark.parametrize("seconds", [0.4, 1, 2, 4])
def test_a_vehicle_passes_under_a_gate_that_did_not_obey_the_close_that_its_controller_took(lane, seconds):
    let_in(lane)
    lane.wait(1)
    lane.arming(OFF)
    lane.wish(CLOSE)
    lane.acknowledge()
    lane.wait(0.6)
    lane.closing(ON)
    lane.wait(0.1)
    if lane.actions()[-1] is OPEN:
        lane.acknowledge()
    lane.wait(seconds)
    lane.closing(OFF)
    assert [(one.outcome, one.credential) for one in lane.passages] == [(PassageOutcome.PASSED, "0007")]
    lane.clear()
    lane.wait(10)
    assert lane.actions()[-1] is CLOSE
    lane.close_gate()
    assert lane.state.shown_phase is Phase.IDLE


def test_a_persons_close_that_is_taken_and_not_obeyed_is_told(lane):
    let_in(lane)
    lane.wish(CLOSE)
    lane.acknowledge()
    lane.wait(lane.rules.lane.closing_seconds + 1)
    assert E.CLOSING_TIMED_OUT in lane.events
    assert lane.state.visits.phase is Phase.OPEN, "the vehicle may still pass"


@pytest.mark.parametrize("seconds", [1, 4, 8, 120])
@pytest.mark.parametrize("by_person", [True, False])
def test_a_command_goes_out_in_time_for_its_refusal_to_be_told(lane, seconds, by_person):
    lane.rules = changed(lane.rules, opening_seconds=seconds)
    lane.arming(ON)
    began = lane.at
    if by_person:
        lane.wish(OPEN)
    else:
        lane.card()
    (send,) = [one for one in lane.out if isinstance(one, m.SendCommand)]
    assert began < send.deadline <= began + min(5, 0.8 * seconds)
    lane.wait(send.deadline - began)
    refuse(lane, send.command, "the device is busy")
    assert lane.reached[send.command.command_id] is CommandState.REFUSED
    lane.wait(10)
    told = "open by demo: the device is busy" if by_person else "the gate did not open: the device is busy"
    assert told in lane.texts
    assert not lane.state.troubles.unmoved


def test_a_late_answer_to_a_close_ends_no_later_visit(lane):
    lane.gate(GatePosition.OPEN)
    lane.wait(5)
    close = lane.wish(CLOSE)
    lane.arming(ON)
    lane.card()
    lane.do(m.CommandAcknowledged(close.command_id, lane.at))
    assert lane.state.visits.phase is Phase.OPENING


def test_a_close_under_way_is_watched_while_the_gate_still_opens(lane):
    opening(lane)
    lane.wait(1)
    lane.wish(CLOSE)
    lane.gate(GatePosition.OPENING)
    lane.acknowledge()
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_an_open_that_a_refused_close_replaced_before_it_was_sent_is_sent_after_all(lane):
    lane.arming(ON)
    lane.card()
    opened, close = lane.sent[-1], lane.wish(CLOSE)
    refuse(lane, close)
    refuse(lane, opened, "a later command has taken its place")
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    lane.open_gate()
    lane.drive_through()
    assert [passage.outcome for passage in lane.passages] == [PassageOutcome.PASSED]


def test_the_third_close_of_the_lane_waits_too_for_what_is_in_the_way(lane):
    closing_waits(lane)
    for _ in range(2):
        lane.wait(lane.rules.lane.clear_seconds + 6)
        lane.acknowledge()
        lane.wait(lane.rules.lane.closing_seconds + 0.1)
    lane.wait(6)
    assert lane.actions() == [OPEN, CLOSE, CLOSE, CLOSE]
    lane.closing(ON)
    refuse(lane, lane.sent[-1])
    lane.wait(5)
    assert E.CLOSING_TIMED_OUT not in lane.events
    lane.closing(OFF)
    lane.wait(6)
    assert lane.actions() == [OPEN, CLOSE, CLOSE, CLOSE, CLOSE]


def test_an_expired_open_before_an_acknowledged_one_has_worked_ends_no_visit(lane):
    lane.arming(ON)
    lane.card()
    lane.acknowledge()
    refuse(lane, lane.wish(OPEN))
    assert lane.state.visits.phase is Phase.OPENING
    lane.gate(GatePosition.OPENING)
    lane.gate(GatePosition.OPEN)
    lane.drive_through()
    assert [passage.outcome for passage in lane.passages] == [PassageOutcome.PASSED]


def test_a_stop_that_was_not_sent_delays_no_open_against_something_in_the_way(lane):
    closes(lane)
    lane.safety(ON)
    refuse(lane, lane.sent[-1])
    stop = lane.wish(STOP)
    refuse(lane, stop)
    lane.wait(0.3)
    assert lane.actions()[-2:] == [STOP, OPEN]


def test_a_stop_is_ended_by_the_close_that_the_controller_took(lane):
    stopped_open(lane)
    lane.wait(5)
    lane.wish(CLOSE)
    assert E.STOP_ENDED not in lane.events
    lane.acknowledge()
    assert lane.events.count(E.STOP_ENDED) == 1
    assert not lane.state.stop.by
