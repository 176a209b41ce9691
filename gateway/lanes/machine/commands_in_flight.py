"""Commands under way: sent, acknowledged, seen to move; or refused, or of unknown outcome. Part of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from drivers.contract import GatePosition
from gateway.domain.commands import Command, CommandState, GateAction
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.closing import Closing
from gateway.lanes.machine.state.commands import InFlight, Superseded
from gateway.lanes.machine.transition import Due, LaneView, Transition
from gateway.texts import Text, Words, has_key, text

_MOVED = {
    GateAction.OPEN: frozenset({GatePosition.OPENING, GatePosition.OPEN}),
    GateAction.CLOSE: frozenset({GatePosition.CLOSING, GatePosition.CLOSED}),
    GateAction.STOP: frozenset({GatePosition.STOPPED, GatePosition.OPEN, GatePosition.CLOSED}),
}
_MOVED_UNANSWERED = {**_MOVED, GateAction.STOP: frozenset({GatePosition.STOPPED})}
"""The same for a command that may not have arrived: a gate in its end position may have come there by itself."""

_SENT_WITHIN = 0.75
"""The share of the time for a movement within which its command must go out, so that its answer is known by the end."""


def send(lane: Transition, command: Command, deadline: float, *, instead_of: Closing | None = None) -> None:
    """Send a command now. The one under way is superseded: if it still waits for the line, it never goes out.

    `instead_of`: the closing whose place this open takes. The caller stops following it; it goes on if the open comes
    to nothing.
    """
    flight = lane.state.commands.flight
    opens_still = False
    if flight is not None:
        opens_still = flight.earlier_open or (flight.command.action is GateAction.OPEN and flight.is_reported)
        _supersede(lane, flight, command.action)
    patience = (
        lane.rules.lane.closing_seconds if command.action is GateAction.CLOSE else lane.rules.lane.opening_seconds
    )
    now = lane.now.at
    deadline = min(deadline, now + _SENT_WITHIN * patience)
    flight = InFlight(command, now, deadline, now + patience, instead_of=instead_of, earlier_open=opens_still)
    lane.put(lane.state.commands.sent(flight))
    lane.commands.append(m.SendCommand(command, deadline))
    lane.write(command, CommandState.SENT)


def open_again(lane: Transition, deadline: float, *, instead_of: Closing | None) -> None:
    """Send an open in place of one that was not sent, with the deadline of that one."""
    send(lane, lane.command(GateAction.OPEN), deadline, instead_of=instead_of)


def watch_close(lane: Transition, close: Closing | None) -> None:
    """Go on with a closing, since the open that replaced it was not sent or was given up. Do nothing for None.

    The closing is over if the gate is closed, or stands where a person stopped it.
    """
    position = lane.state.inputs.gate.position
    stands = position is GatePosition.STOPPED and lane.state.stop.by
    if close is not None and position is not GatePosition.CLOSED and not stands:
        close = close.watched_again(lane.now.at)
        lane.put(close.controller_lost() if lane.state.inputs.gate_lost else close)


def acknowledged(lane: Transition, event: m.CommandAcknowledged) -> None:
    """Note that the device has taken the command. Where nothing reports the gate's position, the command is done."""
    flight = lane.state.commands.flight
    if flight is not None and flight.command.command_id == event.command_id:
        lane.put(lane.state.commands.acknowledged(flight, event.at))
        lane.write(flight.command, CommandState.ACKNOWLEDGED)
        if not lane.rules.has_position:
            lane.put(lane.state.commands.ended())
            lane.write(flight.command, CommandState.DONE)
    else:
        superseded_ended(lane, event.command_id, sent=True)


def superseded_ended(lane: Transition, command_id: str, *, sent: bool) -> None:
    """Record the outcome of a superseded command, as its driver reports it."""
    for one in lane.state.commands.superseded:
        if one.command.command_id == command_id:
            lane.put(lane.state.commands.without(one))
            if not sent and one.command.action is GateAction.OPEN:
                _open_overtaken(lane, one)
            elif one.command.action is GateAction.CLOSE:
                _close_overtaken(lane, sent=sent)
            if sent:
                lane.write(one.command, CommandState.UNKNOWN, text(f"command.replaced_by.{one.by}"))
            else:
                lane.write(one.command, CommandState.REFUSED, text(f"command.replaced_unsent_by.{one.by}"))


