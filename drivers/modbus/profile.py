"""The model of a profile file, which describes a device on Modbus."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from drivers.gates.profile_parts import Commands, LimitPosition, Output, why_equal, why_gives_command
from drivers.modbus.messages import Read, Table, Write, WriteMany, coil_word
from drivers.modbus.profile_parts import (
    Block,
    Command,
    Heartbeat,
    Order,
    Point,
    Position,
    Preparation,
    PulseBy,
    Reading,
    RegisterPosition,
    Writable,
)
from drivers.profile_file import Part, PartName, profile_of, read_file

__all__ = [
    "Command",
    "GateProfile",
    "Point",
    "PulseBy",
    "RegisterPosition",
    "UnitProfile",
    "load_profile",
    "load_unit_profile",
]


class Line(Part):
    """The maker's default settings of the device's line, for people and `probe`. The gateway uses the site file's."""

    framing: Literal["tcp", "rtu"] = "rtu"
    baud: int | None = None
    parity: Literal["none", "even", "odd"] = "none"
    stop_bits: Literal[1, 2] = 1
    unit: int = Field(default=1, ge=0, le=255)


class UnitProfile(Part):
    """A profile of a device that is polled for points, for example an input module.

    Attributes:
        name: the device's name for people.
        address_base: 1 when the file counts addresses from one, as many manuals do.
        word_order: which of two registers comes first in a number of 32 bits.
        byte_order: which byte of a register comes first. Modbus sends the high byte first; some devices do not.
        poll_ms: the interval between two polls.
        reply_ms: how long an answer may take.
        pause_ms: the silence on the line that the device needs before each request.
        read_gap: how many unwanted addresses between two wanted ones may be read along to save a request; 0 for devices
            that refuse addresses which they do not have.
        line: the maker's default settings of the line.
        blocks: ranges that are read only as a whole.
        points: the named inputs.
        readings: numbers for technicians.
        prepare: the writes that set the device up whenever it connects.
        heartbeat: the regular write that satisfies the device's watchdog; None for none.
        unproven: the parts of this profile that were never tried on a device, for people; "" for none.
    """

    name: str = Field(min_length=1, max_length=80)
    address_base: Literal[0, 1] = 0
    word_order: Order = "high_first"
    byte_order: Order = "high_first"
    poll_ms: int = Field(default=100, ge=20, le=500)
    reply_ms: int = Field(default=300, ge=20, le=900)
    pause_ms: int = Field(default=0, ge=0, le=1000)
    read_gap: int = Field(default=0, ge=0, le=100)
    line: Line = Line()
    blocks: tuple[Block, ...] = ()
    points: dict[PartName, Point] = Field(default_factory=dict)
    readings: dict[PartName, Reading] = Field(default_factory=dict)
    prepare: tuple[Preparation, ...] = ()
    heartbeat: Heartbeat | None = None
    unproven: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self._places():
            raise ValueError("nothing is ever read: a device that is never asked cannot be known to be there")
        for place, address in self._addresses():
            if not 0 <= address - self.address_base <= 0xFFFF:
                raise ValueError(f"{place}: address {address} with address_base {self.address_base}")
        return self

    def wire_address(self, address: int) -> int:
        """Convert an address of this file to the 0-based address on the wire."""
        return address - self.address_base

    def ordered(self, table: Table, value: int) -> int:
        """Swap a register's bytes where this device sends the low byte first. The same for reads and writes."""
        if table.holds_bits or self.byte_order == "high_first":
            return value
        return (value & 0xFF) << 8 | value >> 8

    def reads(self) -> tuple[Read, ...]:
        """Return the fewest reads that fetch everything polled. Other addresses are read only in gaps and blocks."""
        blocks = [Read(block.table, self.wire_address(block.address), block.count) for block in self.blocks]
        places = {place for place in self._places() if not any(_holds(block, place) for block in blocks)}
        wanted = [block for block in blocks if any(_holds(block, place) for place in self._places())]
        return (*wanted, *_joined(places, gap=self.read_gap))

    def stale_seconds(self) -> dict[str, float]:
        """Return the age limits, in seconds, of the points that set their own."""
        return {name: point.stale_ms / 1000 for name, point in self.points.items() if point.stale_ms is not None}

    def write_of(self, command: Command) -> Write | WriteMany:
        """Return the write that gives the command."""
        write = self.write(command.write, command.address, command.written, many=command.many)
        any_answer = command.acknowledged_by == "answer"
        return replace(write, any_answer=True) if any_answer and isinstance(write, Write) else write

    def release_of(self, command: Command) -> Write | WriteMany:
        """Return the write that ends the command's pulse, for commands whose pulse the gateway ends."""
        return self.write(command.write, command.address, command.release, many=command.many)

    def write(self, table: Writable, address: int, value: bool | int, *, many: bool = False) -> Write | WriteMany:  # noqa: FBT001 (the profile's own either-or)
        """Make a write of one value. `address` is counted as in the profile's file."""
        word = value
        if isinstance(value, bool):
            word = coil_word(on=value) if table is Table.COIL else int(value)
        word = self.ordered(table, word)
        wire = self.wire_address(address)
        return WriteMany(wire, (word,)) if many else Write(table, wire, word)

    def _places(self) -> set[tuple[Table, int]]:
        """Return table and wire address of everything that is polled."""
        places = {(point.table, self.wire_address(point.address)) for point in self.points.values()}
        if self.heartbeat is not None and self.heartbeat.expired is not None:
            expired = self.heartbeat.expired
            places.add((expired.table, self.wire_address(expired.address)))
        return places

    def _addresses(self) -> Iterable[tuple[str, int]]:
        yield from ((f"points.{name}", point.address) for name, point in self.points.items())
        yield from ((f"readings.{name}", reading.address) for name, reading in self.readings.items())
        yield from ((f"prepare[{number}]", part.address) for number, part in enumerate(self.prepare))
        yield from ((f"blocks[{number}]", block.address) for number, block in enumerate(self.blocks))
        if self.heartbeat is not None:
            yield "heartbeat", self.heartbeat.address
            if self.heartbeat.expired is not None:
                yield "heartbeat.expired", self.heartbeat.expired.address


