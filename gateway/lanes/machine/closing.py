"""Closing the gate behind a vehicle, when it is known to be safe and never otherwise. Part of the machine.

A close is never repeated while the gate moves, because that stops some gates. It is repeated a few times only; then a
person is alerted. A gate that is open at the start is closed too, unless somebody keeps it open. A gate that stands
half-way is not: a person, or its own safety, may have stopped it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from drivers.contract import GatePosition
from gateway.domain.commands import LANE, Command, GateAction
from gateway.domain.events import EventKind
from gateway.lanes.machine import commands_in_flight, reopening, stopping
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import CLOSE_TRIES, PAUSE_SECONDS, LaneRules
from gateway.lanes.machine.safety import clears_at, obstructions, points_that_forbid, what_forbids, why_not_close
from gateway.lanes.machine.state.closing import Closing
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.transition import AT_EACH_STEP, Due, LaneView, Transition, look_again
from gateway.lanes.snapshots import Phase
from gateway.texts import Words, has_key, text

_REPORT_AFTER = 2.0
_DEVICE_CLOSES_WITHIN = 60.0
_RIGHT_OF_WAY = frozenset({Phase.OPENING, Phase.OPEN, Phase.PASSING})
_BEFORE_THE_GATE = frozenset({Phase.OPENING, Phase.OPEN})
_CLOSES = frozenset({GatePosition.CLOSING, GatePosition.CLOSED})
_AT_REST = frozenset({GatePosition.OPEN, GatePosition.STOPPED})


def begin(lane: Transition) -> None:
    """Begin to close the gate, by a command or by its own controller, unless somebody keeps it open.

    If an earlier close may still move the gate, nothing begins: that close is watched further. A gate without a
    position is left to its controller, since nothing shows what it does.
    """
    job = lane.state.closing
    if job is not None and job.is_on_its_way:
        return
    supervised = lane.rules.lane.vend == "supervised" and not lane.state.locked_down
    if lane.state.reason_kept_open or lane.state.stop.by or supervised or not lane.rules.has_position:
        return
    if lane.state.inputs.gate.position is not GatePosition.CLOSED:
        lane.put(Closing.wanted(lane.now.at, by_device=lane.rules.closes_itself))


def drop_unsent(lane: Transition) -> None:
    """Drop a close that has not been sent. One on its way, or being undone, is watched further."""
    job = lane.state.closing
    if job is not None and not job.is_on_its_way:
        lane.drop_closing()


def operator_closes(lane: Transition, event: m.CommandRequested) -> None:
    """Close the gate for a person, or refuse when that is not known to be safe.

    The driver may still refuse the close, or the controller take it and not obey. So the vehicle keeps its right of way
    until the gate is seen to close.
    """
    reason = why_not_close(lane.rules, lane.state, lane.now.at)
    if reason:
        lane.refuse(event.command, reason)
        return
    job = lane.state.closing
    earlier = job is not None and job.is_on_its_way and reopening.has_reached_controller(lane.state, job)
    commands_in_flight.send(lane, event.command, event.deadline)
    lane.put(Closing.by_person(lane.now.at, tries=CLOSE_TRIES, earlier=earlier, before=job))
    stopping.lifted(lane, event.command)


def acknowledged(lane: Transition, command: Command) -> None:
    """End the right of way if the gate is seen to close, or nothing shows its position: a person's close was taken."""
    if not lane.rules.has_position or lane.state.inputs.gate.position in _CLOSES:
        _end_right_of_way(lane, command)


def obeyed(lane: Transition, position: GatePosition) -> None:
    """End the right of way once the gate is seen to close by a person's close that its controller has taken."""
    flight = lane.state.commands.flight
    if flight is None or flight.command.action is not GateAction.CLOSE or flight.acknowledged_at is None:
        return
    if position in _CLOSES:
        _end_right_of_way(lane, flight.command)


