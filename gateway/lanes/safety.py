"""The one question before any close: is it known, and fresh, that nothing is in the way?

Force limits and entrapment protection are the hardware controller's (EN 12453); what software owes is never to ask for
a close that is not known to be safe.
"""

from __future__ import annotations

from drivers.contract import GatePosition, PointState
from gateway.lanes.seen import SeenPoint
from gateway.lanes.state import LaneRules, LaneState


def why_not_close(rules: LaneRules, state: LaneState, now: float) -> str:  # noqa: PLR0911 (one per reason)
    """One sentence on what forbids closing at `now` (monotonic seconds), or "" when every point is known to be free."""
    if state.gate_lost:
        return f"the gate's controller is away: {state.gate_lost}"
    if state.kept_open:
        return state.kept_open
    if state.gate.fresh(now, rules.stale) is GatePosition.UNKNOWN:
        return "the gate's position is not known"
    if len(state.safety) != rules.safety_points:
        return "a safety point has not been read yet"
    for name, point in points_that_forbid(rules, state):
        fresh = point.fresh(now, rules.stale)
        if fresh is PointState.ON:
            return f"{name} is active"
        if fresh is PointState.UNKNOWN:
            return f"{name} is unknown or stale"
        if now < point.chatters_until():
            return f"{name} chatters"
    return ""


def points_that_forbid(rules: LaneRules, state: LaneState) -> tuple[tuple[str, SeenPoint], ...]:
    """Each input that must be free for a close, with its name for people."""
    points = list(obstructions(state))
    if rules.fire_input:
        points.append(("the fire input", state.fire))
    if rules.local_input:
        points.append(("the key switch", state.local))
    return tuple(points)


def obstructions(state: LaneState) -> tuple[tuple[str, SeenPoint], ...]:
    """The inputs that a vehicle under the gate holds, with their names for people."""
    others = ((f"safety point {number}", point) for number, point in enumerate(state.safety, start=1))
    return (("the closing loop", state.closing), *others)
