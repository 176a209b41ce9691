"""Opening the gate again when something comes into its way while it closes on our word. Part of the machine.

The controller's own safety should do so by itself; it is not relied on. For a barrier open is the safe answer, in a
lock-down too; where a gate has been opened again it is closed once all is clear, after pauses that grow.
"""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.lanes.machine import commands_in_flight
from gateway.lanes.machine.rules import LaneRules, Vend
from gateway.lanes.machine.safety import obstructions, what_came_into_the_way
from gateway.lanes.machine.state import Closing, LaneState
from gateway.lanes.machine.transition import Turn

_LONGEST_PAUSE = 60.0
_OPEN_PAUSE = 1.0
_SOON = 0.25
_ON_ITS_WAY = frozenset({GatePosition.OPEN, GatePosition.OPENING})


def watch(turn: Turn, job: Closing) -> bool:
    """Open again what closes onto something; whether that was necessary now.

    Not before the close is known, or must be feared, to have reached the controller: until then it is the driver's last
    question that stops it, and an open beside it would close a step-by-step gate.
    """
    state = turn.state
    if not job.ours or job.lost or state.gate_lost or state.gate.position is GatePosition.CLOSED:
        return False
    if not _has_taken(state) or _is_seen_stopped(state):
        return False
    reason = what_came_into_the_way(turn.rules, state, turn.now.at)
    if not reason:
        return False
    pause = min(_LONGEST_PAUSE, turn.rules.close_pause * 2.0**job.reopened)
    again = Closing(
        since=turn.now.at,
        tries=max(0, min(job.tries, turn.rules.close_tries) - 1),
        not_before=turn.now.at + pause,
        reopened=min(job.reopened + 1, 10),
        reopens_for=reason,
        reopens_since=turn.now.stamp.micros,
    )
    turn.set(closing_gate=again, note=f"asked to open again while closing: {reason}")
    _open(turn, again)
    return True


def acknowledged(turn: Turn) -> None:
    """Record that the gate is opened again: its controller took the open, or it is seen to open."""
    job = turn.state.closing_gate
    if job is None or not job.reopens_for:
        return
    turn.set(closing_gate=replace(job, reopens_for=""), note=f"opened again while closing: {job.reopens_for}")
    turn.tell(
        EventKind.GATE_REOPENED,
        f"the gate was closing and is opened again: {job.reopens_for}",
        filmed_from=job.reopens_since,
        reason=job.reopens_for,
        times=job.reopened,
    )


def is_under_way(state: LaneState) -> bool:
    """Whether an open that was asked for because of that may still move the gate, even one that is closed by now."""
    job, flight = state.closing_gate, state.flight
    is_open = flight is not None and flight.command.action is GateAction.OPEN
    return is_open and job is not None and job.reopening > 0


def not_sent(turn: Turn) -> None:
    """Ask again soon when the first open did not go out: a line that was reset is back in a moment."""
    job = turn.state.closing_gate
    if job is not None and job.reopening == 1:
        turn.set(closing_gate=replace(job, reopen_at=turn.now.at + _SOON))


def follow(turn: Turn, job: Closing) -> bool:
    """See that it opens, and ask again where that is not seen; whether there is still something to wait for.

    An open is not asked for again once the way is free: the close, should it still go on, is then only watched further.
    """
    state = turn.state
    if not job.reopening:
        return False
    if state.gate.position in _ON_ITS_WAY:
        acknowledged(turn)
        done = replace(job, reopening=0, reopens_for="")
        turn.set(closing_gate=done if _closes_later(turn) else None)
        return False
    if _waits_for_other(state) or turn.now.at < job.reopen_at:
        return True
    is_closed = state.gate.position is GatePosition.CLOSED
    if is_closed or not what_came_into_the_way(turn.rules, state, turn.now.at):
        goes_on = not is_closed and (state.is_stopped or _closes_later(turn))
        _tell_unacknowledged(turn, job)
        turn.set(closing_gate=replace(job, reopening=0, ours=True, reopens_for="") if goes_on else None)
        return False
    if job.reopening >= turn.rules.hold_tries:
        turn.set(closing_gate=replace(job, reopening=0, reopens_for=""))
        text = f"the gate could not be opened again after {job.reopening} commands, though something came into its way"
        turn.tell(EventKind.OPENING_TIMED_OUT, text, filmed_from=turn.now.stamp.micros)
        return False
    _open(turn, job)
    return True


def put_off(turn: Turn) -> None:
    """A person stops the gate: that is given its time before it is asked to open again."""
    job = turn.state.closing_gate
    if job is not None and job.reopening:
        turn.set(closing_gate=replace(job, reopen_at=turn.now.at + _OPEN_PAUSE))


def deadlines(rules: LaneRules, state: LaneState, job: Closing) -> tuple[float, ...]:
    """When `watch` or `follow` has something to do."""
    if job.reopening:
        return (job.reopen_at,)
    if not job.ours:
        return ()
    return tuple(point.at + rules.stale for _, point in obstructions(rules, state))


def _tell_unacknowledged(turn: Turn, job: Closing) -> None:
    if job.reopens_for:
        text = f"the gate was closing and was asked to open again, which nobody acknowledged: {job.reopens_for}"
        turn.tell(EventKind.OPENING_TIMED_OUT, text, filmed_from=job.reopens_since)


def _open(turn: Turn, job: Closing) -> None:
    now = turn.now.at
    turn.set(closing_gate=replace(job, reopening=job.reopening + 1, reopen_at=now + _OPEN_PAUSE))
    commands_in_flight.send(turn, turn.command(GateAction.OPEN), now + turn.rules.command_life)


def _is_seen_stopped(state: LaneState) -> bool:
    """Whether a person's stop has worked. An open gate may still begin to close while the stop is under way."""
    if state.gate.position is GatePosition.OPEN:
        return bool(state.stopped_by)
    return state.is_stopped and state.gate.position in {GatePosition.OPENING, GatePosition.STOPPED}


def _waits_for_other(state: LaneState) -> bool:
    """Whether nothing can be asked now. A stop under way holds up no open, unless it is seen to have worked."""
    if state.flight is None or state.flight.command.action is not GateAction.STOP:
        return state.flight is not None or bool(state.gate_lost)
    return state.gate.position is GatePosition.STOPPED


def _has_taken(state: LaneState) -> bool:
    flight = state.flight
    if state.gate.position is GatePosition.CLOSING:
        return True
    if flight is None or flight.command.action is GateAction.STOP:
        return not any(one.command.action is GateAction.CLOSE for one in state.superseded)
    return flight.command.action is GateAction.CLOSE and (flight.acknowledged_at is not None or bool(flight.doubt))


def _closes_later(turn: Turn) -> bool:
    return not turn.state.stopped_by and not turn.rules.closes_itself and turn.rules.vend is not Vend.SUPERVISED
