"""Closing the gate behind a vehicle, when it is known to be safe and never otherwise. Part of the machine.

A close is never repeated while the gate moves (a repeated close stops some gates) and never more than a few times: then
a person is called. A gate that stands open at the start is closed too, unless somebody keeps it open; one that stands
half-way is not: a person, or its own safety, may have stopped it.
"""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.lanes.machine import commands_in_flight, reopening, stopping
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules, Vend
from gateway.lanes.machine.safety import clears_at, obstructions, points_that_forbid, what_forbids, why_not_close
from gateway.lanes.machine.state import Closing, LaneState
from gateway.lanes.machine.transition import Turn
from gateway.lanes.snapshots import Phase

_TELL_AFTER = 2.0
_DEVICE_CLOSES_WITHIN = 60.0
_AT_REST = frozenset({GatePosition.OPEN, GatePosition.STOPPED})
_WAITS = "closing waits: "


def begin(turn: Turn) -> None:
    """The way is clear: the gate is to be closed, by us or by its own controller, unless somebody keeps it open."""
    supervised = turn.rules.vend is Vend.SUPERVISED and not turn.state.locked_down
    if turn.state.kept_open or turn.state.stopped_by or supervised:
        return
    if turn.state.gate.position is not GatePosition.CLOSED:
        turn.set(closing_gate=Closing(since=turn.now.at, sent=turn.rules.closes_itself))


def operator_closes(turn: Turn, event: m.CommandRequested) -> None:
    """A person wants the gate closed: only when that is known to be safe."""
    reason = why_not_close(turn.rules, turn.state, turn.now.at)
    if reason:
        turn.refuse(event.command, reason)
        return
    if turn.state.phase in {Phase.OPENING, Phase.OPEN, Phase.PASSING}:
        turn.set(owed=())
        turn.rest()
    commands_in_flight.send(turn, event.command, event.deadline)
    closing = Closing(since=turn.now.at, sent=True, ours=True, tries=turn.rules.close_tries)
    turn.set(closing_gate=closing)
    stopping.ended(turn, f"{event.command.source.removeprefix('user:')} closes it")


def seen(turn: Turn, position: GatePosition) -> None:
    """Follow the gate after a close: closed is the end; open again at rest means that something stopped it."""
    _judge_start(turn, position)
    job = turn.state.closing_gate
    if job is None:
        return
    if job.lost and position is not GatePosition.UNKNOWN:
        job = replace(job, lost=False)
        turn.set(closing_gate=job)
    if position is GatePosition.CLOSED and reopening.is_under_way(turn.state):
        return
    if position is GatePosition.CLOSED:
        turn.set(closing_gate=None, note="")
    elif position is GatePosition.CLOSING:
        turn.set(closing_gate=replace(job, seen_moving=True))
    elif turn.state.is_stopped:
        return
    elif job.sent and job.seen_moving and position in _AT_REST and not turn.rules.closes_itself:
        _again(turn, job, "the gate did not stay closed; its own safety may have reopened it")


def failed(turn: Turn, reason: str) -> None:
    """A close could not be given to the device."""
    job = turn.state.closing_gate
    if job is None or not job.sent:
        return
    if job.tries < turn.rules.close_tries and why_not_close(turn.rules, turn.state, turn.now.at):
        # What came up before the first byte is no failure of the gate's: it waits, and is told as ever.
        turn.set(closing_gate=replace(job, since=turn.now.at, sent=False, ours=False, tries=job.tries - 1))
    else:
        _again(turn, job, reason)


def gate_lost(turn: Turn) -> None:
    """Where the gate is must be read before anything of a close under way is judged."""
    job = turn.state.closing_gate
    if job is not None:
        turn.set(closing_gate=replace(job, lost=True))


def overtaken(turn: Turn) -> None:
    """A close never went out: a person's stop took its place. It is still to come, if that stop fails."""
    job, flight = turn.state.closing_gate, turn.state.flight
    if job is not None and job.sent and (flight is None or flight.command.action is not GateAction.CLOSE):
        waiting = replace(job, since=turn.now.at, sent=False, ours=False, seen_moving=False)
        turn.set(closing_gate=replace(waiting, tries=max(0, job.tries - 1)))


def watch(turn: Turn) -> None:
    """Close when it is safe, say what holds it, and call a person when it does not close."""
    job = turn.state.closing_gate
    if job is None:
        return
    if reopening.watch(turn, job):
        return
    if turn.state.is_stopped:
        reopening.follow(turn, job)
    elif job.sent:
        _watch_sent(turn, job)
    else:
        _watch_waiting(turn, job)


