"""Reopening of a gate that the gateway closes, when something comes into its way or it must be kept open.

Part of the machine. The controller's own safety should reopen the gate too, but is not relied on. For a barrier, open
is the safe position, in a lock-down too. A gate that was opened again is closed once all is clear, after pauses that
grow.
"""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.lanes.machine import commands_in_flight
from gateway.lanes.machine.rules import CLOSE_TRIES, OPEN_TRIES, PAUSE_SECONDS, LaneRules
from gateway.lanes.machine.safety import obstructions, what_came_into_the_way
from gateway.lanes.machine.state.closing import Closing
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.transition import Transition
from gateway.texts import Words, text

_LONGEST_PAUSE = 60.0
_OPEN_PAUSE = 1.0
_SOON = 0.25


def watch(lane: Transition, job: Closing) -> bool:
    """Open a gate again that closes onto something; return whether an open was sent now.

    No open is sent before the close has, or may have, reached the controller. Until then the driver's check right
    before the first byte stops the close, and an additional open would close a step-by-step gate.
    """
    state = lane.state
    if not job.ours or job.lost or state.inputs.gate_lost or state.inputs.gate.position is GatePosition.CLOSED:
        return False
    if not has_reached_controller(state, job) or _is_seen_stopped(state):
        return False
    reason = _why_open(lane)
    if not reason:
        return False
    pause = min(_LONGEST_PAUSE, PAUSE_SECONDS * 2.0**job.reopened)
    lane.note(text("gate.asked_to_open_again", why=reason))
    _open(lane, job.opened_again(lane.now, reason, pause=pause, most_tries=CLOSE_TRIES))
    return True


def acknowledged(lane: Transition) -> None:
    """Record that the gate is opened again: its controller acknowledged the open, or it is seen to open."""
    job = lane.state.closing
    if job is None or not job.reopens_for:
        return
    lane.put(replace(job, reopens_for=""))
    lane.note(text("gate.opened_again", why=job.reopens_for))
    began = "closing" if job.seen_moving else "told_to_close"
    lane.tell(
        EventKind.GATE_REOPENED,
        text(f"event.reopened.{began}", why=job.reopens_for),
        filmed_from=job.reopens_since,
        reason=str(job.reopens_for),
        times=job.reopened,
    )


def has_reached_controller(state: LaneState, job: Closing) -> bool:
    """Return whether a close of this closing has, or may have, reached the controller. A later one may still wait."""
    flight = state.commands.flight
    if job.earlier or job.reopening or state.inputs.gate.position is GatePosition.CLOSING:
        return True
    if flight is None or flight.command.action is GateAction.STOP:
        return not any(one.command.action is GateAction.CLOSE for one in state.commands.superseded)
    return flight.command.action is GateAction.CLOSE and (flight.acknowledged_at is not None or bool(flight.doubt))


def closing_to_replace(state: LaneState) -> Closing | None:
    """Return the closing whose place an open would take if sent now; None for none.

    Its close may still move the gate, though whether it has gone out may not be known yet; or else it waits. An open
    that replaces another takes the place of the same closing.
    """
    job, flight = state.closing, state.commands.flight
    replaced = None if flight is None else flight.instead_of
    if job is None or (replaced is not None and replaced.is_on_its_way and not job.is_on_its_way):
        return replaced
    return job


def is_under_way(state: LaneState) -> bool:
    """Return whether an open that undoes a close may still move the gate, even one that is closed by now."""
    job, flight = state.closing, state.commands.flight
    is_open = flight is not None and flight.command.action is GateAction.OPEN
    return is_open and job is not None and job.reopening > 0


def not_sent(lane: Transition) -> None:
    """Schedule the next open after one that was not sent; soon after the first, as a reset line is soon back.

    As long as the close may still move the gate, it is no try: otherwise all tries could fail before the line is back.
    """
    job = lane.state.closing
    if job is not None and job.reopening:
        may_move = lane.now.at < job.since + lane.rules.lane.closing_seconds
        lane.put(job.open_not_sent(soon=lane.now.at + _SOON, is_try=not may_move))


def follow(lane: Transition, job: Closing) -> bool:
    """Repeat the open until it is known to have worked. Return whether the reopening goes on.

    Once the way is free, or the gate was seen closed, no other open is sent. A close that may still go on is only
    watched; so is a closed gate until the outcome of the last open is known.
    """
    state = lane.state
    if not job.reopening:
        return False
    if _is_seen_open(state, job) and not (job.reopen_unsent or is_under_way(state)):
        acknowledged(lane)
        _end(lane, job)
        return False
    is_closed = job.seen_closed or state.inputs.gate.position is GatePosition.CLOSED
    if _waits_for_other(state) or lane.now.at < job.reopen_at or (is_closed and is_under_way(state)):
        return True
    reason = _why_open(lane)
    if is_closed or not reason:
        goes_on = not is_closed and (state.stop.is_in_force or _closes_later(lane))
        _tell_unacknowledged(lane, job)
        if goes_on:
            lane.put(job.reopening_over(goes_on=True))
        else:
            lane.drop_closing()
        return False
    if job.opens_tried >= OPEN_TRIES:
        _end(lane, job)
        said = text("event.not_reopened", count=job.reopening, why=reason)
        lane.tell(EventKind.OPENING_TIMED_OUT, said, filmed_from=lane.now.stamp.micros)
        return False
    _open(lane, job)
    return True