class GateProfile(UnitProfile):
    """A profile of a device that moves a gate.

    Attributes:
        position: the source of the gate's position; None when this device does not know it.
        commands: the commands that the device takes.
    """

    position: Position | None = None
    commands: Commands[Command]

    @model_validator(mode="after")
    def _limits_are_points(self) -> Self:
        if isinstance(self.position, LimitPosition):
            self.position.check(self.points)
        return self

    @model_validator(mode="after")
    def _commands_differ(self) -> Self:
        outputs = [self._output(name, command) for name, command in self.commands.named()]
        fault = why_equal(outputs) or why_gives_command(outputs, self._other_writes())
        if fault:
            raise ValueError(fault)
        return self

    def outputs(self) -> frozenset[Hashable]:
        """Return the place and the value that each command writes."""
        return frozenset(self._output(name, command).writes for name, command in self.commands.named())

    def _output(self, name: str, command: Command) -> Output:
        held = command.pulse_seconds is not None
        return Output(
            name,
            self._written(command, command.written),
            self._written(command, command.release) if held else None,
            is_step=not command.idempotent,
        )

    def _other_writes(self) -> Iterator[tuple[str, tuple[Table, int, int]]]:
        for number, part in enumerate(self.prepare):
            yield f"prepare[{number}]", self._written(part, part.value)
        if self.heartbeat is not None:
            for value in self.heartbeat.values:
                yield "heartbeat", self._written(self.heartbeat, value)

    def _written(self, part: Command | Preparation | Heartbeat, value: bool | int) -> tuple[Table, int, int]:  # noqa: FBT001 (the profile's own either-or)
        """Return a write's place and value in a form that is equal for writes of the same effect.

        Where the written value is the length of a pulse, all values count as equal: each starts the pulse.
        """
        word = self.write(part.write, part.address, value)
        assert isinstance(word, Write)  # noqa: S101 (not `many`)
        pulses = (command for _, command in self.commands.named() if command.pulse_unit_ms is not None)
        is_pulse = any((command.write, command.address) == (part.write, part.address) for command in pulses)
        return part.write, word.address, coil_word(on=True) if is_pulse else word.value

    def _places(self) -> set[tuple[Table, int]]:
        places = super()._places()
        if isinstance(self.position, RegisterPosition):
            places.add((self.position.table, self.wire_address(self.position.address)))
        return places

    def _addresses(self) -> Iterable[tuple[str, int]]:
        yield from super()._addresses()
        if isinstance(self.position, RegisterPosition):
            yield "position", self.position.address
        yield from ((f"commands.{name}", command.address) for name, command in self.commands.named())


def load_profile(path: Path) -> GateProfile:
    """Read the profile file of a gate. Raises ProfileError with every fault in it."""
    return profile_of(path, read_file(path), GateProfile)


def load_unit_profile(path: Path) -> UnitProfile:
    """Read the profile file of a gate, or of a device that has points alone.

    Raises ProfileError with every fault in it.
    """
    raw = read_file(path)
    return profile_of(path, raw, GateProfile if {"position", "commands"} & raw.keys() else UnitProfile)


def _holds(read: Read, place: tuple[Table, int]) -> bool:
    return read.table is place[0] and read.address <= place[1] < read.address + read.count


def _joined(places: Iterable[tuple[Table, int]], *, gap: int) -> Iterable[Read]:
    """Join near addresses of one table into reads that are at most as long as one request may be.

    `gap` is how many unwanted addresses may lie between two wanted ones.
    """
    table: Table | None = None
    first = last = 0
    for next_table, address in sorted(places):
        if next_table is table and address - last <= 1 + gap and address - first < next_table.longest_read:
            last = address
            continue
        if table is not None:
            yield Read(table, first, last - first + 1)
        table, first, last = next_table, address, address
    if table is not None:
        yield Read(table, first, last - first + 1)
