"""The lane machine: pure. `handle(rules, state, event, now)` returns the next state and the commands to carry out.

| phase    | leaves it by                                             | to                     |
|----------|----------------------------------------------------------|------------------------|
| IDLE     | arming loop on                                           | ARMED                  |
| ARMED    | card read / arming loop off                              | DECIDING / IDLE        |
| DECIDING | granted / denied / arming loop off                       | OPENING / ARMED / IDLE |
| OPENING  | seen open / closing loop on / time-out or refused        | OPEN / PASSING / ARMED |
| OPEN     | closing loop on / both loops free too long               | PASSING / IDLE         |
| PASSING  | closing loop off, arming loop released before / not      | IDLE / OPEN            |

Behind a vehicle the gate is closed (`Closing` in the state; shown as CLEARED, then CLOSING), while the next vehicle may
already be ARMED; a grant for that one ends the closing. In a counted lane OPEN follows PASSING while passages are owed.
An operator's open leads from IDLE, ARMED and DECIDING to OPENING. A fire or an order to hold open opens the gate in
every phase. In a lock-down, only a vehicle that already has the right of way goes on. A close, whoever wants it, is
sent only when `why_not_close` returns "". Only a position shows that the gate moved; an acknowledgement does not. For a
gate that has no position at all OPEN follows the acknowledgement, and its controller closes it.

After a start the machine knows nothing, and opens the gate only for a vehicle, a person, the schedule or a fire. A gate
that was left open is closed once every closing point has been seen off for long enough.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.transition import Due, LaneView, Transition
from gateway.lanes.snapshots import Phase
from gateway.site import ROLES, Role
from gateway.texts import text


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one event: the next state, and the commands to carry out."""

    state: LaneState
    commands: tuple[m.LaneCommand, ...]


def handle(rules: LaneRules, state: LaneState, event: m.LaneEvent, now: m.Now) -> Step:
    """Handle one event. Deterministic: equal arguments give an equal step."""
    lane = Transition(rules, state, now)
    _take(lane, event)
    for at, act in _due(lane):
        if at <= now.at:
            act(lane)
    return Step(state=lane.finish(), commands=tuple(lane.commands))


def wake_at(rules: LaneRules, state: LaneState) -> float | None:
    """Return the next instant (monotonic seconds) at which the machine needs a `Ticked`, None for no deadline.

    It is always later than the last step, which handled every deadline until then.
    """
    moments = (at for at, _ in _due(LaneView(rules, state)))
    return min((moment for moment in moments if state.looked_at < moment < float("inf")), default=None)


def _due(lane: LaneView) -> Iterator[Due]:
    """Yield every action that the state asks for, with its instant.

    Each is found only after the actions before it were performed, so that it follows from the state after them.
    """
    yield from visits.due(lane)
    yield from readings.due(lane)
    yield from commands_in_flight.due(lane)
    yield from stopping.due(lane)
    yield from orders.due(lane)
    yield from closing.due(lane)
    yield from troubles.due(lane)


def _take(lane: Transition, event: m.LaneEvent) -> None:  # noqa: C901, PLR0912 (one branch per event)
    match event:
        case m.CardRead():
            readings.card_read(lane, event)
        case m.PlateRead():
            readings.plate_read(lane, event)
        case m.KeysTyped():
            readings.keys_typed(lane, event)
        case m.InputReported():
            _input_reported(lane, event)
        case m.InputMissed():
            lane.observe(event)
        case m.GateReported():
            _gate_reported(lane, event)
        case m.GateLost():
            commands_in_flight.gate_lost(lane, event)
            closing.gate_lost(lane)
        case m.GateLossExplained():
            commands_in_flight.gate_loss_explained(lane, event)
        case m.GateRegained():
            lane.put(lane.state.inputs.gate_back(lane.now.at))
            lane.put(lane.state.orders.afresh())
            visits.gate_regained(lane)
            reopening.gate_regained(lane)
            lane.note("")
        case m.Decided():
            visits.decided(lane, event)
        case m.CommandRequested():
            command_requested(lane, event)
        case m.OrderGiven() | m.OrderScheduled():
            orders.ordered(lane, event)
        case m.GrantRemembered():
            lane.put(lane.state.visits.remembering(event))
        case m.StopRemembered():
            stopping.remembered(lane, event)
        case m.CommandAcknowledged():
            _command_acknowledged(lane, event)
        case m.CommandFailed():
            _command_failed(lane, event)
        case m.Ticked():
            pass


def _input_reported(lane: Transition, event: m.InputReported) -> None:
    match event.role:
        case Role.ARMING:
            _arming_reported(lane, event, Side.NEAR)
        case Role.FAR:
            _arming_reported(lane, event, Side.FAR)
        case Role.CLOSING:
            _closing_reported(lane, event)
        case role if ROLES[role].opens:
            orders.fire_reported(lane, event)
        case _:
            lane.observe(event)


def _arming_reported(lane: Transition, event: m.InputReported, side: Side) -> None:
    before = lane.state.inputs.loop(side)
    lane.observe(event)
    if event.state is PointState.ON and not before.is_on():
        visits.arrived(lane, side, free_for=event.at - before.since)
    elif event.state is PointState.OFF and not before.is_off():
        visits.arming_released(lane, side, held_for=event.at - before.since)


