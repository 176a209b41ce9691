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
already be ARMED; its grant ends the closing. In a counted lane OPEN follows PASSING while passages are owed. In every
phase an operator's open leads to OPENING, and a fire or an order to hold open has the gate opened beside whatever a
vehicle does; locked down, only who already has the right of way goes on. A close, whoever wants it, is sent only when
`why_not_close` has nothing to say. Only the position says moved; an acknowledgement does not.
After a start the machine knows nothing, and opens nothing until a vehicle, a person, the schedule or a fire asks. A
gate that was left open is closed once every closing point has been seen off for long enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.lanes.machine import (
    closing,
    commands_in_flight,
    intruders,
    orders,
    readings,
    reopening,
    stopping,
    troubles,
    visits,
)
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules, Side
from gateway.lanes.machine.state import Keeping, LaneState, RememberedGrant
from gateway.lanes.machine.transition import Turn
from gateway.lanes.snapshots import Phase


@dataclass(frozen=True, slots=True)
class Step:
    """What an event led to."""

    state: LaneState
    commands: tuple[m.LaneCommand, ...]


def handle(rules: LaneRules, state: LaneState, event: m.LaneEvent, now: m.Now) -> Step:
    """Take one event. Deterministic: equal arguments give an equal step."""
    turn = Turn(rules, state, now)
    _take(turn, event)
    visits.watch(turn)
    readings.watch(turn)
    commands_in_flight.watch(turn)
    stopping.watch(turn)
    orders.watch(turn)
    closing.watch(turn)
    troubles.watch(turn)
    turn.set(looked_at=now.at)
    return Step(state=turn.state, commands=tuple(turn.commands))


def wake_at(rules: LaneRules, state: LaneState) -> float | None:
    """The next instant (monotonic seconds) at which `Ticked` is due though nothing else happens, or None.

    Always later than the last step: what was due by then has been done.
    """
    moments = (
        *commands_in_flight.deadlines(state),
        *visits.deadlines(rules, state),
        *readings.deadlines(rules, state),
        *orders.deadlines(state),
        *stopping.deadlines(rules, state),
        *closing.deadlines(rules, state),
        *troubles.deadlines(rules, state),
    )
    return min((moment for moment in moments if state.looked_at < moment < float("inf")), default=None)


def _take(turn: Turn, event: m.LaneEvent) -> None:  # noqa: C901, PLR0912 (one branch per event)
    match event:
        case m.CardRead():
            readings.card_read(turn, event)
        case m.PlateRead():
            readings.plate_read(turn, event)
        case m.KeysTyped():
            readings.keys_typed(turn, event)
        case m.InputReported():
            _input_reported(turn, event)
        case m.InputMissed():
            turn.observe(event)
        case m.GateReported():
            _gate_reported(turn, event)
        case m.GateLost():
            commands_in_flight.gate_lost(turn, event)
            closing.gate_lost(turn)
        case m.GateLossExplained():
            commands_in_flight.gate_loss_explained(turn, event)
        case m.GateRegained():
            turn.observe(event)
            turn.set(note="", keeping=Keeping(), gate=turn.state.gate.regained(turn.now.at))
        case m.Decided():
            visits.decided(turn, event)
        case m.CommandRequested():
            _command_requested(turn, event)
        case m.OrderGiven() | m.OrderScheduled():
            orders.ordered(turn, event)
        case m.GrantRemembered():
            grant = RememberedGrant(event.card_id, event.credential, event.until, event.holder, event.opens)
            turn.set(granted_before=(*turn.state.granted_before, grant))
        case m.StopRemembered():
            stopping.remembered(turn, event)
        case m.CommandAcknowledged():
            _command_acknowledged(turn, event)
        case m.CommandFailed():
            _command_failed(turn, event)
        case m.Ticked():
            pass


def _input_reported(turn: Turn, event: m.InputReported) -> None:
    match event.role:
        case m.Role.ARMING:
            _arming_reported(turn, event, Side.NEAR)
        case m.Role.FAR:
            _arming_reported(turn, event, Side.FAR)
        case m.Role.CLOSING:
            _closing_reported(turn, event)
        case m.Role.FIRE:
            orders.fire_reported(turn, event)
        case m.Role.SAFETY | m.Role.LOCAL:
            turn.observe(event)


