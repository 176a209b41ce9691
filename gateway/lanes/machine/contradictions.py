"""Contradictions between a lane's inputs and its readings, which wrong wiring or settings show. Part of the machine."""

from __future__ import annotations

from collections.abc import Iterator

from drivers.contract import GatePosition
from gateway.domain.problems import ProblemKind
from gateway.lanes.machine.rules import IN_A_ROW, LaneRules
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.snapshots import LaneTrouble
from gateway.texts import text

_NEVER_OFF_SECONDS = 3.0
_ON_AGAIN_SECONDS = 10.0
_TWO_POINTS_SECONDS = 60.0
_SHUT = frozenset({GatePosition.CLOSED, GatePosition.UNKNOWN})


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