def settle(lane: Transition, event: m.GateReported) -> None:
    """Record a command as done once the gate is seen where it was wanted, or on its way there.

    A command without an answer is done only if the gate came there after it was sent: a gate that already stood open
    may still be about to close. A close that opens were to undo is over once the gate is closed, or one of those opens
    has worked.
    """
    flight = lane.state.commands.flight
    if event.position is GatePosition.CLOSED:
        lane.put(lane.state.commands.undoing_nothing())
    if flight is None:
        return
    taken_at = flight.acknowledged_at if flight.acknowledged_at is not None else flight.doubted_at
    if taken_at is None or event.at <= taken_at:
        return
    answered = flight.acknowledged_at is not None
    came_there = answered or lane.state.inputs.gate.since > flight.sent_at
    if came_there and event.position in (_MOVED if answered else _MOVED_UNANSWERED)[flight.command.action]:
        commands = lane.state.commands.ended()
        lane.put(commands.undoing_nothing() if flight.command.action is GateAction.OPEN else commands)
        lane.write(flight.command, CommandState.DONE)


def failed(lane: Transition, event: m.CommandFailed) -> None:
    """Record a command that did not reach the device. If it may have, wait and see whether the gate moves."""
    flight = lane.state.commands.flight
    if flight is None:
        return
    if event.sent:
        lane.put(lane.state.commands.doubted(flight, event.reason, lane.now.at))
        lane.note(event.reason)
    else:
        lane.put(lane.state.commands.ended())
        lane.note(event.reason)
        lane.write(flight.command, CommandState.REFUSED, event.reason)


def gate_lost(lane: Transition, event: m.GateLost) -> None:
    """Give up the command under way, and take the gate's position as unknown: its controller is lost."""
    flight = lane.state.commands.flight
    lane.put(lane.state.commands.ended())
    if flight is not None:
        _give_up(lane, flight, text("command.controller_lost"))
    lane.observe(event)
    lane.put(lane.state.inputs.gate_reported(GatePosition.UNKNOWN, lane.now.at))
    lane.note(_away(event.reason))


def gate_loss_explained(lane: Transition, event: m.GateLossExplained) -> None:
    """Show the newest reason for a loss that was reported before."""
    if has_key(lane.state.note, "lane.gate_offline"):
        lane.note(_away(event.reason))
    lane.observe(event)


def why_not_moved(lane: Transition) -> Words:
    """Return why an open has not moved the gate, "" if nothing is known."""
    flight = lane.state.commands.flight
    if flight is not None and flight.doubt:
        return flight.doubt
    if flight is None or flight.acknowledged_at is None:
        return ""
    return text("gate.locked")


def due(lane: LaneView) -> Iterator[Due]:
    """Yield when commands without a movement are given up."""
    for one in lane.state.commands.superseded:
        yield one.give_up_at, partial(superseded_ended, command_id=one.command.command_id, sent=True)
    if lane.state.commands.flight is not None:
        yield lane.state.commands.flight.give_up_at, _timed_out


def _timed_out(lane: Transition) -> None:
    flight = lane.state.commands.flight
    if flight is None:
        return
    taken = flight.acknowledged_at is not None
    reason = flight.doubt or (text("gate.did_not_move") if taken else text("gate.no_answer"))
    lane.put(lane.state.commands.ended())
    if not lane.state.troubles.unmoved:  # which says it until it is over
        lane.note(reason)
    _give_up(lane, flight, reason)


def _away(reason: str) -> Text:
    return text("lane.gate_offline", why=reason)


def _supersede(lane: Transition, flight: InFlight, by: GateAction) -> None:
    if not flight.is_reported:
        lane.put(lane.state.commands.superseding(flight, by))
    else:
        lane.write(flight.command, CommandState.UNKNOWN, text(f"command.replaced_by.{by}"))


def _open_overtaken(lane: Transition, one: Superseded) -> None:
    """Remember an open that a stop or a close replaced before it was sent: it is sent after all if that one fails.

    If another open is under way, that one serves the purpose.
    """
    flight = lane.state.commands.flight
    if flight is not None and flight.command.action is GateAction.OPEN:
        return
    lane.put(lane.state.stop.overtook_open(one.deadline))
    if lane.state.closing is None:
        watch_close(lane, one.instead_of)


def _close_overtaken(lane: Transition, *, sent: bool) -> None:
    """Keep what is known of a close that another command replaced: it reached the controller, or was not sent."""
    job = lane.state.closing
    if not sent:
        lane.put(lane.state.commands.close_never_left(lane.now.at))
    elif job is not None and job.is_on_its_way:
        lane.put(job.close_reached())


def _give_up(lane: Transition, flight: InFlight, reason: Words) -> None:
    if flight.command.action is GateAction.OPEN:
        lane.put(replace(lane.state.commands, unanswered_open_at=lane.now.at))
    lane.write(flight.command, CommandState.UNKNOWN, reason)
    watch_close(lane, flight.instead_of)
