"""A gate whose limit switches are points of another device, for example an input module."""

from __future__ import annotations

from dataclasses import dataclass

from drivers.contract import (
    DeviceLost,
    Forbidden,
    Gate,
    GateMoved,
    GatePosition,
    MonotonicSeconds,
    PointChanged,
    PointState,
    PolledDriver,
    Report,
    Reports,
)
from drivers.gates.polls import limit_position
from drivers.gates.profile_parts import LimitPosition

_NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class LimitPoint:
    """A named input of a device."""

    device_id: int
    point: str


@dataclass(frozen=True, slots=True)
class Limits:
    """A gate's limit switches: which input is on while it is closed, and which while it is open."""

    closed: LimitPoint
    opened: LimitPoint


def limits_of(device_id: int, source: object) -> Limits | None:
    """Return the limit switches that a profile's `position` names; None when the position comes from elsewhere."""
    if not isinstance(source, LimitPosition):
        return None
    return Limits(LimitPoint(device_id, source.closed_point), LimitPoint(device_id, source.open_point))


class LimitedGate:
    """A `drivers.contract.Gate` that passes commands to one gate and derives its position from points of other devices.

    The gate's own reports of its position are ignored. `hear` must be called with every report of the devices that
    have the limit switches.

    Args:
        gate: the gate that takes the commands.
        closed: the input that is on while the gate is closed.
        opened: the input that is on while the gate is open.
    """

    def __init__(self, *, gate: Gate, closed: LimitPoint, opened: LimitPoint) -> None:
        self._gate = gate
        self._read: dict[LimitPoint, tuple[PointState, MonotonicSeconds]] = dict.fromkeys(
            (closed, opened), (PointState.UNKNOWN, _NEVER)
        )
        self._closed, self._opened = closed, opened
        self.limits = Limits(closed, opened)
        self._known = GatePosition.UNKNOWN
        self._commanded: GatePosition | None = None

    @property
    def device_id(self) -> int:
        """The gate's id in the site file."""
        return self._gate.device_id

    async def run(self, reports: Reports) -> None:
        """Run the gate until cancelled, and drop its own reports of its position."""

        def without_position(report: Report) -> None:
            if not isinstance(report, GateMoved):
                reports(report)

        await self._gate.run(without_position)

    def watch_closely(self, *, until: MonotonicSeconds) -> None:
        """Poll the gate as fast as its line allows until `until`."""
        if isinstance(self._gate, PolledDriver):
            self._gate.watch_closely(until=until)

    async def open(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the gate to open."""
        await self._gate.open(deadline=deadline, forbidden=forbidden)
        self._commanded = GatePosition.OPENING

    async def close(self, *, deadline: MonotonicSeconds, forbidden: Forbidden) -> None:
        """Command the gate to close."""
        await self._gate.close(deadline=deadline, forbidden=forbidden)
        self._commanded = GatePosition.CLOSING

    async def stop(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the gate to stop where it is."""
        await self._gate.stop(deadline=deadline, forbidden=forbidden)
        self._commanded = GatePosition.STOPPED

    def hear(self, report: Report) -> tuple[Report, ...]:
        """Return the position due after this report, empty for a report of anything but the limit switches.

        The position is stamped with the older of the two points' instants; an unknown one with the newer.
        """
        if isinstance(report, DeviceLost):
            return self._lost(report)
        if not isinstance(report, PointChanged):
            return ()
        point = LimitPoint(report.device_id, report.point)
        if point not in self._read:
            return ()
        self._read[point] = (report.state, report.at)
        return (self._position(),)

    def _lost(self, lost: DeviceLost) -> tuple[Report, ...]:
        gone = [point for point in self._read if point.device_id == lost.device_id]
        if not gone:
            return ()
        self._read.update(dict.fromkeys(gone, (PointState.UNKNOWN, lost.at)))
        self._known = GatePosition.UNKNOWN
        return (GateMoved(self.device_id, GatePosition.UNKNOWN, lost.at),)

    def _position(self) -> GateMoved:
        (closed, closed_at), (opened, opened_at) = self._read[self._closed], self._read[self._opened]
        position = limit_position(closed=closed, opened=opened, before=self._known, commanded=self._commanded)
        if position is not GatePosition.UNKNOWN:
            self._known, self._commanded = position, None
        at = max(closed_at, opened_at) if position is GatePosition.UNKNOWN else min(closed_at, opened_at)
        return GateMoved(self.device_id, position, at)
