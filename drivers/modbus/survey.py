"""A technician's survey of a line: the units on it, and the values of one unit. It only reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from drivers.bus.bus import OPEN_SECONDS, Bus
from drivers.contract import DeviceFault, GatePosition, LineDown, LinkError, PointState, ProtocolViolation
from drivers.gates.polls import limit_position
from drivers.modbus.frames import Framing
from drivers.modbus.messages import Read, Table
from drivers.modbus.points_and_position import points_of
from drivers.modbus.profile import GateProfile, RegisterPosition, UnitProfile
from drivers.modbus.unit_requests import ModbusRequests

_PATIENCE = 5.0
OPEN_PATIENCE = OPEN_SECONDS + 1.0  # longer than opening takes, so that the error is the reason why it failed
_LOOK = 0.02
_FIRST_REGISTER = Read(Table.HOLDING_REGISTER, 0, 1)


@dataclass(frozen=True, slots=True)
class Answered:
    """A unit that answered.

    Attributes:
        unit: its address.
        words: its answer to the read of its first holding register, in words.
        is_clear: False when the answer was garbled, as at a wrong speed or with two units at one address.
    """

    unit: int
    words: str
    is_clear: bool


@dataclass(frozen=True, slots=True)
class UnitValues:
    """The values of one unit, in words for people."""

    position: str
    points: dict[str, str]
    readings: dict[str, str]


async def line_up(bus: Bus, *, monotonic: Callable[[], float] = time.monotonic) -> None:
    """Wait until the line is open. Raises LinkError with the reason when it does not open in time."""
    until = monotonic() + OPEN_PATIENCE
    while bus.down_reason is not None:
        if monotonic() >= until:
            raise LinkError(bus.down_reason)
        await asyncio.sleep(_LOOK)


async def ask_for_unit(
    bus: Bus, unit: int, *, framing: Framing, timeout: float, monotonic: Callable[[], float] = time.monotonic
) -> Answered | None:
    """Ask whether a unit is there. Any answer counts, even a refusal; None when nothing came within `timeout`.

    A line that is lost meanwhile is waited for, and the unit asked again. Raises LinkError when the line stays down.
    """
    requests = ModbusRequests(bus=bus, unit=unit, framing=framing, timeout=timeout)
    while True:
        await line_up(bus, monotonic=monotonic)
        try:
            values, _ = await requests.read(_FIRST_REGISTER, deadline=monotonic() + _PATIENCE)
        except DeviceFault as refusal:
            return Answered(unit, refusal.said, is_clear=True)
        except ProtocolViolation as violation:
            return Answered(unit, str(violation), is_clear=False)
        except LineDown:
            continue  # the bus opens the line again; then this unit is asked again
        except LinkError:
            return None
        return Answered(unit, f"register 0 holds {values[0]}", is_clear=True)


async def read_unit(
    requests: ModbusRequests, profile: UnitProfile, *, monotonic: Callable[[], float] = time.monotonic
) -> UnitValues:
    """Read everything that the profile names. A refused reading holds the refusal's text. Raises what a read raises."""
    held: dict[tuple[Table, int], int] = {}
    for read in profile.reads():
        values, _ = await requests.read(read, deadline=monotonic() + _PATIENCE)
        for place, value in enumerate(values):
            held[read.table, read.address + place] = profile.ordered(read.table, value)
    readings: dict[str, str] = {}
    for name, reading in profile.readings.items():
        read = Read(reading.table, profile.wire_address(reading.address), reading.words)
        try:
            values, _ = await requests.read(read, deadline=monotonic() + _PATIENCE)
        except DeviceFault as refusal:
            readings[name] = refusal.said
            continue
        words = tuple(profile.ordered(reading.table, value) for value in values)
        readings[name] = reading.words_of(words, word_order=profile.word_order)
    points = points_of(profile, held)
    return UnitValues(_position(profile, held, points), {name: state.value for name, state in points.items()}, readings)


def _position(profile: UnitProfile, held: dict[tuple[Table, int], int], points: dict[str, PointState]) -> str:
    """Derive the position, in words, from one poll, which does not show in which direction a gate moves."""
    source = profile.position if isinstance(profile, GateProfile) else None
    if source is None:
        return ""
    if isinstance(source, RegisterPosition):
        value = held[source.table, profile.wire_address(source.address)]
        return f"{source.position(value).value} ({value})"
    closed, opened = points[source.closed_point], points[source.open_point]
    if closed is opened is PointState.OFF:
        return "between the limits"
    return limit_position(closed=closed, opened=opened, before=GatePosition.UNKNOWN, commanded=None).value
