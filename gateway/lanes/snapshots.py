"""Snapshots of lanes, devices and areas: frozen values that the page and the interface serialise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.problems import ProblemKind
from gateway.domain.wall_time import WallMicros
from gateway.lanes.machine.state.orders import Order
from gateway.texts import Text, Words, text


class Phase(StrEnum):
    """The phase of a lane's vehicle."""

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
class Refusals:
    """Messages of a device that were dropped because they cannot be read or may not be accepted.

    Attributes:
        count: how many, since the gateway started.
        in_a_row: how many since the last message that was accepted.
        reason: why the last one was refused.
        said: the begin of the last one, printable and without secrets; "" when it was empty.
        at: when the last one came (wall micros).
    """

    count: int
    in_a_row: int
    reason: str
    said: str
    at: WallMicros

    def after(self, reason: str, said: str, *, at: WallMicros) -> Refusals:
        """Return the refusals with one more."""
        return Refusals(count=self.count + 1, in_a_row=self.in_a_row + 1, reason=reason, said=said, at=at)


NO_REFUSALS = Refusals(count=0, in_a_row=0, reason="", said="", at=0)


@dataclass(frozen=True, slots=True)
class DeviceSnapshot:
    """A device of the site file as it is now.

    Attributes:
        device_id: its id.
        name: its name in the site file.
        kind: its driver, e.g. "modbus-gate".
        online: whether it answers; None before the first answer or loss.
        since: when `online` took its value, in wall micros.
        detail: why it is lost, "" while online.
        answers: while lost, whether it answers but is of no use: it refuses, or has another key.
        tampered: whether it last reported its housing as open.
        position: the gate's position, None for a device that has reported none.
        points: its inputs.
        refusals: its messages that were refused.
        has_read: whether it has read a card, a plate or keys since it was connected, or connected anew by a change of
            the site file.
    """

    device_id: int
    name: str
    kind: str
    online: bool | None
    since: WallMicros
    detail: str
    position: GatePosition | None
    points: tuple[PointSnapshot, ...]
    answers: bool = False
    tampered: bool = False
    refusals: Refusals = NO_REFUSALS
    has_read: bool = False

    @property
    def away(self) -> Text:
        """One sentence for people: the device is away, or it answers but is of no use."""
        state = "useless" if self.answers else "silent"
        if self.detail:
            return text(f"device.away_for.{state}", device=self.name, why=self.detail)
        return text(f"device.away.{state}", device=self.name)


@dataclass(frozen=True, slots=True)
class LaneTrouble:
    """Something wrong with a lane: its kind, words for people, and which input or device where there are several.

    Attributes:
        device_id: the device to blame, None where it is not one device's.
    """

    kind: ProblemKind
    text: Words
    subject: str = ""
    device_id: int | None = None


@dataclass(frozen=True, slots=True)
class CommandSnapshot:
    """The last command to a lane's gate: how far it has come, and why it went no further."""

    id: str
    action: GateAction
    state: CommandState
    by: str
    requested_at: WallMicros
    detail: Words

    @classmethod
    def of(cls, command: Command, *, requested_at: int) -> CommandSnapshot:
        """Return a command as it is now."""
        by = command.source.removeprefix("user:")
        return cls(command.command_id, command.action, command.state, by, requested_at, command.detail)


@dataclass(frozen=True, slots=True)
class LanePoint:
    """An input of a lane, or its gate.

    Attributes:
        role: its role in the lane, "gate" for the gate's position.
        device_id: the device that reports it.
        name: its name at the device, "" for the position.
        state: as it counts now: unknown once its report is too old.
        since: when it took that state, in wall micros; None if it was never read.
    """

    role: str
    device_id: int
    name: str
    state: PointState | GatePosition
    since: WallMicros | None


@dataclass(frozen=True, slots=True)
class LaneSnapshot:
    """A lane as it is now.

    Attributes:
        lane_id: its id.
        name: its name.
        direction: "entry", "exit" or "two-way".
        phase: the phase of its vehicle.
        since: when the phase began, in wall micros.
        gate_id: its gate's device id.
        position: the gate's position, `UNKNOWN` while not fresh.
        vehicle: the state of the arming loop.
        under: the state of the closing loop.
        can_stop: whether its gate has a command to stop.
        can_close: whether the gateway may ever close its gate: never where nothing reports where the gate is.
        note: the reason of its state in one line, orders and troubles aside; "" when all is as usual.
        order: the standing order that counts: "hold_open", "lock_down" or "".
        order_text: the order in one sentence, with who gave it and why.
        standing: the order in force; None while the schedule counts and gives none.
        unable: why it cannot admit vehicles or let them out; empty while it can.
        troubles: what is wrong and lasts; if a person stopped the gate, that comes first.
        command: the last command to its gate since the gateway started.
        cameras: the ids of the cameras that see it.
        points: its gate and its inputs.
    """

    lane_id: str
    name: str
    direction: str
    phase: Phase
    since: WallMicros
    gate_id: int
    position: GatePosition
    vehicle: PointState
    under: PointState
    note: Words
    can_stop: bool = False
    can_close: bool = True
    order: str = ""
    order_text: Words = ""
    standing: Order | None = None
    troubles: tuple[LaneTrouble, ...] = ()
    unable: tuple[LaneTrouble, ...] = ()
    command: CommandSnapshot | None = None
    cameras: tuple[int, ...] = ()
    points: tuple[LanePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class AreaSnapshot:
    """An area as it is now: how many are inside, and how many may be (None: no limit)."""

    area_id: str
    name: str
    count: int
    limit: int | None
