"""Hindrances of a lane beyond those that its machine knows: readers that are away, a gate that does not follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from drivers.contract import GatePosition, PointState
from drivers.gates.limits import LimitPoint, Limits
from gateway.domain.problems import ProblemKind
from gateway.lanes.snapshots import DeviceSnapshot, LaneSnapshot, LaneTrouble
from gateway.lanes.swapped_readers import CardsElsewhere
from gateway.texts import text

_SEEN_ELSEWHERE = frozenset(GatePosition) - {GatePosition.OPEN, GatePosition.UNKNOWN}


def with_hindrances(
    lane: LaneSnapshot, *, devices: Mapping[int, DeviceSnapshot], readers: Sequence[int], limits: Limits | None
) -> LaneSnapshot:
    """Return the lane's snapshot with everything that keeps it from admitting vehicles or letting them out.

    Args:
        lane: the lane as its machine shows it.
        devices: the site's devices, by id.
        readers: the ids of the lane's readers; while all are offline, the lane admits nobody by itself.
        limits: the limit switches of its gate, None where it has none.
    """
    away = [devices[reader] for reader in readers]
    if any(reader.online is not False for reader in away):  # one working reader is enough
        away = []
    unable = (
        *(_explained(trouble, devices, limits) for trouble in lane.unable),
        *_not_open(lane),
        *(LaneTrouble(ProblemKind.READERS_OFFLINE, one.away, one.name, one.device_id) for one in away),
    )
    return replace(lane, unable=unable, troubles=tuple(_explained(one, devices, limits) for one in lane.troubles))


def with_swapped_readers(lanes: tuple[LaneSnapshot, ...], elsewhere: CardsElsewhere) -> tuple[LaneSnapshot, ...]:
    """Return the lanes with readers that seem swapped, in place of the troubles that follow from it."""
    names = {lane.lane_id: lane.name for lane in lanes}
    found = {lane: (there, times) for lane, there, times in elsewhere.found()}
    without = {(lane, ProblemKind.CARDS_WITHOUT_VEHICLE) for lane in found}
    without |= {(there, ProblemKind.VEHICLES_WITHOUT_CARD) for there, _ in found.values()}
    shown = []
    for lane in lanes:
        troubles = [one for one in lane.troubles if (lane.lane_id, one.kind) not in without]
        if lane.lane_id in found:
            there, times = found[lane.lane_id]
            said = text("contradiction.elsewhere", count=times, lane=names.get(there, there))
            troubles.append(LaneTrouble(ProblemKind.READERS_SWAPPED, said, there))
        shown.append(replace(lane, troubles=tuple(troubles)))
    return tuple(shown)


def _not_open(lane: LaneSnapshot) -> Iterator[LaneTrouble]:
    """Yield the trouble of a gate that did not obey, while it is seen anywhere but open: an open one blocks nobody."""
    if lane.position in _SEEN_ELSEWHERE:
        yield from (trouble for trouble in lane.troubles if trouble.kind is ProblemKind.GATE_DOES_NOT_MOVE)


def _explained(trouble: LaneTrouble, devices: Mapping[int, DeviceSnapshot], limits: Limits | None) -> LaneTrouble:
    """Return an unknown position as the fault of the limit switches if both are on; other troubles unchanged.

    A switch that sticks for a moment is no fault: the trouble begins after the position was unknown for a whole travel.
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
