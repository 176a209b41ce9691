"""The one question before any close: is it known, and fresh, that nothing is in the way?

Force limits and entrapment protection are the hardware controller's (EN 12453); what software owes is never to ask for
a close that is not known to be safe.
"""

from __future__ import annotations

from drivers.contract import GatePosition, PointState
from gateway.lanes.state import LaneRules, LaneState


def why_not_close(rules: LaneRules, state: LaneState, now: float) -> str:
    """One sentence on what forbids closing at `now` (monotonic seconds), or "" when every point is known to be free."""
    if state.gate_lost:
        return f"the gate's controller is away: {state.gate_lost}"
    if state.gate.fresh(now, rules.stale) is GatePosition.UNKNOWN:
        return "the gate's position is not known"
    points = [("the closing loop", state.closing)]
    if len(state.safety) != rules.safety_points:
        return "a safety point has not been read yet"
    points += [(f"safety point {number}", point) for number, point in enumerate(state.safety, start=1)]
    for name, point in points:
        fresh = point.fresh(now, rules.stale)
        if fresh is PointState.ON:
            return f"{name} is active"
        if fresh is PointState.UNKNOWN:
            return f"{name} is unknown or stale"
    return ""
