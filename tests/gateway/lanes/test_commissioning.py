"""Commissioning: what a lane's tape shows of each step, with the real lane machine."""

from __future__ import annotations

import pytest

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.lanes.commissioning import Commissioning, StepOutcome
from gateway.lanes.machine import messages as m
from gateway.lanes.tape import LaneTape
from gateway.runtime.clock import Stamp

ON, OFF = PointState.ON, PointState.OFF
WALL = 1_700_000_000_000_000


@pytest.fixture
def lane(make_script, rules):
    """A lane that stands ready, with somebody who commissions it."""

    class Tried(make_script):
        def __init__(self):
            super().__init__(rules)
            self.tape = LaneTape(rules)
            self.steps = None

        def do(self, event):
            before, now = self.state, m.Now(self.at, Stamp(WALL + int(self.at * 1e6), trusted=True))
            commands = super().do(event)
            self.tape.add(before, now, event, tuple(commands))
            return commands

        def result(self, name):
            """Return the present result of a step, as the page asks for it."""
            self.steps.take(self.tape.incident())
            return {step.name: result for step, result in self.steps.results}[name]

    lane = Tried()
    lane.ready()
    lane.steps = Commissioning(rules, can_stop=True, since=lane.at)
    lane.wait(2)
    return lane


def test_each_travel_is_timed_from_its_command_to_its_end(lane):
    assert lane.result("open").outcome is StepOutcome.WAITING
    lane.wish(GateAction.OPEN)
    lane.open_gate()
    assert (lane.result("open").outcome, str(lane.result("open").seen)) == (
        StepOutcome.PASSED,
        "open 1.0 s after the command",
    )
    assert lane.result("close").outcome is StepOutcome.WAITING
    lane.wish(GateAction.CLOSE)
    lane.close_gate()
    assert str(lane.result("close").seen) == "closed 1.0 s after the command"


def test_a_gate_that_somebody_opens_by_hand_has_not_passed(lane):
    lane.gate(GatePosition.OPENING)
    lane.gate(GatePosition.OPEN)
    assert lane.result("open").outcome is StepOutcome.WAITING


@pytest.mark.parametrize(
    ("finish", "outcome"), [("acknowledge", StepOutcome.PASSED), ("fail", StepOutcome.FAILED)], ids=["taken", "refused"]
)
def test_a_stop_counts_as_the_controller_answers_it(lane, finish, outcome):
    lane.wish(GateAction.OPEN)
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    lane.wish(GateAction.STOP)
    if finish == "fail":
        lane.do(m.CommandFailed(lane.sent[-1].command_id, "it does not answer", sent=True))
    else:
        lane.acknowledge()
    assert lane.result("stop").outcome is outcome


def test_a_loop_must_be_told_off_on_and_off(lane):
    assert lane.result("arming-0").outcome is StepOutcome.WAITING
    lane.arming(ON)
    lane.wait(2)
    assert lane.result("arming-0").outcome is StepOutcome.WAITING
    lane.arming(OFF)
    assert str(lane.result("arming-0").seen) == "off, on for 2.0 s, off"


def test_a_loop_that_is_on_before_anybody_is_there_has_failed(lane):
    lane.arming(ON)
    lane.wait(1)
    lane.steps = Commissioning(lane.rules, can_stop=True, since=lane.at)
    lane.wait(1)
    assert lane.result("arming-0").outcome is StepOutcome.FAILED
    assert "polarity" in str(lane.result("arming-0").seen)


def closing_gate(lane):
    lane.wish(GateAction.OPEN)
    lane.open_gate()
    lane.wish(GateAction.CLOSE)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.wait(0.5)


def test_each_safety_point_must_open_a_closing_gate_again(lane):
    closing_gate(lane)
    lane.closing(ON)
    assert lane.actions()[-1] is GateAction.OPEN, "the lane itself opens again"
    lane.acknowledge()
    assert lane.result("reopening-closing-0").outcome is StepOutcome.WAITING
    lane.at += 0.3
    lane.gate(GatePosition.OPENING)
    assert lane.result("reopening-closing-0").outcome is StepOutcome.PASSED
    others = [result for step, result in lane.steps.results if step.name.startswith("reopening-safety")]
    assert all(result.outcome is StepOutcome.WAITING for result in others)


def test_a_gate_that_closes_on_a_safety_point_has_failed(lane):
    closing_gate(lane)
    lane.closing(ON)
    lane.gate(GatePosition.CLOSED)
    assert lane.result("reopening-closing-0").outcome is StepOutcome.FAILED


def test_a_safety_point_under_an_open_gate_says_nothing_of_reopening(lane):
    lane.wish(GateAction.OPEN)
    lane.open_gate()
    lane.closing(ON)
    lane.wait(1)
    lane.closing(OFF)
    assert lane.result("reopening-closing-0").outcome is StepOutcome.WAITING


def test_a_card_and_its_passage_are_seen(lane):
    lane.arming(ON)
    lane.card()
    assert lane.result("card").outcome is StepOutcome.PASSED
    lane.open_gate()
    assert lane.result("passage").outcome is StepOutcome.WAITING
    lane.drive_through()
    assert lane.result("passage").outcome is StepOutcome.PASSED


def test_a_loss_is_told_and_left_to_the_person_who_saw_the_gate(lane):
    lane.do(m.GateLost("no answer"))
    lane.wait(10)
    lane.do(m.GateRegained())
    result = lane.result("plug")
    assert (result.outcome, str(result.seen)) == (StepOutcome.WAITING, "control was lost for 10.0 s")
    lane.steps.judge("plug", passed=True, note="", by="chief")
    assert (str(lane.result("plug").seen), lane.result("plug").by) == (str(result.seen), "chief")


def test_what_a_person_judged_stands(lane):
    lane.steps.judge("open", passed=False, note="it shakes", by="chief")
    lane.wish(GateAction.OPEN)
    lane.open_gate()
    assert (lane.result("open").outcome, str(lane.result("open").seen)) == (StepOutcome.FAILED, "it shakes")
    with pytest.raises(KeyError):
        lane.steps.judge("dance", passed=True, note="", by="chief")


def test_what_was_before_the_begin_does_not_count(lane):
    lane.wish(GateAction.OPEN)
    lane.open_gate()
    lane.steps = Commissioning(lane.rules, can_stop=True, since=lane.at)
    lane.wait(1)
    assert lane.result("open").outcome is StepOutcome.WAITING


def test_a_gate_that_cannot_stop_has_no_such_step(lane):
    names = [step.name for step, _ in Commissioning(lane.rules, can_stop=False, since=0.0).results]
    assert "stop" not in names
    assert len(names) == len(set(names))