def _closing_reported(lane: Transition, event: m.InputReported) -> None:
    before = lane.state.inputs.closing.state
    lane.observe(event)
    if event.state is PointState.ON and before is not PointState.ON:
        if lane.state.visits.phase in {Phase.OPENING, Phase.OPEN}:
            if not intruders.is_the_one_before(lane):
                visits.passing(lane)
        elif lane.state.visits.phase is not Phase.PASSING and (
            before is PointState.OFF or lane.state.visits.let_in_before(lane.now.at)
        ):
            intruders.on_closing_loop(lane)
    elif event.state is PointState.OFF and before is not PointState.OFF:
        visit = lane.state.visits.present
        if lane.state.visits.phase is Phase.PASSING or (visit is not None and visit.against):
            visits.left_closing_loop(lane)
            lane.put(lane.state.intruders.gone())
        elif lane.state.intruders.present is not None:
            intruders.left_closing_loop(lane, lane.state.intruders.present)
        if before is PointState.ON:
            lane.put(lane.state.intruders.closing_loop_left(lane.now.at))


def _gate_reported(lane: Transition, event: m.GateReported) -> None:
    gate = lane.state.inputs.gate
    before, known = gate.position, gate.known
    lane.observe(event)
    troubles.follow_gate(lane, known)
    intruders.follow_gate(lane, event.position)
    closing.obeyed(lane, event.position)
    commands_in_flight.settle(lane, event)
    if event.position is GatePosition.OPEN:
        lane.put(lane.state.orders.afresh())
        if lane.state.visits.phase is Phase.OPENING:
            visits.opened(lane)
    if event.position is GatePosition.CLOSED and before is not GatePosition.CLOSED:
        if before is not GatePosition.UNKNOWN:
            lane.tell(EventKind.GATE_CLOSED, text("event.gate_closed"))
        if lane.state.visits.phase is Phase.OPEN:
            visits.closed_before_passing(lane)
    stopping.follow_gate(lane, event.position, before=known)
    if event.position is GatePosition.STOPPED and lane.state.stop.by and lane.state.visits.phase is Phase.OPENING:
        visits.not_opened(lane, text("gate.stopped_by", who=lane.state.stop.by))
    closing.follow_gate(lane, event.position, has_rested=gate.has_rested)


def command_requested(lane: Transition, event: m.CommandRequested) -> None:
    """Carry out a command that was given from outside, or refuse it with the reason."""
    command = event.command
    if lane.now.at >= event.deadline:
        lane.refuse(command, text("command.too_late"))
    elif lane.state.inputs.gate_lost:
        lane.refuse(command, text("lane.gate_offline", why=lane.state.inputs.gate_lost))
    elif command.action is GateAction.OPEN:
        if lane.state.locked_down:
            lane.refuse(command, lane.state.locked_down)
        else:
            visits.operator_opens(lane, event)
    elif command.action is GateAction.CLOSE:
        closing.operator_closes(lane, event)
    else:
        stopping.asked(lane, event)
        reopening.put_off(lane)


def _command_acknowledged(lane: Transition, event: m.CommandAcknowledged) -> None:
    command = lane.state.commands.under_way(event.command_id)
    is_newest = lane.state.commands.is_newest(event.command_id)
    commands_in_flight.acknowledged(lane, event)
    if command is not None and command.action is GateAction.STOP:
        stopping.acknowledged(lane)
    elif command is not None and command.action is GateAction.CLOSE and is_newest:
        closing.acknowledged(lane, command)
    elif command is not None and command.action is GateAction.OPEN:
        reopening.acknowledged(lane)
        visits.open_heard(lane)
        if not lane.rules.has_position and lane.state.visits.phase is Phase.OPENING:
            lane.enter(Phase.OPEN, lane.state.visits.present)


def _command_failed(lane: Transition, event: m.CommandFailed) -> None:
    flight, may_still_open = lane.state.commands.flight, lane.state.commands.may_still_open()
    command = lane.state.commands.under_way(event.command_id)
    if not event.sent:
        stopping.failed(lane, event.command_id)
    if flight is None or flight.command.command_id != event.command_id:
        commands_in_flight.superseded_ended(lane, event.command_id, sent=event.sent)
        if command is not None and command.action is GateAction.CLOSE and not event.sent:
            closing.overtaken(lane)
        return
    commands_in_flight.failed(lane, event)
    if event.sent and flight.command.action is GateAction.OPEN:
        visits.open_heard(lane)
    elif event.sent:
        pass
    elif flight.command.action is GateAction.CLOSE:
        closing.failed(lane, event.reason)
    elif flight.command.action is GateAction.STOP:
        reopening.stop_failed(lane)
    else:
        visits.open_not_sent(lane, flight.command, event.reason, may_still_open=may_still_open)
        reopening.not_sent(lane)
        orders.not_sent(lane)
    commands_in_flight.watch_close(lane, flight.instead_of)
