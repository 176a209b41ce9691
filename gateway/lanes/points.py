"""The gate and the inputs of a lane with their age. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.lanes.machine.messages import Role
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.inputs import NEVER, InputReading, Inputs
from gateway.lanes.snapshots import LanePoint
from gateway.site.models import PointRef


def lane_points(rules: LaneRules, inputs: Inputs, now: float) -> tuple[LanePoint, ...]:
    """Return the gate and every input that the lane has, with state and age at `now` (monotonic seconds)."""
    gate, stale = inputs.gate, rules.policy.stale_seconds
    position = LanePoint(
        "gate", rules.lane.gate, "", gate.fresh(now, stale), _past(now, gate.since), _past(now, gate.at)
    )
    return (
        position,
        *(
            LanePoint(
                role.value,
                ref.device,
                ref.point,
                reading.fresh(now, stale),
                _past(now, reading.since),
                _past(now, reading.at),
            )
            for role, ref, reading in _inputs(rules, inputs)
        ),
    )


def _inputs(rules: LaneRules, inputs: Inputs) -> Iterator[tuple[Role, PointRef, InputReading]]:
    lane = rules.lane
    one_each = (
        (Role.ARMING, lane.arming, inputs.arming),
        (Role.FAR, lane.far, inputs.far),
        (Role.CLOSING, lane.closing, inputs.closing),
        (Role.FIRE, lane.fire, inputs.fire),
        (Role.KEY_SWITCH, lane.key_switch, inputs.key_switch),
    )
    yield from ((role, ref, reading) for role, ref, reading in one_each if ref is not None)
    for ref, reading in zip(lane.safety, inputs.safety_points(len(lane.safety)), strict=True):
        yield Role.SAFETY, ref, reading


def _past(now: float, at: float) -> float | None:
    return None if at == NEVER else round(max(0.0, now - at), 1)
