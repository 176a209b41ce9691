"""The gate and the inputs of a lane, and the age of what is known of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gateway.lanes.machine.messages import Role
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.inputs import NEVER, InputReading, Inputs
from gateway.lanes.snapshots import LanePoint
from gateway.site.models import PointRef


def lane_points(rules: LaneRules, inputs: Inputs, now: float, wall: Callable[[float], int]) -> tuple[LanePoint, ...]:
    """Return the gate and every input that the lane has, as they count at `now` (monotonic seconds).

    `wall` returns the wall micros of a monotonic instant.
    """
    gate, stale = inputs.gate, rules.policy.stale_seconds

    def since(at: float) -> int | None:
        return None if at == NEVER else wall(at)

    return (
        LanePoint("gate", rules.lane.gate, "", gate.fresh(now, stale), since(gate.since)),
        *(
            LanePoint(role.value, ref.device, ref.point, reading.fresh(now, stale), since(reading.since))
            for role, ref, reading in _inputs(rules, inputs)
        ),
    )


def point_ages(rules: LaneRules, inputs: Inputs, now: float) -> tuple[float | None, ...]:
    """Return how many seconds old the last report on each of `lane_points` is, None for one without a report."""
    reported = (inputs.gate.at, *(reading.at for _, _, reading in _inputs(rules, inputs)))
    return tuple(None if at == NEVER else round(max(0.0, now - at), 1) for at in reported)


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
