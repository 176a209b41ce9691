"""The lane machine: pure. `handle(rules, state, event, now)` gives the next state and what must be done.

| phase    | leaves it by                                             | to                     |
|----------|----------------------------------------------------------|------------------------|
| IDLE     | arming loop on                                           | ARMED                  |
| ARMED    | card read / arming loop off                              | DECIDING / IDLE        |
| DECIDING | granted / denied / arming loop off                       | OPENING / ARMED / IDLE |
| OPENING  | seen open / closing loop on / time-out or refused        | OPEN / PASSING / ARMED |
| OPEN     | closing loop on / both loops free too long               | PASSING / IDLE         |
| PASSING  | closing loop off, arming loop released before / not      | IDLE / OPEN            |

Behind a vehicle the gate is closed (`Closing` in the state; shown as CLEARED, then CLOSING) while the next one may
already be ARMED; its grant ends the closing. In every phase an operator's open leads to OPENING. A close, whoever wants
it, is sent only when `why_not_close` has nothing to say. Only the position says moved; an acknowledgement does not.
After a start the machine knows nothing and moves nothing until a vehicle or a person asks.
"""

from __future__ import annotations

from dataclasses import dataclass

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.lanes import closing, flights, visits
from gateway.lanes import messages as m
from gateway.lanes.board import Phase
from gateway.lanes.state import LaneRules, LaneState
from gateway.lanes.turn import Turn

_GATE_MAY_BE_PASSED = frozenset({GatePosition.OPEN, GatePosition.OPENING, GatePosition.CLOSING, GatePosition.STOPPED})


@dataclass(frozen=True, slots=True)
class Step:
    """What an event led to."""

    state: LaneState
    commands: tuple[m.LaneCommand, ...]


def handle(rules: LaneRules, state: LaneState, event: m.LaneEvent, now: m.Now) -> Step:
    """Take one event. Deterministic: equal arguments give an equal step."""
    turn = Turn(rules, state, now)
    _take(turn, event)
    flights.watch(turn)
    visits.watch(turn)
    closing.watch(turn)
    return Step(state=turn.state, commands=tuple(turn.commands))


def wake_at(rules: LaneRules, state: LaneState) -> float | None:
    """The next instant (monotonic seconds) at which `Ticked` is due though nothing else happens, or None."""
    moments = [*flights.deadlines(state), *visits.deadlines(rules, state), *closing.deadlines(rules, state)]
    return min((moment for moment in moments if moment < float("inf")), default=None)


def _take(turn: Turn, event: m.LaneEvent) -> None:
    match event:
        case m.CardRead():
            visits.card_read(turn, event)
        case m.InputReported():
            _input_reported(turn, event)
        case m.GateReported():
            _gate_reported(turn, event)
        case m.GateLost():
            flights.gate_lost(turn, event.reason)
        case m.GateRegained():
            turn.set(gate_lost="", note="")
        case m.Decided():
            visits.decided(turn, event)
        case m.CommandRequested():
            _command_requested(turn, event)
        case m.CommandAcknowledged():
            flights.acknowledged(turn, event)
        case m.CommandFailed():
            _command_failed(turn, event)
        case m.Ticked():
            pass


def _input_reported(turn: Turn, event: m.InputReported) -> None:
    if event.role is m.Role.ARMING:
        _arming_reported(turn, event)
    elif event.role is m.Role.CLOSING:
        _closing_reported(turn, event)
    else:
        turn.see_safety(event)


def _arming_reported(turn: Turn, event: m.InputReported) -> None:
    before = turn.state.arming.state
    turn.see_arming(event)
    if event.state is PointState.ON and before is not PointState.ON:
        visits.arrived(turn)
    elif event.state is PointState.OFF and before is not PointState.OFF:
        visits.arming_released(turn)


def _closing_reported(turn: Turn, event: m.InputReported) -> None:
    before = turn.state.closing.state
    turn.see_closing(event)
    if event.state is PointState.ON and before is not PointState.ON:
        phase = turn.state.phase
        known_free_before = before is PointState.OFF
        if phase in {Phase.OPENING, Phase.OPEN}:
            visits.passing(turn)
        elif known_free_before and phase is not Phase.PASSING and turn.state.gate.position in _GATE_MAY_BE_PASSED:
            turn.set(intruder=turn.now.stamp)
    elif event.state is PointState.OFF and before is not PointState.OFF:
        if turn.state.phase is Phase.PASSING:
            visits.left_closing_loop(turn)
        elif turn.state.intruder is not None:
            visits.intruder_passed(turn, turn.state.intruder)


def _gate_reported(turn: Turn, event: m.GateReported) -> None:
    before = turn.state.gate.position
    turn.see_gate(event)
    flights.settle(turn, event)
    if event.position is GatePosition.OPEN and turn.state.phase is Phase.OPENING:
        visits.opened(turn)
    if event.position is GatePosition.CLOSED and before is not GatePosition.CLOSED:
        if before is not GatePosition.UNKNOWN:
            turn.tell(EventKind.GATE_CLOSED, "the gate is closed")
        if turn.state.phase is Phase.OPEN:
            visits.closed_before_passing(turn)
    closing.seen(turn, event.position)


def _command_requested(turn: Turn, event: m.CommandRequested) -> None:
    command = event.command
    if turn.now.at >= event.deadline:
        turn.refuse(command, "its deadline passed before it could be sent")
    elif turn.state.gate_lost:
        turn.refuse(command, f"the gate's controller is away: {turn.state.gate_lost}")
    elif command.action is GateAction.OPEN:
        visits.operator_opens(turn, event)
    elif command.action is GateAction.CLOSE:
        closing.operator_closes(turn, event)
    else:
        flights.send(turn, command, event.deadline)


def _command_failed(turn: Turn, event: m.CommandFailed) -> None:
    flight = turn.state.flight
    if flight is None or flight.command.command_id != event.command_id:
        return
    flights.failed(turn, event)
    if flight.command.action is GateAction.CLOSE:
        closing.failed(turn, event.reason)
    elif flight.command.action is GateAction.OPEN and turn.state.phase is Phase.OPENING:
        visits.not_opened(turn, event.reason)