def follow_gate(lane: Transition, position: GatePosition, *, has_rested: bool) -> None:
    """Follow the gate after a close: closed ends the closing; at rest elsewhere, something has reopened or stopped it.

    `has_rested`: the gate was seen at rest before, since the start.
    """
    if position is GatePosition.OPEN and not has_rested:
        _judge_start(lane)
    job = lane.state.closing
    if job is None:
        return
    if job.lost and position is not GatePosition.UNKNOWN:
        job = replace(job, lost=False, reopen_at=min(job.reopen_at, lane.now.at))
        lane.put(job)
    if position is GatePosition.CLOSED and reopening.is_under_way(lane.state):
        lane.put(replace(job, seen_closed=True))
        return
    if position is GatePosition.CLOSED:
        lane.drop_closing()
        lane.note("")
    elif position is GatePosition.CLOSING:
        lane.put(replace(job, seen_moving=True))
    elif (
        position is GatePosition.OPENING
        and job.sent
        and lane.state.visits.phase is Phase.OPENING
        and not _is_close_under_way(lane)
    ):
        lane.drop_closing()  # the open that replaced it was given up when the controller was lost, and has worked
    elif lane.state.stop.is_in_force:
        return
    elif job.sent and job.seen_moving and position in _AT_REST and not lane.rules.closes_itself:
        _again(lane, job, text("gate.not_stayed_closed"))


def failed(lane: Transition, reason: str) -> None:
    """Go on after a close that did not reach the device: as before a person's; wait, or try again, after the lane's.

    An earlier close is watched further; while nobody knows whether it went out, its driver's report is awaited. A
    reason that came up before the first byte is no failure of the gate: the lane's close waits, as usual.
    """
    job = lane.state.closing
    if job is None or not job.sent:
        return
    if job.of_person and any(one.command.action is GateAction.CLOSE for one in lane.state.commands.superseded):
        return
    if job.of_person or job.earlier or why_not_close(lane.rules, lane.state, lane.now.at):
        rest = job.without_close(lane.now.at)
        if rest is None:
            lane.drop_closing()
        else:
            lane.put(rest)
    else:
        _again(lane, job, reason)


def gate_lost(lane: Transition) -> None:
    """Judge a close under way only when the position has been read again."""
    job = lane.state.closing
    if job is not None:
        lane.put(job.controller_lost())


def overtaken(lane: Transition) -> None:
    """Let a close wait that a person's stop replaced before it was sent: that stop may fail."""
    job, flight = lane.state.closing, lane.state.commands.flight
    if job is not None and job.sent and (flight is None or flight.command.action is not GateAction.CLOSE):
        lane.put(replace(job.close_not_sent(lane.now.at), seen_moving=False))


def due(lane: LaneView) -> Iterator[Due]:
    """Yield what a gate that is to be closed needs: a close once that is safe, an open, or an alert after its time."""
    if lane.state.closing is not None:
        yield AT_EACH_STEP, _follow
    job = lane.state.closing
    if job is None:
        return
    if job.sent and not lane.state.stop.is_in_force:
        if _is_left_to_device(lane.rules, job):
            yield job.since + _DEVICE_CLOSES_WITHIN, _not_closed_by_device
        else:
            yield job.since + lane.rules.lane.closing_seconds, _timed_out
    for moment in _changes_at(lane.rules, lane.state, job):
        yield moment, look_again


def _follow(lane: Transition) -> None:
    """Close when it is safe, show what delays it, and open again a gate that closes onto something."""
    job = lane.state.closing
    if job is None or reopening.watch(lane, job):
        return
    if lane.state.stop.is_in_force:
        reopening.follow(lane, job)
    elif not job.sent:
        _watch_waiting(lane, job)


def _changes_at(rules: LaneRules, state: LaneState, job: Closing) -> Iterator[float]:
    """Yield when time alone changes what `_follow` does."""
    yield from reopening.changes_at(rules, state, job)
    if job.sent:
        return
    yield from (job.not_before, job.since + _REPORT_AFTER)
    yield from (grant.until for grant in state.visits.granted_before)
    yield from (point.chatters_until() for _, point in points_that_forbid(rules, state))
    yield from (clears_at(rules, state, point) for _, point in obstructions(rules, state))


