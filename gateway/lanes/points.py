"""The gate and the inputs of a lane, and the age of what is known of each. Pure."""

from __future__ import annotations

from collections.abc import Callable

from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.inputs import NEVER, Inputs
from gateway.lanes.snapshots import LanePoint


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
            LanePoint(one.role.value, one.ref.device, one.ref.point, reading.fresh(now, stale), since(reading.since))
            for one, reading in ((one, inputs.reading(one.role, one.index)) for one in rules.inputs)
        ),
    )


def point_ages(rules: LaneRules, inputs: Inputs, now: float) -> tuple[float | None, ...]:
    """Return how many seconds old the last report on each of `lane_points` is, None for one without a report."""
    reported = (inputs.gate.at, *(inputs.reading(one.role, one.index).at for one in rules.inputs))
    return tuple(None if at == NEVER else round(max(0.0, now - at), 1) for at in reported)