def _arming_reported(turn: Turn, event: m.InputReported, side: Side) -> None:
    before = turn.state.loop(side)
    turn.observe(event)
    if event.state is PointState.ON and not before.is_on():
        visits.arrived(turn, side, free_for=event.at - before.since)
    elif event.state is PointState.OFF and not before.is_off():
        visits.arming_released(turn, side, held_for=event.at - before.since)


def _closing_reported(turn: Turn, event: m.InputReported) -> None:
    before = turn.state.closing.state
    turn.observe(event)
    if event.state is PointState.ON and before is not PointState.ON:
        if turn.state.phase in {Phase.OPENING, Phase.OPEN}:
            if not intruders.is_the_one_before(turn):
                visits.passing(turn)
        elif turn.state.phase is not Phase.PASSING and (
            before is PointState.OFF or turn.state.let_in_before(turn.now.at)
        ):
            intruders.on_closing_loop(turn)
    elif event.state is PointState.OFF and before is not PointState.OFF:
        visit = turn.state.visit
        if turn.state.phase is Phase.PASSING or (visit is not None and visit.against):
            visits.left_closing_loop(turn)
        elif turn.state.intruder is not None:
            intruders.left_closing_loop(turn, turn.state.intruder)
        if before is PointState.ON:
            turn.set(left_at=turn.now.at)


def _gate_reported(turn: Turn, event: m.GateReported) -> None:
    before, known = turn.state.gate.position, turn.state.gate.known
    turn.observe(event)
    troubles.follow_gate(turn, known)
    intruders.gate_seen(turn, event.position)
    commands_in_flight.settle(turn, event)
    if event.position is GatePosition.OPEN:
        turn.set(keeping=Keeping())
        if turn.state.phase is Phase.OPENING:
            visits.opened(turn)
    if event.position is GatePosition.CLOSED and before is not GatePosition.CLOSED:
        if before is not GatePosition.UNKNOWN:
            turn.tell(EventKind.GATE_CLOSED, "the gate is closed")
        if turn.state.phase is Phase.OPEN:
            visits.closed_before_passing(turn)
    stopping.seen(turn, event.position, before=known)
    if event.position is GatePosition.STOPPED and turn.state.stopped_by and turn.state.phase is Phase.OPENING:
        visits.not_opened(turn, f"stopped by {turn.state.stopped_by}")
    closing.seen(turn, event.position)


def _command_requested(turn: Turn, event: m.CommandRequested) -> None:
    command = event.command
    if turn.now.at >= event.deadline:
        turn.refuse(command, "its deadline passed before it could be sent")
    elif turn.state.gate_lost:
        turn.refuse(command, f"the gate's controller is away: {turn.state.gate_lost}")
    elif command.action is GateAction.OPEN:
        if turn.state.locked_down:
            turn.refuse(command, turn.state.locked_down)
        else:
            visits.operator_opens(turn, event)
    elif command.action is GateAction.CLOSE:
        closing.operator_closes(turn, event)
    else:
        stopping.asked(turn, event)
        reopening.put_off(turn)


def _command_acknowledged(turn: Turn, event: m.CommandAcknowledged) -> None:
    command = commands_in_flight.under_way(turn.state, event.command_id)
    commands_in_flight.acknowledged(turn, event)
    if command is not None and command.action is GateAction.STOP:
        stopping.taken(turn)
    elif command is not None and command.action is GateAction.OPEN:
        reopening.acknowledged(turn)


def _command_failed(turn: Turn, event: m.CommandFailed) -> None:
    flight = turn.state.flight
    command = commands_in_flight.under_way(turn.state, event.command_id)
    if not event.sent:
        stopping.failed(turn, event.command_id)
    if flight is None or flight.command.command_id != event.command_id:
        commands_in_flight.superseded_ended(turn, event.command_id, sent=event.sent)
        if command is not None and command.action is GateAction.CLOSE and not event.sent:
            closing.overtaken(turn)
        return
    commands_in_flight.failed(turn, event)
    if event.sent:
        return
    if flight.command.action is GateAction.CLOSE:
        closing.failed(turn, event.reason)
    elif flight.command.action is GateAction.OPEN and turn.state.phase is Phase.OPENING:
        visits.not_opened(turn, event.reason)
    elif flight.command.action is GateAction.OPEN:
        reopening.not_sent(turn)
