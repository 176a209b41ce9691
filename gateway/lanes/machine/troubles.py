"""What is wrong and lasts: told when it begins and again when it is over. Part of the machine.

A condition holds from an instant that follows from the state alone, so the machine knows when to look again.
"""

from __future__ import annotations

from dataclasses import dataclass

from drivers.contract import GatePosition
from gateway.domain.events import EventKind
from gateway.lanes.machine import closing
from gateway.lanes.machine.inputs import NEVER, SeenPoint
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.safety import obstructions
from gateway.lanes.machine.state import LaneState, Trouble
from gateway.lanes.machine.transition import Turn
from gateway.lanes.snapshots import Phase

_FOREVER = float("inf")


@dataclass(frozen=True, slots=True)
class _Condition:
    trouble: Trouble
    since: float
    until: float = _FOREVER


def watch(turn: Turn) -> None:
    """Tell what has begun and what is over."""
    now, before = turn.now.at, turn.state.troubles
    present = {
        (one.trouble.kind, one.trouble.subject): one.trouble
        for one in _conditions(turn.rules, turn.state)
        if one.since <= now < one.until
    }
    known = {(one.kind, one.subject): one for one in before}
    for key, trouble in present.items():
        if key not in known:
            filmed = turn.now.stamp.micros if trouble.kind is EventKind.FORCED_OPEN else None
            turn.tell(trouble.kind, trouble.text, filmed_from=filmed, subject=trouble.subject)
    for key, trouble in known.items():
        if key not in present:
            text = f"over: {trouble.text}"
            turn.tell(EventKind.TROUBLE_ENDED, text, trouble=trouble.kind.name.lower(), subject=trouble.subject)
    troubles = tuple(known.get(key, trouble) for key, trouble in present.items())
    if troubles != before:
        turn.set(troubles=troubles)


def deadlines(rules: LaneRules, state: LaneState) -> tuple[float, ...]:
    """When `watch` has something to do."""
    known = {(one.kind, one.subject) for one in state.troubles}
    return tuple(
        one.until if (one.trouble.kind, one.trouble.subject) in known else one.since
        for one in _conditions(rules, state)
    )


def has(state: LaneState, kind: EventKind) -> bool:
    """Whether there is trouble of this kind now."""
    return any(trouble.kind is kind for trouble in state.troubles)


def follow_gate(turn: Turn, before: GatePosition) -> None:
    """Note when the gate leaves its closed limit, and whether anybody wanted that. `before` is where it last was."""
    position, now = turn.state.gate.position, turn.now.at
    if position is GatePosition.UNKNOWN:
        return
    if position is GatePosition.CLOSED:
        turn.set(off_closed_at=None, forced_at=None)
        return
    if turn.state.off_closed_at is None:
        turn.set(off_closed_at=now)
        if before is GatePosition.CLOSED and not _is_wanted(turn):
            _unwanted(turn)


def right_of_way_began(turn: Turn) -> None:
    """A vehicle is let in or has passed: the time of an open gate counts anew, and nothing is forced any more."""
    if turn.state.off_closed_at is not None and not has(turn.state, EventKind.HELD_OPEN):
        turn.set(off_closed_at=turn.now.at)
    turn.set(forced_at=None)


def _conditions(rules: LaneRules, state: LaneState) -> list[_Condition]:
    found: list[_Condition] = []

    def when(kind: EventKind, subject: str, text: str, since: float, until: float = _FOREVER) -> None:
        found.append(_Condition(Trouble(kind, subject, text), since, until))

    if state.on_fire:
        when(EventKind.FIRE_INPUT, "", "the fire input is active; the gate is to be open", state.fire.since)
    if rules.local_input and state.local.is_on():
        when(EventKind.LOCAL_CONTROL, "", "the gate is under the control of its key switch", state.local.since)
    if state.schedule_doubt:
        when(EventKind.SCHEDULE_DOUBTED, "", state.schedule_doubt, state.doubted_since + rules.doubted)
    if state.gate.position is GatePosition.UNKNOWN and state.gate.since > NEVER and not state.gate_lost:
        text = (
            f"the gate's position has not been known for {_span(rules.travel)}; it may stand half-way: look that nobody"
            " and nothing is under it, open it, then close it"
        )
        when(EventKind.POSITION_UNKNOWN, "", text, state.gate.since + rules.travel)
    if state.off_closed_at is not None and not state.kept_open:
        text = f"the gate has been open for more than {_span(rules.held_open)}"
        when(EventKind.HELD_OPEN, "", text, state.off_closed_at + rules.held_open)
    if state.forced_at is not None:
        text = "the gate left its closed position without a command: forced, or opened by another control"
        when(EventKind.FORCED_OPEN, "", text, state.forced_at + rules.forced)
    if state.phase is Phase.PASSING:
        text = f"a vehicle has been under the gate for {_span(rules.vehicle_stuck)}"
        when(EventKind.VEHICLE_STUCK, "", text, state.since + rules.vehicle_stuck)
    for name, point in _inputs(rules, state):
        if point.is_on():
            text = f"{name} has been on for {_span(rules.input_stuck)}"
            when(EventKind.INPUT_STUCK, name, text, point.since + rules.input_stuck)
        if point.changes and point.chatters_until() > point.changes[-1]:
            text = f"{name} changes too often to be believed"
            when(EventKind.INPUT_CHATTERS, name, text, point.changes[-1], point.chatters_until())
    return found


def _inputs(rules: LaneRules, state: LaneState) -> list[tuple[str, SeenPoint]]:
    """Every input that a vehicle may hold; fire and key switch may be on for as long as they want."""
    far = [("the far arming loop", state.far)] if rules.two_way else []
    return [("the arming loop", state.arming), *far, *obstructions(rules, state)]


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 120 else f"{seconds:g} s"


def _is_wanted(turn: Turn) -> bool:
    state = turn.state
    return bool(
        state.phase in {Phase.OPENING, Phase.OPEN, Phase.PASSING}
        or state.flight
        or state.closing_gate
        or state.kept_open
        or state.local.is_on()
    )


def _unwanted(turn: Turn) -> None:
    now = turn.now.at
    if now - turn.state.unanswered_open_at > turn.rules.late_opening:
        turn.set(forced_at=now)
        return
    text = "the gate opened late, after its command had been given up; it is closed again"
    turn.set(unanswered_open_at=NEVER, note=text)
    turn.tell(EventKind.OPENED_LATE, text)
    closing.begin(turn)
