"""Whether a lane can admit vehicles and let them out: what it works with is there and known. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from drivers.contract import PointState
from gateway.domain.events import EventKind
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.safety import points_that_forbid
from gateway.lanes.machine.state.lane import LaneState


def why_unable(rules: LaneRules, state: LaneState, now: float) -> tuple[str, ...]:
    """Why it can not at `now` (monotonic seconds), a sentence each; empty when it can."""
    return tuple(_reasons(rules, state, now))


def _reasons(rules: LaneRules, state: LaneState, now: float) -> Iterator[str]:
    if state.inputs.gate_lost:
        yield f"the gate's controller is away: {state.inputs.gate_lost}"
    elif any(trouble.kind is EventKind.POSITION_UNKNOWN for trouble in state.troubles.present):
        yield "the gate's position is not known: open it, then close it"
    far = [("the far arming loop", state.inputs.far)] if rules.two_way else []
    for name, loop in [("the arming loop", state.inputs.arming), *far]:
        if loop.fresh(now, rules.policy.stale_seconds) is PointState.UNKNOWN:
            yield f"{name} is not known, so no card counts: look at its device and its wiring"
    if state.inputs.closing.fresh(now, rules.policy.stale_seconds) is PointState.UNKNOWN:
        yield "the closing loop is not known, so no passage is seen: look at its device and its wiring"
    if not rules.closes_itself:
        for name, point in points_that_forbid(rules, state)[1:]:
            if point.fresh(now, rules.policy.stale_seconds) is PointState.UNKNOWN:
                yield f"{name} is not known, so the gate is not closed: look at its device and its wiring"
