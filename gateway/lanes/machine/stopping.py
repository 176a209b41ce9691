"""A person's stop: the gate stays where it was stopped, over whatever else wants it moved. Part of the machine.

It begins once the stop was taken: acknowledged, or seen to have worked. Until then, and while the gate is still seen to
close, what comes into its way has it opened again as ever; a stop that fails changes nothing. It outlasts a lost
controller, the end of a fire, the schedule and a restart. It ends when a person opens or closes the gate or gives the
lane an order, when a vehicle is let in, when a fire begins, and when the gate is seen closed.
"""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition
from gateway.domain.events import EventKind
from gateway.lanes.machine import commands_in_flight
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state import LaneState, StopAsked
from gateway.lanes.machine.transition import Turn
from gateway.lanes.snapshots import Phase

_SAME_FIRE_SECONDS = 10.0


def asked(turn: Turn, event: m.CommandRequested) -> None:
    """A person wants the gate stopped."""
    by = event.command.source.removeprefix("user:")
    commands_in_flight.send(turn, event.command, event.deadline)
    turn.set(stop_asked=StopAsked(event.command.command_id, by))


def taken(turn: Turn) -> None:
    """The stop that is under way was acknowledged, or is seen to have worked."""
    stop, state = turn.state.stop_asked, turn.state
    if stop is None:
        return
    turn.set(stop_asked=None, overtaken_open=None)
    at_rest_closed = state.gate.position is GatePosition.CLOSED and state.phase is not Phase.OPENING
    if at_rest_closed and not state.kept_open:
        return
    job = state.closing_gate
    still_moves = job is not None and (job.ours or job.reopening) and state.gate.position is not GatePosition.STOPPED
    turn.set(stopped_by=stop.by, stopped_at=turn.now.at, closing_gate=job if still_moves else None)
    if state.stopped_by != stop.by:
        turn.tell(EventKind.STOP_BEGAN, turn.state.stop_sentence, by=stop.by, fire=state.on_fire)


def remembered(turn: Turn, event: m.StopRemembered) -> None:
    """Somebody stopped the gate before the restart; if that was in a fire, a fire that goes on is the same."""
    turn.set(stopped_by=event.by, stopped_at=turn.now.at, closing_gate=None)
    if event.during_fire:
        turn.set(fire_over_at=float("inf"))


def failed(turn: Turn, command_id: str) -> None:
    """This stop did not reach the device."""
    stop = turn.state.stop_asked
    if stop is not None and stop.command_id == command_id:
        turn.set(stop_asked=None)


def ended(turn: Turn, why: str) -> None:
    """Somebody, or something that counts for more, wants the gate moved again."""
    by = turn.state.stopped_by
    turn.set(stop_asked=None, stopped_by="")
    if by:
        turn.tell(EventKind.STOP_ENDED, f"no longer stopped by {by}: {why}", by=by)


def fire_changed(turn: Turn) -> None:
    """A fire that begins counts for more than a stop from before it; a contact that blinks tells of no new fire."""
    if not turn.state.on_fire:
        turn.set(fire_over_at=turn.now.at)
    elif turn.now.at >= turn.state.fire_over_at + _SAME_FIRE_SECONDS:
        ended(turn, "the fire input is active")


def seen(turn: Turn, position: GatePosition, *, before: GatePosition) -> None:
    """Follow the gate; `before` is where it last was, as far as that was known."""
    state, stop = turn.state, turn.state.stop_asked
    if stop is not None and position is GatePosition.STOPPED and (state.flight is None or stop.given_up):
        taken(turn)
    elif stop is not None and stop.given_up and position is not GatePosition.UNKNOWN:
        turn.set(stop_asked=None)
    if not turn.state.stopped_by:
        return
    if position is GatePosition.STOPPED:
        turn.set(closing_gate=None)
    stood_closed = state.kept_open and before in {GatePosition.CLOSED, GatePosition.UNKNOWN}
    if position is GatePosition.CLOSED and not stood_closed:
        ended(turn, "the gate is closed")


def watch(turn: Turn) -> None:
    """Stops of which nothing more will be heard, and what a stop that failed must not have taken away."""
    state, stop = turn.state, turn.state.stop_asked
    if stop is not None and not stop.given_up and not commands_in_flight.is_under_way(state, stop.command_id):
        turn.set(stop_asked=replace(stop, given_up=True), overtaken_open=None)
        if state.gate.position is GatePosition.STOPPED:
            taken(turn)
        elif state.gate.position is not GatePosition.UNKNOWN:
            turn.set(stop_asked=None)
    if turn.state.stopped_by and turn.now.at >= _watched_until(turn.rules, turn.state):
        turn.set(closing_gate=None)
    _open_after_all(turn)


def deadlines(rules: LaneRules, state: LaneState) -> tuple[float, ...]:
    """When `watch` has something to do."""
    return (_watched_until(rules, state),) if state.stopped_by else ()


def _watched_until(rules: LaneRules, state: LaneState) -> float:
    """For so long a gate that took the stop may still go on closing, though it is not seen to."""
    if state.closing_gate is None or state.gate.position is GatePosition.CLOSING:
        return float("inf")
    return state.stopped_at + rules.closing


def _open_after_all(turn: Turn) -> None:
    """The stop took the place of an open that had not been sent, and was not sent either."""
    state, deadline = turn.state, turn.state.overtaken_open
    if deadline is None or state.stop_asked is not None or state.flight is not None:
        return
    turn.set(overtaken_open=None)
    if state.phase is Phase.OPENING and turn.now.at < deadline and not (state.gate_lost or state.stopped_by):
        commands_in_flight.open_again(turn, deadline)
