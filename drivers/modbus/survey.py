"""A technician's survey of a line: the units on it, and the values of one unit. It only reads."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pymodbus.framer import FramerRTU

from drivers.bus.bus import OPEN_SECONDS, Bus
from drivers.bus.wire import Direction
from drivers.contract import DeviceFault, GatePosition, LineDown, LinkError, PointState, ProtocolViolation
from drivers.gates.polls import limit_position
from drivers.modbus.frames import Framing, Read, Table
from drivers.modbus.polled_unit import points_of
from drivers.modbus.profile import GateProfile, RegisterPosition, UnitProfile
from drivers.modbus.unit_requests import ModbusRequests

_PATIENCE = 5.0
OPEN_PATIENCE = OPEN_SECONDS + 1.0  # longer than opening takes, so that the error is the reason why it failed
_LOOK = 0.02
_FIRST_REGISTER = Read(Table.HOLDING_REGISTER, 0, 1)

LATE_SECONDS = 0.7
"""Seconds during which late answers are still collected."""

_MBAP = struct.Struct(">HHHB")
_READS = frozenset({1, 2, 3, 4})
_WRITES = frozenset({5, 6, 15, 16})
_REFUSAL = 0x80


@dataclass(frozen=True, slots=True)
class AnsweringUnit:
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
) -> AnsweringUnit | None:
    """Ask whether a unit is there. Any answer counts, even a refusal; None when nothing came within `timeout`.

    A line that is lost meanwhile is waited for, and the unit asked again. Raises LinkError when the line stays down.
    """
    requests = ModbusRequests(bus=bus, unit=unit, framing=framing, timeout=timeout)
    while True:
        await line_up(bus, monotonic=monotonic)
        try:
            values, _ = await requests.read(_FIRST_REGISTER, deadline=monotonic() + _PATIENCE)
        except DeviceFault as refusal:
            return AnsweringUnit(unit, refusal.said, is_clear=True)
        except ProtocolViolation as violation:
            return AnsweringUnit(unit, str(violation), is_clear=False)
        except LineDown:
            continue  # the bus opens the line again; then this unit is asked again
        except LinkError:
            return None
        return AnsweringUnit(unit, f"register 0 holds {values[0]}", is_clear=True)


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


@dataclass(frozen=True, slots=True)
class TracedAnswer:
    """A whole answer of a unit. `after` is the seconds since that unit was asked; None when it never was."""

    unit: int
    after: float | None


class AnswerTrace:
    """A receiver of a line's trace that finds the answers in it."""

    def __init__(self, *, framing: Framing) -> None:
        self._framing = framing
        self._asked: dict[int, float] = {}
        self._received: dict[Direction, bytearray] = {Direction.RECEIVED: bytearray(), Direction.DROPPED: bytearray()}
        self._answers: dict[int, TracedAnswer] = {}

    def __call__(self, direction: Direction, data: bytes, at: float) -> None:
        """Take one piece of the line's bytes, with its direction and instant."""
        if direction is Direction.SENT:
            place = 0 if self._framing == "rtu" else _MBAP.size - 1
            if len(data) > place:
                self._asked[data[place]] = at
            return
        received = self._received[direction]
        received += data
        taken = 0
        for end, unit in _whole_answers(self._framing, bytes(received)):
            taken = end
            asked = self._asked.get(unit)
            self._answers.setdefault(unit, TracedAnswer(unit, None if asked is None else at - asked))
        del received[:taken]

    def answers(self) -> tuple[TracedAnswer, ...]:
        """Return the first answer of each unit that was heard, by address."""
        return tuple(self._answers[unit] for unit in sorted(self._answers))


def _whole_answers(framing: Framing, received: bytes) -> Iterator[tuple[int, int]]:
    """Iterate over whole answers: where each ends, and the unit that gave it. Bytes between them are skipped."""
    start = 0
    while start < len(received):
        length = _rtu_length(received[start:]) if framing == "rtu" else _tcp_length(received[start:])
        if length:
            start += length
            yield start, received[start - length] if framing == "rtu" else received[start - length + _MBAP.size - 1]
        else:
            start += 1


def _rtu_length(frame: bytes) -> int:
    """Return the length of the answer at the start of these bytes; 0 when there is none, or not all of it."""
    if len(frame) < 5:
        return 0
    function = frame[1]
    if function & _REFUSAL:
        length = 5
    elif function in _READS:
        length = 5 + frame[2]
    elif function in _WRITES:
        length = 8
    else:
        return 0
    if len(frame) < length:
        return 0
    body, checksum = frame[: length - 2], frame[length - 2 : length]
    return length if FramerRTU.compute_CRC(body).to_bytes(2, "big") == checksum else 0


def _tcp_length(frame: bytes) -> int:
    if len(frame) < _MBAP.size + 1:
        return 0
    _, protocol, length, _ = _MBAP.unpack_from(frame)
    whole = _MBAP.size - 1 + length
    return whole if protocol == 0 and 2 < length <= 254 and len(frame) >= whole else 0
