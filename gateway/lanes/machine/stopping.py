"""A person's stop: the gate stays where it was stopped, whatever else would move it. Part of the machine.

A stop takes effect once it was acknowledged, or is seen to have worked. Until then, and while the gate is still seen
closing, the gate is opened again as usual if something comes into its way. A stop that fails changes nothing. A stop in
force survives a lost controller, the end of a fire, the schedule and a restart. It ends when a person opens or closes
the gate or gives the lane an order, when a vehicle is let in, when a fire begins, and when the gate is seen closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from drivers.contract import GatePosition
from gateway.domain.commands import Command, actor
from gateway.domain.events import EventKind
from gateway.lanes.machine import commands_in_flight, reopening
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.transition import AT_EACH_STEP, Due, LaneView, Transition
from gateway.lanes.snapshots import Phase
from gateway.texts import Text, Words, text

_SAME_FIRE_SECONDS = 10.0


def asked(lane: Transition, event: m.CommandRequested) -> None:
    """Send a person's stop."""
    by = event.command.source.removeprefix("user:")
    commands_in_flight.send(lane, event.command, event.deadline)
    lane.put(lane.state.stop.asked_for(event.command.command_id, by))


def acknowledged(lane: Transition) -> None:
    """Put the stop under way into force: it was acknowledged, or is seen to have worked."""
    stop, state = lane.state.stop.asked, lane.state
    if stop is None:
        return
    lane.put(state.stop.acknowledged())
    at_rest_closed = state.inputs.gate.position is GatePosition.CLOSED and state.visits.phase is not Phase.OPENING
    if at_rest_closed and not state.reason_kept_open:
        return
    job = state.closing
    still_moves = (
        job is not None and (job.ours or job.reopening) and state.inputs.gate.position is not GatePosition.STOPPED
    )
    lane.put(lane.state.stop.took_effect(stop.by, lane.now.at))
    if not still_moves:
        lane.drop_closing()
    if state.stop.by != stop.by:
        lane.tell(EventKind.STOP_BEGAN, lane.state.stop_words, by=stop.by, fire=state.inputs.on_fire)


def remembered(lane: Transition, event: m.StopRemembered) -> None:
    """Restore a stop from before the restart. If it was given during a fire, the same fire does not end it."""
    lane.put(lane.state.stop.took_effect(event.by, lane.now.at, during_old_fire=event.during_fire))
    lane.drop_closing()


def failed(lane: Transition, command_id: str) -> None:
    """Forget a stop that did not reach the device, and keep one that this command was to end."""
    lane.put(lane.state.stop.without(command_id))
    lifted = lane.state.stop.lifted
    if lifted is not None and lifted.command_id == command_id:
        lane.put(lane.state.stop.holding_again())


def ended(lane: Transition, why: Words) -> None:
    """End a stop: a person's order, or something of higher priority, moves the gate again."""
    stop = lane.state.stop
    by = stop.lifted.by if stop.lifted is not None else stop.by
    lane.put(stop.ended())
    if by:
        lane.tell(EventKind.STOP_ENDED, _ended_sentence(by, why), by=by)


def lifted(lane: Transition, command: Command, why: Words = "") -> None:
    """End a stop by this command, unless it turns out that the command was not sent.

    `why` is for people; "" for a person's command, which speaks for itself.
    """
    moves = text(f"stop.lifted_by.{command.action}", who=actor(command.source))
    lane.put(lane.state.stop.lifted_by(command.command_id, why or moves))


def fire_changed(lane: Transition) -> None:
    """End a stop when a new fire begins. A fire soon after the last one is the same fire with a bouncing contact."""
    if not lane.state.inputs.on_fire:
        lane.put(lane.state.stop.fire_over(lane.now.at))
    elif lane.now.at >= lane.state.stop.fire_over_at + _SAME_FIRE_SECONDS:
        ended(lane, text("lane.fire"))


def follow_gate(lane: Transition, position: GatePosition, *, before: GatePosition) -> None:
    """Follow the gate's position; `before` is its last known one."""
    state, stop = lane.state, lane.state.stop.asked
    if stop is not None and position is GatePosition.STOPPED and (state.commands.flight is None or stop.given_up):
        acknowledged(lane)
    elif stop is not None and stop.given_up and position is not GatePosition.UNKNOWN:
        lane.put(lane.state.stop.dropped())
    if not lane.state.stop.by:
        return
    if position is GatePosition.STOPPED:
        lane.drop_closing()
    stood_closed = state.reason_kept_open and before in {GatePosition.CLOSED, GatePosition.UNKNOWN}
    if position is GatePosition.CLOSED and not stood_closed:
        ended(lane, text("event.gate_closed"))


def due(lane: LaneView) -> Iterator[Due]:
    """Yield what follows from the outcome of commands, and when a gate whose stop is in force has come to rest."""
    yield AT_EACH_STEP, _give_up_unanswered
    if lane.state.stop.by:
        yield _watched_until(lane.rules, lane.state), Transition.drop_closing
    yield AT_EACH_STEP, _lift_for_good
    yield AT_EACH_STEP, _open_after_all


def _give_up_unanswered(lane: Transition) -> None:
    """Give up a stop without an answer; the gate's position may show that it worked."""
    state, stop = lane.state, lane.state.stop.asked
    if stop is None or stop.given_up or state.commands.under_way(stop.command_id) is not None:
        return
    lane.put(replace(state.stop, asked=replace(stop, given_up=True), overtaken_open=None))
    if state.inputs.gate.position is GatePosition.STOPPED:
        acknowledged(lane)
    elif state.inputs.gate.position is not GatePosition.UNKNOWN:
        lane.put(lane.state.stop.dropped())


def _lift_for_good(lane: Transition) -> None:
    """Tell that a stop is over once the command that ended it has been sent."""
    one = lane.state.stop.lifted
    if one is not None and not lane.state.commands.is_unreported(one.command_id):
        lane.put(replace(lane.state.stop, lifted=None))
        lane.tell(EventKind.STOP_ENDED, _ended_sentence(one.by, one.why), by=one.by)


def _ended_sentence(by: str, why: Words) -> Text:
    return text("event.stop_ended", who=by, why=why)


def _watched_until(rules: LaneRules, state: LaneState) -> float:
    """Return until when a gate whose stop is in force may still be closing unseen."""
    if state.closing is None or state.inputs.gate.position is GatePosition.CLOSING:
        return float("inf")
    return state.stop.since + rules.lane.closing_seconds


def _open_after_all(lane: Transition) -> None:
    """Send the open that a stop replaced before it was sent, if that stop failed too."""
    state, deadline = lane.state, lane.state.stop.overtaken_open
    if deadline is None or state.stop.asked is not None or state.commands.flight is not None:
        return
    lane.put(replace(state.stop, overtaken_open=None))
    if state.visits.phase is Phase.OPENING and lane.now.at < deadline and not (state.inputs.gate_lost or state.stop.by):
        close = reopening.closing_to_replace(state)
        lane.drop_closing()
        commands_in_flight.open_again(lane, deadline, instead_of=close)
