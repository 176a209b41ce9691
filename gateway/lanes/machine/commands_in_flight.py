"""Commands under way: sent, acknowledged, seen to move; or refused, or of unknown outcome. Part of the machine."""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition
from gateway.domain.commands import Command, CommandState, GateAction
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state import InFlight, LaneState, Superseded
from gateway.lanes.machine.transition import Turn

_MOVED = {
    GateAction.OPEN: frozenset({GatePosition.OPENING, GatePosition.OPEN}),
    GateAction.CLOSE: frozenset({GatePosition.CLOSING, GatePosition.CLOSED}),
    GateAction.STOP: frozenset({GatePosition.STOPPED, GatePosition.OPEN, GatePosition.CLOSED}),
}
_MOVED_UNANSWERED = {**_MOVED, GateAction.STOP: frozenset({GatePosition.STOPPED})}
"""The same where nobody knows whether it was heard: a gate in its end position may have come there by itself."""


def send(turn: Turn, command: Command, deadline: float) -> None:
    """Send a command now. What was under way is superseded: if it still waits for the line, it never goes out."""
    flight = turn.state.flight
    if flight is not None:
        _supersede(turn, flight, f"superseded by {command.action}")
    patience = turn.rules.closing if command.action is GateAction.CLOSE else turn.rules.opening
    turn.set(flight=InFlight(command, deadline=deadline, give_up_at=turn.now.at + patience))
    turn.commands.append(m.SendCommand(command, deadline))
    turn.write(command, CommandState.SENT)


def open_again(turn: Turn, deadline: float) -> None:
    """Send an open in the place of one that never went out, before its deadline."""
    send(turn, turn.command(GateAction.OPEN), deadline)


def under_way(state: LaneState, command_id: str) -> Command | None:
    """The command of that id, while its driver has not told what became of it or its effect is waited for."""
    flight = () if state.flight is None else (state.flight.command,)
    commands = (*flight, *(one.command for one in state.superseded))
    return next((command for command in commands if command.command_id == command_id), None)


def is_under_way(state: LaneState, command_id: str) -> bool:
    """Whether more may be heard of this command."""
    return under_way(state, command_id) is not None


def acknowledged(turn: Turn, event: m.CommandAcknowledged) -> None:
    """The device took the command."""
    flight = turn.state.flight
    if flight is not None and flight.command.command_id == event.command_id:
        turn.set(flight=replace(flight, acknowledged_at=event.at))
        turn.write(flight.command, CommandState.ACKNOWLEDGED)
    else:
        superseded_ended(turn, event.command_id, sent=True)


def superseded_ended(turn: Turn, command_id: str, *, sent: bool) -> None:
    """A driver tells what became of a command whose place another had taken."""
    waiting = turn.state.superseded
    for one in waiting:
        if one.command.command_id == command_id:
            turn.set(superseded=tuple(other for other in waiting if other is not one))
            if not sent and one.command.action is GateAction.OPEN:
                turn.set(overtaken_open=one.deadline)
            if sent:
                turn.write(one.command, CommandState.UNKNOWN, one.reason)
            else:
                turn.write(one.command, CommandState.REFUSED, f"{one.reason} before it was sent")


def settle(turn: Turn, event: m.GateReported) -> None:
    """The gate is seen where the command wanted it, or on its way there: done, acknowledged or not."""
    flight = turn.state.flight
    if flight is None:
        return
    taken_at = flight.acknowledged_at if flight.acknowledged_at is not None else flight.doubted_at
    if taken_at is None or event.at <= taken_at:
        return
    if event.position in (_MOVED if flight.acknowledged_at is not None else _MOVED_UNANSWERED)[flight.command.action]:
        turn.set(flight=None)
        turn.write(flight.command, CommandState.DONE)


def failed(turn: Turn, event: m.CommandFailed) -> None:
    """The command did not reach the device, or nobody knows whether it did: then its movement may still tell."""
    flight = turn.state.flight
    if flight is None:
        return
    if event.sent:
        turn.set(flight=replace(flight, doubt=event.reason, doubted_at=turn.now.at), note=event.reason)
    else:
        turn.set(flight=None, note=event.reason)
        turn.write(flight.command, CommandState.REFUSED, event.reason)


def gate_lost(turn: Turn, event: m.GateLost) -> None:
    """The controller is away: nothing of it is known any more."""
    flight = turn.state.flight
    turn.observe(event)
    turn.set(
        gate=turn.state.gate.reported(GatePosition.UNKNOWN, turn.now.at),
        flight=None,
        note=_away(event.reason),
    )
    if flight is not None:
        text = "the controller was lost before the gate was seen to move"
        _give_up(turn, flight.command, text)


def gate_loss_explained(turn: Turn, event: m.GateLossExplained) -> None:
    """It is away for another reason than was noted."""
    if turn.state.note == _away(turn.state.gate_lost):
        turn.set(note=_away(event.reason))
    turn.observe(event)


def why_not_moved(turn: Turn) -> str:
    """What is known of an open that has not moved the gate."""
    flight = turn.state.flight
    if flight is not None and flight.doubt:
        return flight.doubt
    if flight is None or flight.acknowledged_at is None:
        return ""
    return "its controller acknowledged the command, but the gate did not move (locked?)"


def watch(turn: Turn) -> None:
    """Give up a command whose time has passed without movement."""
    for one in turn.state.superseded:
        if turn.now.at >= one.give_up_at:
            superseded_ended(turn, one.command.command_id, sent=True)
    flight = turn.state.flight
    if flight is None or turn.now.at < flight.give_up_at:
        return
    taken = flight.acknowledged_at is not None
    reason = "acknowledged, but the gate did not move (locked?)" if taken else "no answer from the controller"
    reason = flight.doubt or reason
    turn.set(flight=None, note=reason)
    _give_up(turn, flight.command, reason)


def deadlines(state: LaneState) -> tuple[float, ...]:
    """When `watch` has something to do."""
    superseded = tuple(one.give_up_at for one in state.superseded)
    return superseded if state.flight is None else (state.flight.give_up_at, *superseded)


def _away(reason: str) -> str:
    return f"the gate's controller is away: {reason}"


def _supersede(turn: Turn, flight: InFlight, reason: str) -> None:
    if flight.acknowledged_at is None and flight.doubted_at is None:
        one = Superseded(flight.command, reason, flight.deadline, flight.give_up_at)
        turn.set(superseded=(*turn.state.superseded, one))
    else:
        turn.write(flight.command, CommandState.UNKNOWN, reason)


def _give_up(turn: Turn, command: Command, reason: str) -> None:
    if command.action is GateAction.OPEN:
        turn.set(unanswered_open_at=turn.now.at)
    turn.write(command, CommandState.UNKNOWN, reason)
