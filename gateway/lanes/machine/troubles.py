"""Lasting troubles: an event when one begins, and another when it is over. Part of the machine.

A condition holds from an instant that follows from the state alone, so the machine knows when to look again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from drivers.contract import GatePosition, PointState
from gateway.domain.events import EventKind
from gateway.domain.problems import ProblemKind
from gateway.lanes.machine import closing
from gateway.lanes.machine.contradictions import all_on_from
from gateway.lanes.machine.rules import (
    DOUBTED_SECONDS,
    LATE_OPENING_SECONDS,
    RESTING_STUCK_SECONDS,
    LaneRules,
    NamedInput,
)
from gateway.lanes.machine.safety import read
from gateway.lanes.machine.state.inputs import NEVER, InputReading
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.state.troubles import Trouble
from gateway.lanes.machine.transition import AT_EACH_STEP, Due, Transition, View, look_again
from gateway.lanes.snapshots import LaneTrouble, Phase
from gateway.site import Role
from gateway.texts import Text, Words, text

_FOREVER = float("inf")
_LIMITS = frozenset({GatePosition.CLOSED, GatePosition.OPEN})
_PROBLEMS = MappingProxyType(
    {
        EventKind.FIRE_INPUT: ProblemKind.FIRE_INPUT_ACTIVE,
        EventKind.KEY_SWITCH_ON: ProblemKind.KEY_SWITCH_ON,
        EventKind.SCHEDULE_DOUBTED: ProblemKind.SCHEDULE_DOUBTED,
        EventKind.POSITION_UNKNOWN: ProblemKind.GATE_POSITION_UNKNOWN,
        EventKind.HELD_OPEN: ProblemKind.GATE_HELD_OPEN,
        EventKind.FORCED_OPEN: ProblemKind.GATE_FORCED_OPEN,
        EventKind.VEHICLE_STUCK: ProblemKind.VEHICLE_STUCK,
        EventKind.INPUT_STUCK: ProblemKind.INPUT_STUCK,
        EventKind.INPUT_CHATTERS: ProblemKind.INPUT_CHATTERS,
    }
)
"""The kind of problem for each kind of lasting trouble."""


@dataclass(frozen=True, slots=True)
class _Condition:
    trouble: Trouble
    since: float
    until: float = _FOREVER


def due(lane: View) -> Iterator[Due]:
    """Yield the record of troubles that have begun or are over, and when time alone begins or ends one."""
    conditions = tuple(_conditions(lane.rules, lane.state))
    known = {one.key for one in lane.state.troubles.present}
    yield AT_EACH_STEP, partial(_record, conditions)
    for one in conditions:
        yield one.until if one.trouble.key in known else one.since, look_again


def _record(conditions: tuple[_Condition, ...], lane: Transition) -> None:
    """Record the troubles that have begun and those that are over."""
    now, before = lane.now.at, lane.state.troubles.present
    present = {one.trouble.key: one.trouble for one in conditions if one.since <= now < one.until}
    known = {one.key: one for one in before}
    for key, trouble in present.items():
        if key not in known:
            filmed = lane.now.stamp.micros if trouble.kind is EventKind.FORCED_OPEN else None
            lane.tell(trouble.kind, trouble.text, filmed_from=filmed, subject=trouble.subject)
    for key, trouble in known.items():
        if key not in present:
            over = f"over: {trouble.text}"
            lane.tell(EventKind.TROUBLE_ENDED, over, trouble=trouble.kind.name.lower(), subject=trouble.subject)
    troubles = tuple(known.get(key, trouble) for key, trouble in present.items())
    if troubles != before:
        lane.put(replace(lane.state.troubles, present=troubles))


def has(state: LaneState, kind: EventKind) -> bool:
    """Return whether a trouble of this kind is present."""
    return any(trouble.kind is kind for trouble in state.troubles.present)


def follow_gate(lane: Transition, before: GatePosition) -> None:
    """Note when the gate leaves its closed limit, and whether it had a reason. `before` is its last known position."""
    position, now = lane.state.inputs.gate.position, lane.now.at
    if position is GatePosition.UNKNOWN:
        return
    unmoved = lane.state.troubles.unmoved
    if unmoved and position is not before and position in _LIMITS:
        lane.tell(EventKind.TROUBLE_ENDED, f"over: {unmoved}", trouble="gate_unmoved", subject="")
        lane.put(lane.state.troubles.gate_unmoved(""))
    if position is GatePosition.CLOSED:
        lane.put(replace(lane.state.troubles, off_closed_at=None, forced_at=None))
        return
    if lane.state.troubles.off_closed_at is None:
        lane.put(lane.state.troubles.off_closed(now))
        if before is GatePosition.CLOSED and not _is_wanted(lane):
            _unwanted(lane)


def right_of_way_began(lane: Transition) -> None:
    """Restart the time of an open gate, and forget a forced opening: a vehicle is let in or has passed."""
    if lane.state.troubles.off_closed_at is not None and not has(lane.state, EventKind.HELD_OPEN):
        lane.put(lane.state.troubles.off_closed(lane.now.at))
    lane.put(lane.state.troubles.forced(None))


def _conditions(rules: LaneRules, state: LaneState) -> Iterator[_Condition]:
    yield from _of_switches(rules, state)
    yield from _of_gate(rules, state)
    if state.visits.phase is Phase.PASSING:
        said = text("trouble.vehicle_stuck", span=_span(rules.lane.vehicle_stuck_seconds))
        yield _condition(EventKind.VEHICLE_STUCK, said, state.visits.since + rules.lane.vehicle_stuck_seconds)
    for named, point in (read(one, state) for one in rules.inputs if one.spec.held_by_vehicles):
        if point.is_on() and all_on_from(rules, state) is None:
            seconds, at = _stuck_at(rules, state, named, point)
            said = text("trouble.input_stuck", point=named.words, span=_span(seconds))
            yield _condition(EventKind.INPUT_STUCK, said, at, subject=named.name)
        if point.changes and point.chatters_until() > point.changes[-1]:
            chatter = Trouble(EventKind.INPUT_CHATTERS, named.name, text("trouble.input_chatters", point=named.words))
            yield _Condition(chatter, point.changes[-1], point.chatters_until())


def _stuck_at(rules: LaneRules, state: LaneState, named: NamedInput, point: InputReading) -> tuple[float, float]:
    """Return after how many seconds an input that is on counts as stuck, and from when.

    While the lane rests, nobody drives over its closing loop or through its photocell, so that a minute is enough.
    """
    if any(one.kind is EventKind.INPUT_STUCK and one.subject == named.name for one in state.troubles.present):
        return rules.lane.stuck_seconds, point.since
    rests = state.visits.phase is Phase.IDLE and not state.reason_kept_open
    if rests and named.spec.obstructs:
        resting = min(RESTING_STUCK_SECONDS, rules.lane.stuck_seconds)
        at = max(point.since, state.visits.since, state.orders.last_reason.until) + resting
        if at < point.since + rules.lane.stuck_seconds:
            return resting, at
    return rules.lane.stuck_seconds, point.since + rules.lane.stuck_seconds


def _of_switches(rules: LaneRules, state: LaneState) -> Iterator[_Condition]:
    for one in rules.inputs:
        if (trouble := one.spec.trouble) is not None:
            reading = state.inputs.reading(one.role, one.index)
            if state.inputs.on_fire if one.spec.opens else reading.is_on():
                yield _condition(trouble.kind, trouble.text, reading.since)
    if state.orders.doubt:
        yield _condition(EventKind.SCHEDULE_DOUBTED, state.orders.doubt, state.orders.doubted_since + DOUBTED_SECONDS)


def _of_gate(rules: LaneRules, state: LaneState) -> Iterator[_Condition]:
    gate = state.inputs.gate
    if (
        rules.has_position
        and gate.position is GatePosition.UNKNOWN
        and gate.since > NEVER
        and not state.inputs.gate_lost
    ):
        said = text("trouble.position_unknown", span=_span(rules.travel_seconds))
        yield _condition(EventKind.POSITION_UNKNOWN, said, gate.since + rules.travel_seconds)
    if state.troubles.off_closed_at is not None and not state.reason_kept_open:
        said = text("trouble.held_open", span=_span(rules.lane.held_open_seconds))
        yield _condition(EventKind.HELD_OPEN, said, state.troubles.off_closed_at + rules.lane.held_open_seconds)
    if state.troubles.forced_at is not None:
        said = text("trouble.forced_open")
        yield _condition(EventKind.FORCED_OPEN, said, state.troubles.forced_at + rules.lane.forced_seconds)


def _condition(kind: EventKind, text: Words, since: float, *, subject: str = "") -> _Condition:
    return _Condition(Trouble(kind, subject, text), since)


def _span(seconds: float) -> Text:
    return text("span.minutes", count=seconds / 60) if seconds >= 120 else text("span.seconds", count=seconds)


def _is_wanted(lane: Transition) -> bool:
    state = lane.state
    return bool(
        state.visits.phase in {Phase.OPENING, Phase.OPEN, Phase.PASSING}
        or state.commands.flight
        or state.closing
        or state.reason_kept_open
        or any(state.inputs.reading(one.role, one.index).is_on() for one in lane.rules.inputs if one.spec.moves_gate)
    )


def _unwanted(lane: Transition) -> None:
    now = lane.now.at
    if now - lane.state.commands.unanswered_open_at > LATE_OPENING_SECONDS:
        lane.put(lane.state.troubles.forced(now))
        return
    said = text("gate.opened_late")
    lane.put(lane.state.commands.open_took_effect())
    lane.note(said)
    lane.tell(EventKind.OPENED_LATE, said)
    closing.begin(lane)


def why_unable(rules: LaneRules, state: LaneState, now: float) -> Iterator[LaneTrouble]:
    """Yield why the lane cannot admit vehicles or let them out."""
    if state.inputs.gate_lost:
        away = text("lane.gate_offline", why=state.inputs.gate_lost)
        yield LaneTrouble(ProblemKind.GATE_OFFLINE, away, device_id=rules.lane.gate)
    elif has(state, EventKind.POSITION_UNKNOWN):
        yield LaneTrouble(ProblemKind.GATE_POSITION_UNKNOWN, text("unable.position_unknown"))
    for one in rules.inputs:
        _, point = read(one, state)
        if point.fresh(now, rules.policy.stale_seconds) is not PointState.UNKNOWN:
            continue
        if one.spec.waits:
            said = text("unable.no_card_counts", point=one.words)
            yield LaneTrouble(ProblemKind.ARMING_LOOP_UNKNOWN, said, one.name, one.ref.device)
        elif one.role is Role.CLOSING:
            said = text("unable.no_passage_seen", point=one.words)
            yield LaneTrouble(ProblemKind.CLOSING_LOOP_UNKNOWN, said, device_id=one.ref.device)
        elif one.spec.forbids_close and not rules.closes_itself:
            said = text("unable.stays_open", point=one.words)
            yield LaneTrouble(ProblemKind.SAFETY_INPUT_UNKNOWN, said, one.name, one.ref.device)


def lasting(state: LaneState) -> Iterator[LaneTrouble]:
    """Yield what is wrong and lasts; first that a person stopped the gate, or that it does not reach its limit."""
    if state.stop.by:
        yield LaneTrouble(ProblemKind.GATE_STOPPED, state.stop_words)
    if state.troubles.unmoved:
        kind = ProblemKind.GATE_TOO_SLOW if state.troubles.is_slow else ProblemKind.GATE_DOES_NOT_MOVE
        yield LaneTrouble(kind, state.troubles.unmoved)
    for one in state.troubles.present:
        yield LaneTrouble(_PROBLEMS[one.kind], one.text, one.subject)