def _end_right_of_way(lane: Transition, command: Command) -> None:
    """End the right of way of a vehicle that is not under the gate, for a person's close."""
    if command.source != LANE and lane.state.visits.phase in _BEFORE_THE_GATE:
        lane.put(lane.state.visits.owing_nothing())
        lane.rest()


def _is_close_under_way(lane: Transition) -> bool:
    flight = lane.state.commands.flight
    return flight is not None and flight.command.action is GateAction.CLOSE


def _is_left_to_device(rules: LaneRules, job: Closing) -> bool:
    return rules.closes_itself and not job.ours


def _judge_start(lane: Transition) -> None:
    """Close a gate that was left open before the start: it is open when it is first seen at rest."""
    idle = lane.state.visits.phase not in _RIGHT_OF_WAY and lane.state.commands.flight is None
    if idle and lane.state.closing is None and not lane.rules.closes_itself:
        begin(lane)


def _who_may_come(lane: Transition) -> Words:
    """Return that a vehicle let in before the restart may stand before the gate that is open for it; "" if none."""
    grant = lane.state.visits.let_in_before(lane.now.at)
    if grant is None or not any(lane.state.inputs.loop(side).is_on() for side in lane.sides()):
        return ""
    return text("lane.let_in_before", credential=grant.credential)


def _wait(lane: Transition, job: Closing, reason: Words) -> None:
    """Show in the note what delays the close, and record it once as an event."""
    now, forbids = lane.now.at, what_forbids(lane.rules, lane.state, lane.now.at)
    note = text("lane.closing_waits", why=reason)
    if forbids and not job.hold_reported and now >= max(job.since + _REPORT_AFTER, job.not_before):
        lane.put(replace(job, hold_reported=True))
        lane.note(note)
        lane.tell(EventKind.CLOSING_HELD, note, reason=str(forbids))
    elif has_key(lane.state.note, "lane.closing_waits"):
        lane.note(note)


def _watch_waiting(lane: Transition, waiting: Closing) -> None:
    now = lane.now.at
    if reopening.follow(lane, waiting) or lane.state.closing is None:
        return
    job = lane.state.closing
    is_way_given = lane.state.visits.phase in _RIGHT_OF_WAY
    if now < job.not_before or lane.state.commands.flight is not None or is_way_given:
        return
    reason = why_not_close(lane.rules, lane.state, now) or _who_may_come(lane)
    if reason:
        _wait(lane, job, reason)
        return
    lane.put(
        replace(
            job, since=now, sent=True, ours=True, tries=job.tries + 1, seen_moving=False, of_person=False, before=None
        )
    )
    lane.note("")
    commands_in_flight.send(lane, lane.command(GateAction.CLOSE), now + lane.rules.policy.command_seconds)


def _not_closed_by_device(lane: Transition) -> None:
    lane.drop_closing()
    lane.note(text("gate.not_closed_by_itself"))


def _timed_out(lane: Transition) -> None:
    if lane.state.closing is not None:
        _again(lane, lane.state.closing, text("gate.not_seen_closed", seconds=lane.rules.lane.closing_seconds))


def _again(lane: Transition, job: Closing, reason: Words) -> None:
    phase = lane.state.visits.phase
    if phase in _RIGHT_OF_WAY and not (job.of_person and phase is Phase.OPEN):
        lane.drop_closing()  # the gate must be open for this visit, and closes when it ends
        return
    if job.tries >= CLOSE_TRIES:
        is_slow = lane.state.inputs.gate.position is GatePosition.CLOSING
        slowly = text("gate.slow_to_close", seconds=lane.rules.lane.closing_seconds)
        said = slowly if is_slow else text("gate.did_not_close", why=reason)
        lane.drop_closing()
        lane.note("")  # the trouble says it until it is over
        lane.put(lane.state.troubles.gate_unmoved(said, is_slow=is_slow))
        lane.tell(EventKind.CLOSING_TIMED_OUT, said, tries=job.tries)
        return
    stopped = lane.state.inputs.gate.position is GatePosition.STOPPED
    lane.put(job.after_failure(lane.now.at, pause=PAUSE_SECONDS, stopped=stopped))
    lane.note(reason)
