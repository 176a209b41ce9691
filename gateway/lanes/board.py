"""The board: what is seen of lanes and devices from outside, as frozen values. Pages and the interface read it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import Command, GateAction
from gateway.lanes.orders import OrderKind


class Phase(StrEnum):
    """Where a lane is with its vehicle."""

    IDLE = "idle"
    ARMED = "armed"
    DECIDING = "deciding"
    OPENING = "opening"
    OPEN = "open"
    PASSING = "passing"
    CLEARED = "cleared"
    CLOSING = "closing"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class PointSnapshot:
    """An input as last reported."""

    name: str
    state: PointState


@dataclass(frozen=True, slots=True)
class DeviceSnapshot:
    """A device of the site file as it is now.

    Attributes:
        device_id: its id.
        name: its name in the site file.
        kind: its driver, e.g. "modbus-gate".
        online: whether it answers; None before the first answer or loss.
        since: wall micros since when that is so.
        detail: why it is lost, "" while online.
        position: of a gate, else None.
        points: its inputs.
    """

    device_id: int
    name: str
    kind: str
    online: bool | None
    since: int
    detail: str
    position: GatePosition | None
    points: tuple[PointSnapshot, ...]


@dataclass(frozen=True, slots=True)
class LaneSnapshot:
    """A lane as it is now.

    Attributes:
        lane_id: its id.
        name: its name.
        direction: "entry", "exit" or "two-way".
        phase: where it is with its vehicle.
        since: wall micros since when.
        gate_id: its gate's device id.
        position: the gate's position, `UNKNOWN` while not fresh.
        vehicle: the arming loop.
        under: the closing loop.
        note: why it is as it is, in one line; "" when all is as usual.
        order: the standing order that counts: "hold_open", "lock_down" or "".
        troubles: what is wrong and lasts, a sentence each.
    """

    lane_id: str
    name: str
    direction: str
    phase: Phase
    since: int
    gate_id: int
    position: GatePosition
    vehicle: PointState
    under: PointState
    note: str
    order: str = ""
    troubles: tuple[str, ...] = ()


class Board(Protocol):
    """What the web layer knows of lanes. Reading never waits; every change bumps the store's `Changes`."""

    def lanes(self) -> tuple[LaneSnapshot, ...]:
        """Every lane, in the site file's order."""
        ...

    def devices(self) -> tuple[DeviceSnapshot, ...]:
        """Every device, in the site file's order."""
        ...

    async def command(self, *, device_id: int, action: GateAction, source: str) -> Command:
        """Record a command for a gate and set it going; returns once it is on disk.

        Raises NotFoundError for an id that is no gate of this site, CommandRefused when the device is away or the
        command is not allowed now (the refusal is recorded), StoreError when it cannot be recorded.
        """
        ...

    async def order(self, *, lane_id: str, kind: OrderKind | None, reason: str, source: str) -> None:
        """Hold a lane open, lock it down, or let it work as usual against its schedule; None: as the schedule says.

        Raises NotFoundError for an id that is no lane of this site.
        """
        ...