def _end(lane: Transition, job: Closing) -> None:
    """End the reopening; where the gateway closes the gate, it closes it later."""
    if _closes_later(lane):
        lane.put(job.reopening_over())
    else:
        lane.drop_closing()


def may_keep_open(lane: Transition) -> bool:
    """Return whether a gate may be opened to keep it open.

    A fire opens a gate of unknown position too. An order does not, nor does it open a gate while its key switch is on.
    Neither opens a gate that a person stopped.
    """
    state = lane.state
    if state.stop.is_in_force:
        return False
    if state.inputs.on_fire:
        return True
    if state.inputs.gate.fresh(lane.now.at, lane.rules.policy.stale_seconds) is GatePosition.UNKNOWN:
        return False
    forbidding = (one for one in lane.rules.inputs if one.spec.forbids_open)
    return all(state.inputs.reading(one.role, one.index).is_off() for one in forbidding)


def gate_regained(lane: Transition) -> None:
    """Delay the next open until the position is read: a gate that has closed meanwhile must not open for nobody."""
    job = lane.state.closing
    if job is not None and job.reopening:
        lane.put(replace(job, reopen_at=lane.now.at + _SOON))


def put_off(lane: Transition) -> None:
    """Delay the next open, so that a person's stop can take effect first."""
    job = lane.state.closing
    if job is not None and job.reopening:
        lane.put(replace(job, reopen_at=lane.now.at + _OPEN_PAUSE))


def stop_failed(lane: Transition) -> None:
    """Send the next open at once: the stop for which it was delayed was not sent."""
    job = lane.state.closing
    if job is not None and job.reopening:
        lane.put(replace(job, reopen_at=min(job.reopen_at, lane.now.at)))


def changes_at(rules: LaneRules, state: LaneState, job: Closing) -> tuple[float, ...]:
    """Return when time alone changes what `watch` and `follow` do."""
    if job.reopening:
        return (job.reopen_at,)
    if not job.ours:
        return ()
    return tuple(point.at + rules.policy.stale_seconds for _, point in obstructions(rules, state))


def _why_open(lane: Transition) -> Words:
    """Return why a gate that may be closing on a command must open; "" when it need not."""
    in_the_way = what_came_into_the_way(lane.rules, lane.state, lane.now.at)
    return in_the_way or (lane.state.reason_kept_open if may_keep_open(lane) else "")


def _tell_unacknowledged(lane: Transition, job: Closing) -> None:
    if job.reopens_for:
        said = text("event.reopening_unanswered", why=job.reopens_for)
        lane.tell(EventKind.OPENING_TIMED_OUT, said, filmed_from=job.reopens_since)


def _open(lane: Transition, job: Closing) -> None:
    now = lane.now.at
    lane.put(replace(job, reopening=job.reopening + 1, reopen_at=now + _OPEN_PAUSE, reopen_unsent=False))
    commands_in_flight.send(lane, lane.command(GateAction.OPEN), now + lane.rules.policy.command_seconds)


def _is_seen_stopped(state: LaneState) -> bool:
    """Return whether a stop is seen to have worked. An open gate may still begin to close until it is acknowledged."""
    if state.inputs.gate.position is GatePosition.OPEN:
        return bool(state.stop.by)
    return state.stop.is_in_force and state.inputs.gate.position in {GatePosition.OPENING, GatePosition.STOPPED}


def _is_seen_open(state: LaneState, job: Closing) -> bool:
    """Return whether the gate opens, or stays open by an open that its controller acknowledged.

    A gate that merely stands open may still be about to close: some warn for seconds before they move.
    """
    position = state.inputs.gate.position
    return position is GatePosition.OPENING or (position is GatePosition.OPEN and not job.reopens_for)


def _waits_for_other(state: LaneState) -> bool:
    """Return whether the next open must wait for a command under way, or for a lost controller.

    A stop under way delays it only once the gate is seen stopped. A command without an answer does not delay it.
    """
    flight = state.commands.flight
    if flight is not None and flight.command.action is GateAction.STOP:
        return state.inputs.gate.position is GatePosition.STOPPED
    return (flight is not None and not flight.doubt) or bool(state.inputs.gate_lost)


def _closes_later(lane: Transition) -> bool:
    return not lane.state.stop.by and not lane.rules.closes_itself and lane.rules.lane.vend != "supervised"
