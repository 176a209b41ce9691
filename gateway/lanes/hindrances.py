"""Hindrances of a lane beyond those that its machine knows: readers that are away, a gate that does not follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from drivers.contract import GatePosition, PointState
from drivers.gates.limits import LimitPoint, Limits
from gateway.domain.problems import ProblemKind
from gateway.lanes.snapshots import DeviceSnapshot, LaneSnapshot, LaneTrouble

_SEEN_ELSEWHERE = frozenset(GatePosition) - {GatePosition.OPEN, GatePosition.UNKNOWN}


def with_hindrances(
    lane: LaneSnapshot, *, devices: Mapping[int, DeviceSnapshot], readers: Sequence[int], limits: Limits | None
) -> LaneSnapshot:
    """Return the lane with all that keeps it from admitting vehicles or letting them out.

    Args:
        lane: the lane as its machine shows it.
        devices: those of the site, by id.
        readers: the ids of the lane's readers; while all are away it admits nobody by itself.
        limits: the limit switches of its gate, None where it has none.
    """
    away = [devices[reader] for reader in readers]
    if any(reader.online is not False for reader in away):  # one is enough
        away = []
    unable = (
        *(_explained(trouble, devices, limits) for trouble in lane.unable),
        *_not_open(lane),
        *(LaneTrouble(ProblemKind.READERS_OFFLINE, one.away, one.name, one.device_id) for one in away),
    )
    return replace(lane, unable=unable, troubles=tuple(_explained(one, devices, limits) for one in lane.troubles))


def _not_open(lane: LaneSnapshot) -> Iterator[LaneTrouble]:
    """Yield the gate that did not move when it was to, where it stands in the way. One that stands open does not."""
    if lane.position in _SEEN_ELSEWHERE:
        yield from (trouble for trouble in lane.troubles if trouble.kind is ProblemKind.GATE_DOES_NOT_MOVE)


def _explained(trouble: LaneTrouble, devices: Mapping[int, DeviceSnapshot], limits: Limits | None) -> LaneTrouble:
    """Return the trouble with its cause where a position is unknown because both limit switches are on.

    A position is unknown once it has been so for as long as the gate takes to travel: a switch may stick for a moment.
    """
    if limits is None or trouble.kind is not ProblemKind.GATE_POSITION_UNKNOWN:
        return trouble
    on = {
        LimitPoint(device.device_id, point.name)
        for device in devices.values()
        for point in device.points
        if point.state is PointState.ON
    }
    if not {limits.closed, limits.opened} <= on:
        return trouble
    names = f"{limits.closed.point} and {limits.opened.point}"
    text = f"both limit switches are on, as if the gate were open and closed at once: {names}"
    return replace(trouble, kind=ProblemKind.GATE_LIMITS_BOTH_ON, text=text)
