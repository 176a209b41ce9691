"""Commissioning of a lane: what to do at the gate step by step, and what the lane's tape shows of each step. Pure.

The steps are those that installers try at a power-operated gate after each change: the travel with its ends, the stop,
each safety device while the gate closes, and the loss of control.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.tape import Incident, TapedStep
from gateway.site import LaneInput, Role
from gateway.texts import Text, Words, text

_REOPENING = frozenset({GatePosition.OPENING, GatePosition.OPEN})


class StepOutcome(StrEnum):
    """The outcome of a step so far."""

    WAITING = "waiting"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StepResult:
    """A step's outcome, with the observation behind it.

    Attributes:
        outcome: whether the step waits, has passed or has failed.
        seen: what the gateway observed, or the note of the person who judged the step, in their words.
        by: the person who judged the step, "" for the gateway itself.
    """

    outcome: StepOutcome = StepOutcome.WAITING
    seen: Words = ""
    by: str = ""


class _Watch(Protocol):
    def take(self, step: TapedStep) -> StepResult | None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CommissioningStep:
    """A step: its name in the lane, its title, and what to do at the gate. `by_person`: only a person can judge it."""

    name: str
    title: Text
    todo: Text
    by_person: bool = False


class Commissioning:
    """One lane's steps and their results so far. Pure: the caller passes the lane's tape to `take` again and again."""

    def __init__(self, rules: LaneRules, *, can_stop: bool, since: float) -> None:
        """`since` is in monotonic seconds: earlier steps on the tape are ignored. `can_stop`: the gate takes a stop."""
        self._since = since
        self._last: TapedStep | None = None
        self._watches = _watches(rules, can_stop=can_stop)
        self._results = {step.name: StepResult() for step, _ in self._watches}

    @property
    def results(self) -> tuple[tuple[CommissioningStep, StepResult], ...]:
        """The steps in the order in which they are tried, each with its result."""
        return tuple((step, self._results[step.name]) for step, _ in self._watches)

    @property
    def is_complete(self) -> bool:
        """True if every step has passed or failed."""
        return all(result.outcome is not StepOutcome.WAITING for _, result in self.results)

    def take(self, incident: Incident) -> None:
        """Update the results by what the tape has gained since the last call."""
        for one in self._new(incident.steps):
            for step, watch in self._watches:
                if watch is None or self._results[step.name].outcome is not StepOutcome.WAITING:
                    continue
                result = watch.take(one)
                if result is not None:
                    self._results[step.name] = result
        self._last = incident.steps[-1]

    def _new(self, steps: tuple[TapedStep, ...]) -> Iterable[TapedStep]:
        """Return the steps after the last one taken, which is found by identity: several may have the same time."""
        taken = next((place for place, step in enumerate(steps) if step is self._last), -1)
        return (step for step in steps[taken + 1 :] if step.now.at > self._since)

    def judge(self, name: str, *, passed: bool, note: str, by: str) -> None:
        """Record a person's judgement, which replaces any result so far. An empty note keeps the observation so far.

        Raises KeyError for a step that this lane does not have.
        """
        seen = note or self._results[name].seen
        self._results[name] = StepResult(StepOutcome.PASSED if passed else StepOutcome.FAILED, seen, by)


def _watches(rules: LaneRules, *, can_stop: bool) -> tuple[tuple[CommissioningStep, _Watch | None], ...]:
    lane = rules.lane
    waiting = [one for one in lane.ordered_inputs if one.spec.waits]
    obstructing = [one for one in lane.ordered_inputs if one.spec.obstructs]
    switches = [one for one in lane.ordered_inputs if not one.spec.held_by_vehicles]
    steps: list[tuple[CommissioningStep, _Watch | None]] = [
        (_OPEN, _Travel(GateAction.OPEN, GatePosition.OPEN)),
        (_CLOSE, _Travel(GateAction.CLOSE, GatePosition.CLOSED)),
    ]
    if can_stop:
        steps.append((_STOP, _Stop()))
    steps += [(_input_step(one), _OffOnOff(one.role, one.index)) for one in (*waiting, *obstructing)]
    steps += [(_reopening_step(one), _Reopening(one.role, one.index)) for one in obstructing]
    steps += [(_input_step(one), _OffOnOff(one.role, one.index)) for one in switches]
    if lane.readers:
        steps.append((_CARD, _Card()))
    if lane.cameras:
        steps += [(_PLATE, _Plate()), (_VIEW, None)]
    return (*steps, (_PASSAGE, _Passage()), (_PLUG, _Loss()))


def _step(name: str, *, by_person: bool = False) -> CommissioningStep:
    title, todo = text(f"commissioning.title.{name}"), text(f"commissioning.todo.{name}")
    return CommissioningStep(name=name, title=title, todo=todo, by_person=by_person)


_OPEN, _CLOSE, _STOP = _step("open"), _step("close"), _step("stop")
_CARD, _PLATE, _VIEW = _step("card"), _step("plate"), _step("view", by_person=True)
_PASSAGE, _PLUG = _step("passage"), _step("plug", by_person=True)


def _input_step(one: LaneInput) -> CommissioningStep:
    return CommissioningStep(
        name=f"{one.role}-{one.index}",
        title=text("commissioning.input", input=_named(one)),
        todo=text("commissioning.input_todo"),
    )


def _reopening_step(one: LaneInput) -> CommissioningStep:
    return CommissioningStep(
        name=f"reopening-{one.role}-{one.index}",
        title=text("commissioning.reopening", input=_named(one)),
        todo=text("commissioning.reopening_todo"),
    )


def _named(one: LaneInput) -> Text:
    label = text(f"role.{one.role}")
    return text("role_numbered", role=label, number=one.index + 1) if one.spec.many else label


def _passed(seen: Text) -> StepResult:
    return StepResult(StepOutcome.PASSED, seen)


def _is_sent(step: TapedStep, *actions: GateAction) -> str:
    """Return the id of the first of these commands that the lane sent in this step, "" for none."""
    sent = (one.command for one in step.commands if isinstance(one, m.SendCommand))
    return next((command.command_id for command in sent if command.action in actions), "")


@dataclass(slots=True)
class _Travel:
    """A watch from a command until the gate reports the end of its travel."""

    action: GateAction
    end: GatePosition
    begun: float | None = None
    last: GatePosition | None = None

    def take(self, step: TapedStep) -> StepResult | None:
        if isinstance(step.event, m.GateReported):
            before, self.last = self.last, step.event.position
            arrived = self.last is self.end and before is not self.end
            if arrived and self.begun is not None:
                return _passed(text(f"commissioning.seen.{self.end}", seconds=f"{step.event.at - self.begun:.1f}"))
        if _is_sent(step, self.action) and self.last is not self.end:
            self.begun = step.now.at
        return None


@dataclass(slots=True)
class _Stop:
    command_id: str = ""

    def take(self, step: TapedStep) -> StepResult | None:
        self.command_id = _is_sent(step, GateAction.STOP) or self.command_id
        if not self.command_id:
            return None
        match step.event:
            case m.CommandAcknowledged(command_id=self.command_id):
                return _passed(text("commissioning.stop_taken"))
            case m.CommandFailed(command_id=self.command_id, reason=reason):
                return StepResult(StepOutcome.FAILED, reason)
        return None


@dataclass(slots=True)
class _OffOnOff:
    role: Role
    index: int
    was_off: bool = False
    on_since: float | None = None

    def take(self, step: TapedStep) -> StepResult | None:
        event = step.event
        if not isinstance(event, m.InputReported) or (event.role, event.index) != (self.role, self.index):
            return None
        if event.state is PointState.ON:
            if not self.was_off:
                return StepResult(StepOutcome.FAILED, text("commissioning.was_on"))
            self.on_since = event.at if self.on_since is None else self.on_since
        elif event.state is PointState.OFF:
            if self.on_since is not None:
                return _passed(text("commissioning.off_on_off", seconds=f"{event.at - self.on_since:.1f}"))
            self.was_off = True
        return None


@dataclass(slots=True)
class _Reopening:
    role: Role
    index: int
    last: GatePosition | None = None
    is_told_to_close: bool = False
    struck: float | None = None

    def take(self, step: TapedStep) -> StepResult | None:
        self.is_told_to_close = self.is_told_to_close or bool(_is_sent(step, GateAction.CLOSE))
        match step.event:
            case m.GateReported(position=position, at=at) if position is not self.last:
                return self._moved(position, at)
            case m.InputReported(role=self.role, index=self.index, state=PointState.ON, at=at):
                if self._is_closing and self.struck is None:
                    self.struck = at
        return None

    @property
    def _is_closing(self) -> bool:
        if self.last is GatePosition.CLOSED or self.last in _REOPENING:
            return False
        return self.is_told_to_close or self.last is GatePosition.CLOSING

    def _moved(self, position: GatePosition, at: float) -> StepResult | None:
        self.last = position
        if position is not GatePosition.CLOSED and position not in _REOPENING:
            return None
        self.is_told_to_close = False
        if self.struck is None:
            return None
        if position is GatePosition.CLOSED:
            return StepResult(StepOutcome.FAILED, text("commissioning.closed_all_the_same"))
        return _passed(text("commissioning.opened_again", seconds=f"{at - self.struck:.1f}"))


@dataclass(slots=True)
class _Card:
    def take(self, step: TapedStep) -> StepResult | None:
        if not isinstance(step.event, m.CardRead):
            return None
        return _passed(text("commissioning.was_read", credential=step.event.credential.shown()))


@dataclass(slots=True)
class _Plate:
    def take(self, step: TapedStep) -> StepResult | None:
        if not isinstance(step.event, m.PlateRead):
            return None
        return _passed(text("commissioning.was_read", credential=step.event.plate))


@dataclass(slots=True)
class _Passage:
    def take(self, step: TapedStep) -> StepResult | None:
        recorded = (event for one in step.commands if isinstance(one, m.Record) for event in one.entry.events)
        if any(event.kind is EventKind.VEHICLE_PASSED for event in recorded):
            return _passed(text("commissioning.vehicle_counted"))
        return None


@dataclass(slots=True)
class _Loss:
    lost: float | None = None

    def take(self, step: TapedStep) -> StepResult | None:
        match step.event:
            case m.GateLost():
                self.lost = step.now.at
            case m.GateRegained() if self.lost is not None:
                return StepResult(
                    StepOutcome.WAITING, text("commissioning.control_lost", seconds=f"{step.now.at - self.lost:.1f}")
                )
        return None
