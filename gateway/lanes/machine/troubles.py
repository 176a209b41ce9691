"""Lasting troubles: an event when one begins, and another when it is over. Part of the machine.

A condition holds from an instant that follows from the state alone, so the machine knows when to look again.

Contradictions between inputs and readings, which wrong wiring or settings show, are troubles too. They also count
in the condition of a change of the lane's settings: nobody is in the lane, and its gate stands still.

- A gate or an arming loop whose device is offline does not keep a lane from being changed: the very setting that is to
  be corrected may be the cause. So may inputs that contradict themselves.
- Where inputs show vehicles that are not there, a person may say that the lane is free; then only a command or a close
  of the gateway keeps it, until it has come to its end.
- After the change the lane knows none of its points, and closes nothing until they are read.
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
from gateway.lanes.machine.rules import (
    DOUBTED_SECONDS,
    IN_A_ROW,
    LATE_OPENING_SECONDS,
    RESTING_STUCK_SECONDS,
    LaneRules,
    NamedInput,
    Side,
)
from gateway.lanes.machine.safety import read
from gateway.lanes.machine.state.inputs import NEVER, InputReading
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.state.troubles import Trouble
from gateway.lanes.machine.transition import AT_EACH_STEP, Due, LaneView, Transition, look_again
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

_NEVER_OFF_SECONDS = 3.0
_ON_AGAIN_SECONDS = 10.0
_TWO_POINTS_SECONDS = 60.0
_SHUT = frozenset({GatePosition.CLOSED, GatePosition.UNKNOWN})

_MOVING = frozenset({GatePosition.OPENING, GatePosition.CLOSING})


@dataclass(frozen=True, slots=True)
class _Condition:
    trouble: Trouble
    since: float
    until: float = _FOREVER


def due(lane: LaneView) -> Iterator[Due]:
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
            over = text("event.trouble_ended", why=trouble.text)
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
        over = text("event.trouble_ended", why=unmoved)
        lane.tell(EventKind.TROUBLE_ENDED, over, trouble="gate_unmoved", subject="")
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


def all_on_from(rules: LaneRules, state: LaneState) -> float | None:
    """Return from when all inputs of the lane being on together contradicts every vehicle, None if it does not.

    No vehicle stands on all of them under a gate that is not open. In an open gate a long one may, but not if no input
    was seen off since the lane began: lanes begin without a vehicle.
    """
    inputs = state.inputs
    held = [one for one in rules.inputs if one.spec.held_by_vehicles]
    points = [inputs.reading(one.role, one.index) for one in held]
    places = {one.ref for one in held}
    if len(places) < 2 or not all(point.is_on() for point in points):
        return None
    latest = max(point.since for point in points)
    if not any(point.changes for point in points):
        return latest + (_TWO_POINTS_SECONDS if len(places) == 2 else _NEVER_OFF_SECONDS)
    if len(places) > 2 and rules.has_position and inputs.gate.position in _SHUT:
        return max(latest, inputs.gate.since) + _ON_AGAIN_SECONDS
    return None


def contradictions(rules: LaneRules, state: LaneState, now: float) -> Iterator[LaneTrouble]:
    """Yield what contradicts itself in the lane at `now` (monotonic seconds)."""
    begins = all_on_from(rules, state)
    if begins is not None and now >= begins:
        yield LaneTrouble(ProblemKind.INPUTS_ALL_ON, text("contradiction.all_on"))
    if (cards := state.readings.unseen) >= IN_A_ROW:
        yield LaneTrouble(ProblemKind.CARDS_WITHOUT_VEHICLE, text("contradiction.cards", count=cards))
    if (vehicles := state.readings.unread) >= IN_A_ROW:
        yield LaneTrouble(ProblemKind.VEHICLES_WITHOUT_CARD, text("contradiction.vehicles", count=vehicles))


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


def why_not_changed(  # noqa: PLR0911 (one per reason)
    rules: LaneRules, state: LaneState, now: float, *, is_free: bool = False
) -> str:
    """Return why the lane's settings cannot be changed at `now` (monotonic seconds), "" when they can.

    `is_free`: a person says that nobody is in the lane, whatever its inputs say.
    """
    visits, gate = state.visits, state.inputs.gate
    if state.inputs.on_fire and not is_free:
        return "its fire input is active"
    if state.commands.flight is not None or state.commands.superseded or state.stop.asked is not None:
        return "a command to its gate is under way"
    if is_free:
        return "the gateway closes its gate" if state.closing is not None and state.closing.is_on_its_way else ""
    if (all_on := all_on_from(rules, state)) is not None and now >= all_on:
        return ""
    if state.inputs.gate_lost:
        return ""
    if visits.phase is not Phase.IDLE or visits.present is not None or visits.owed or visits.queued is not None:
        return "" if _is_unseen(state) else "a vehicle is in it"
    if visits.leaving is not None and now < visits.leaving.until:
        return "a vehicle is leaving it"
    for named, point in (read(one, state) for one in rules.inputs if one.spec.held_by_vehicles):
        if point.is_on():
            return str(text("safety.active", point=named.words))
    if gate.position in _MOVING:
        return "its gate moves"
    if gate.position is GatePosition.UNKNOWN and now < max(gate.since, visits.since) + rules.travel_seconds:
        return "its gate may be moving: its position is not known"
    return ""


def _is_unseen(state: LaneState) -> bool:
    """Return whether a visit waits before a closed gate while its arming loop is unknown: it may be over by now."""
    waits = state.visits.phase in {Phase.ARMED, Phase.DECIDING} and state.inputs.gate.position is GatePosition.CLOSED
    side = Side.NEAR if state.visits.present is None else state.visits.present.side
    return waits and state.inputs.loop(side).state is PointState.UNKNOWN
