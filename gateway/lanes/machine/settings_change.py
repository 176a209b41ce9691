"""The condition of a change of the lane's settings: nobody is in it, and its gate stands still. Part of the machine.

A gate or an arming loop whose device is offline does not keep a lane from being changed: the very setting that is to be
corrected may be the cause. So may inputs that contradict themselves. Where inputs show vehicles that are not there, a
person may say that the lane is free; then only a command or a close of the gateway keeps it, until it has come to its
end. After the change the lane knows none of its points, and closes nothing until they are read.
"""

from __future__ import annotations

from drivers.contract import GatePosition, PointState
from gateway.lanes.machine.contradictions import all_on_from
from gateway.lanes.machine.rules import LaneRules, Side
from gateway.lanes.machine.safety import read
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.snapshots import Phase
from gateway.texts import text

_MOVING = frozenset({GatePosition.OPENING, GatePosition.CLOSING})


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
