"""The condition of every close: each point is known, fresh, and has been free for long enough.

The hardware controller is responsible for force limits and entrapment protection (EN 12453); software must never send a
close that is not known to be safe. A loop can drop out under a vehicle, so one reading is no proof: every point that a
vehicle can hold must have been off for a while, and have been read off more than once.
"""

from __future__ import annotations

from drivers.contract import GatePosition, PointState
from gateway.lanes.machine.rules import LaneRules, NamedInput
from gateway.lanes.machine.state.inputs import InputReading
from gateway.lanes.machine.state.lane import LaneState
from gateway.texts import Words, text

_MISSED_WHILE_CLOSING = 2
"""A closing gate is opened again after so many polls in a row without an answer."""

_MAY_BE_CLOSED = frozenset({GatePosition.OPENING, GatePosition.OPEN, GatePosition.STOPPED})


def why_not_close(rules: LaneRules, state: LaneState, now: float) -> Words:
    """Return what forbids closing at `now` (monotonic seconds); "" when every point is known to be clear."""
    return what_forbids(rules, state, now) or what_is_not_clear(rules, state, now)


def what_forbids(rules: LaneRules, state: LaneState, now: float) -> Words:  # noqa: PLR0911 (one per reason)
    """Return what is in the way, or not known, at `now` (monotonic seconds); "" for nothing."""
    if state.inputs.gate_lost:
        return text("lane.gate_offline", why=state.inputs.gate_lost)
    if state.reason_kept_open:
        return state.reason_kept_open
    if not rules.has_position:
        return text("safety.no_position")
    if state.inputs.gate.fresh(now, rules.policy.stale_seconds) is GatePosition.UNKNOWN:
        return text("safety.position_unknown")
    for one, point in points_that_forbid(rules, state):
        fresh = point.fresh(now, rules.policy.stale_seconds)
        if fresh is PointState.ON:
            return text("safety.active", point=one.words)
        if fresh is PointState.UNKNOWN:
            return text("safety.unknown", point=one.words)
        if point.missed:
            return text("safety.missed", point=one.words)
        if now < point.chatters_until():
            return text("safety.chatters", point=one.words)
    return ""


def what_is_not_clear(rules: LaneRules, state: LaneState, now: float) -> Words:
    """Return which point that a vehicle can hold is free, but not for long enough yet; "" for none."""
    for one, point in obstructions(rules, state):
        if now < clears_at(rules, state, point) or not point.is_confirmed:
            seconds = rules.lane.clear_after_loss_seconds
            if now < point.resumed + seconds:
                return text("safety.not_clear_again", point=one.words, seconds=seconds)
            return text("safety.not_clear", point=one.words, seconds=rules.lane.clear_seconds)
    return ""


def clears_at(rules: LaneRules, state: LaneState, point: InputReading) -> float:
    """Return the instant from which this point counts as clear, if it stays off."""
    return max(
        point.clears_at(rules.lane.clear_seconds, rules.lane.clear_after_loss_seconds),
        state.orders.last_reason.until + rules.lane.clear_seconds,
    )


def is_close_near(rules: LaneRules, state: LaneState) -> bool:
    """Return whether the gate closes on a command, or may be closed as soon as the way is clear.

    The devices in `polled_near_a_close` are then polled as fast as their lines allow. A loop's device that restarts
    does not see a vehicle on its loop for a second or two, and only a missed poll shows the restart. So no restart must
    fit between two polls: a restart takes some 50 ms at least, and usual polls are 100 ms apart.
    """
    job, position = state.closing, state.inputs.gate.position
    if position is GatePosition.CLOSING or (job is not None and job.sent and job.ours):
        return True
    is_left_open = bool(state.reason_kept_open or state.stop.by or state.inputs.gate_lost)
    return not (rules.closes_itself or is_left_open) and position in _MAY_BE_CLOSED


def polled_near_a_close(rules: LaneRules) -> frozenset[int]:
    """Return the ids of the devices that must be polled fast near a close: the gate, and each with an obstruction."""
    return frozenset({rules.lane.gate, *(one.ref.device for one, _ in obstructions(rules, LaneState()))})


def what_came_into_the_way(rules: LaneRules, state: LaneState, now: float) -> Words:
    """Return which point is no longer known to be free since a close was sent; "" for none."""
    for one, point in obstructions(rules, state):
        if point.is_on():
            return text("safety.active", point=one.words)
        if not point.is_off() or now >= point.at + rules.policy.stale_seconds:
            return text("safety.unknown", point=one.words)
        if point.missed >= _MISSED_WHILE_CLOSING:
            return text("safety.silent", point=one.words)
        if now < point.returned + rules.lane.clear_after_loss_seconds:
            return text("safety.returned", point=one.words)
    return ""


def points_that_forbid(rules: LaneRules, state: LaneState) -> tuple[tuple[NamedInput, InputReading], ...]:
    """Return each input that must be free for a close, with its reading."""
    return tuple(read(one, state) for one in rules.inputs if one.spec.forbids_close)


def obstructions(rules: LaneRules, state: LaneState) -> tuple[tuple[NamedInput, InputReading], ...]:
    """Return each input that a vehicle under the gate can hold, with its reading.

    All that must be free for a close because of a vehicle stands here, once.
    """
    return tuple(read(one, state) for one in rules.inputs if one.spec.obstructs)


def read(one: NamedInput, state: LaneState) -> tuple[NamedInput, InputReading]:
    """Return an input with its reading."""
    return one, state.inputs.reading(one.role, one.index)