def deadlines(rules: LaneRules, state: LaneState) -> tuple[float, ...]:
    """When `watch` has something to do."""
    job = state.closing_gate
    if job is None:
        return ()
    of_reopening = reopening.deadlines(rules, state, job)
    if job.sent:
        return (job.since + (_DEVICE_CLOSES_WITHIN if _is_left_to_device(rules, job) else rules.closing), *of_reopening)
    remembered = tuple(grant.until for grant in state.granted_before)
    return (job.not_before, job.since + _TELL_AFTER, *of_reopening, *remembered, *_safe_from(rules, state))


def _safe_from(rules: LaneRules, state: LaneState) -> tuple[float, ...]:
    """What time alone makes safe: inputs that have been quiet for a while, and points that have been off for long."""
    quiet = (point.chatters_until() for _, point in points_that_forbid(rules, state))
    return (*quiet, *(clears_at(rules, state, point) for _, point in obstructions(rules, state)))


def _is_left_to_device(rules: LaneRules, job: Closing) -> bool:
    return rules.closes_itself and not job.ours


def _judge_start(turn: Turn, position: GatePosition) -> None:
    """Once, when the gate is first seen at rest: one that was left open is closed."""
    if turn.state.start_judged or position not in {*_AT_REST, GatePosition.CLOSED}:
        return
    turn.set(start_judged=True)
    idle = turn.state.phase not in {Phase.OPENING, Phase.OPEN, Phase.PASSING} and turn.state.flight is None
    if position is GatePosition.OPEN and idle and turn.state.closing_gate is None and not turn.rules.closes_itself:
        begin(turn)


def _who_may_come(turn: Turn) -> str:
    """A vehicle that was let in before the restart may still stand before the gate, which is open for it."""
    grant = turn.state.let_in_before(turn.now.at)
    if grant is None or not any(turn.state.loop(side).is_on() for side in turn.sides()):
        return ""
    return f"a vehicle was let in before the restart ({grant.credential}) and stands on the arming loop"


def _wait(turn: Turn, job: Closing, reason: str) -> None:
    """Say what holds it, once as an event, and as long as it does in the note."""
    now, held = turn.now.at, what_forbids(turn.rules, turn.state, turn.now.at)
    note = f"{_WAITS}{reason}"
    if held and not job.told and now >= max(job.since + _TELL_AFTER, job.not_before):
        turn.set(closing_gate=replace(job, told=True), note=note)
        turn.tell(EventKind.CLOSING_HELD, note, reason=held)
    elif turn.state.note.startswith(_WAITS) and turn.state.note != note:
        turn.set(note=note)


def _watch_waiting(turn: Turn, waiting: Closing) -> None:
    now = turn.now.at
    if reopening.follow(turn, waiting) or turn.state.closing_gate is None:
        return
    job = turn.state.closing_gate
    if now < job.not_before or turn.state.flight is not None:
        return
    reason = why_not_close(turn.rules, turn.state, now) or _who_may_come(turn)
    if reason:
        _wait(turn, job, reason)
        return
    again = replace(job, since=now, sent=True, ours=True, tries=job.tries + 1, seen_moving=False)
    turn.set(closing_gate=again, note="")
    commands_in_flight.send(turn, turn.command(GateAction.CLOSE), now + turn.rules.command_life)


def _watch_sent(turn: Turn, job: Closing) -> None:
    if _is_left_to_device(turn.rules, job):
        if turn.now.at >= job.since + _DEVICE_CLOSES_WITHIN:
            turn.set(closing_gate=None, note="the gate has not closed by itself")
    elif turn.now.at >= job.since + turn.rules.closing:
        _again(turn, job, f"not seen closed within {turn.rules.closing:g} s")


def _again(turn: Turn, job: Closing, reason: str) -> None:
    if job.tries >= turn.rules.close_tries:
        turn.set(closing_gate=None, note=f"the gate did not close: {reason}")
        turn.tell(EventKind.CLOSING_TIMED_OUT, f"the gate did not close: {reason}", tries=job.tries)
        return
    now = turn.now.at
    waiting = Closing(
        since=now,
        tries=job.tries,
        not_before=now + turn.rules.close_pause,
        told=job.told,
        ours=job.ours and turn.state.gate.position is GatePosition.STOPPED,
        reopened=job.reopened,
    )
    turn.set(closing_gate=waiting, note=reason)
