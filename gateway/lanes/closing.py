"""Closing the gate behind a vehicle, when it is known to be safe and never otherwise. Part of the machine.

A close is never repeated while the gate moves (a repeated close stops some gates) and never more than a few times: then
a person is called.
"""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.lanes import flights
from gateway.lanes import messages as m
from gateway.lanes.board import Phase
from gateway.lanes.safety import points_that_forbid, why_not_close
from gateway.lanes.state import Closing, LaneRules, LaneState, Vend
from gateway.lanes.turn import Turn

_TELL_AFTER = 2.0
_DEVICE_CLOSES_WITHIN = 60.0
_AT_REST = frozenset({GatePosition.OPEN, GatePosition.STOPPED})


def begin(turn: Turn) -> None:
    """The way is clear: the gate is to be closed, by us or by its own controller, unless somebody keeps it open."""
    supervised = turn.rules.vend is Vend.SUPERVISED and not turn.state.locked_down
    if turn.state.kept_open or supervised:
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
    flights.send(turn, event.command, event.deadline)
    turn.set(closing_gate=Closing(since=turn.now.at, sent=True, tries=turn.rules.close_tries))


def seen(turn: Turn, position: GatePosition) -> None:
    """Follow the gate after a close: closed is the end; open again at rest means that something stopped it."""
    job = turn.state.closing_gate
    if job is None:
        return
    if position is GatePosition.CLOSED:
        turn.set(closing_gate=None, note="")
    elif position is GatePosition.CLOSING:
        turn.set(closing_gate=replace(job, seen_moving=True))
    elif job.sent and job.seen_moving and position in _AT_REST and not turn.rules.closes_itself:
        _again(turn, job, "the gate did not stay closed; its own safety may have reopened it")


def failed(turn: Turn, reason: str) -> None:
    """A close could not be given to the device."""
    job = turn.state.closing_gate
    if job is not None and job.sent:
        _again(turn, job, reason)


def watch(turn: Turn) -> None:
    """Close when it is safe, say what holds it, and call a person when it does not close."""
    job, now = turn.state.closing_gate, turn.now.at
    if job is None:
        return
    if job.sent:
        _watch_sent(turn, job)
        return
    if now < job.not_before or turn.state.flight is not None:
        return
    reason = why_not_close(turn.rules, turn.state, now)
    if not reason:
        turn.set(closing_gate=replace(job, since=now, sent=True, tries=job.tries + 1, seen_moving=False), note="")
        flights.send(turn, turn.command(GateAction.CLOSE), now + turn.rules.command_life)
    elif now >= max(job.since + _TELL_AFTER, job.not_before) and not job.told:
        turn.set(closing_gate=replace(job, told=True), note=f"closing waits: {reason}")
        turn.tell(EventKind.CLOSING_HELD, f"closing waits: {reason}", reason=reason)


def deadlines(rules: LaneRules, state: LaneState) -> tuple[float, ...]:
    """When `watch` has something to do."""
    job = state.closing_gate
    if job is None:
        return ()
    if job.sent:
        return (job.since + (_DEVICE_CLOSES_WITHIN if rules.closes_itself else rules.closing),)
    return (job.not_before, job.since + _TELL_AFTER, *_chatter_ends(rules, state))


def _chatter_ends(rules: LaneRules, state: LaneState) -> tuple[float, ...]:
    """Time alone makes nothing safe but this: an input that has been quiet for a while is believed again."""
    return tuple(point.chatters_until() for _, point in points_that_forbid(rules, state))


def _watch_sent(turn: Turn, job: Closing) -> None:
    if turn.rules.closes_itself:
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
    waiting = Closing(since=now, tries=job.tries, not_before=now + turn.rules.close_pause, told=job.told)
    turn.set(closing_gate=waiting, note=reason)
