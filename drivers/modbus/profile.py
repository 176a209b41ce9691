"""The models of a profile file, which describes a device on Modbus."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from drivers.contract import GatePosition
from drivers.gates.profile_parts import Commands, LimitPosition, Output, why_equal, why_gives_command
from drivers.modbus.frames import Read, Table, Write, WriteMany, coil_word
from drivers.profile_file import Part, PartName, numbers_for_keys, profile_of, read_file

Word = Annotated[int, Field(ge=0, le=0xFFFF)]
Address = Annotated[int, Field(ge=0, le=65_536)]
Register = Literal[Table.HOLDING_REGISTER, Table.INPUT_REGISTER]
Writable = Literal[Table.COIL, Table.HOLDING_REGISTER]
Order = Literal["high_first", "low_first"]


class Line(Part):
    """The maker's default settings of the device's line, for people and `probe`. The gateway uses the site file's."""

    framing: Literal["tcp", "rtu"] = "rtu"
    baud: int | None = None
    parity: Literal["none", "even", "odd"] = "none"
    stop_bits: Literal[1, 2] = 1
    unit: int = Field(default=1, ge=0, le=255)


class Point(Part):
    """A named input: one value of a table of bits, or some bits of a register.

    Attributes:
        table: the table that holds it.
        address: its address as the file counts; see `UnitProfile.address_base`.
        mask: which bits of a register count: the point is on when any of them is. Only for registers.
        inverted: whether the point is on when the device says off, as with normally closed contacts.
        stale_ms: the age limit: the point is unknown when it was not read for so long. None: it keeps its state until
            the device counts as lost.
    """

    table: Table
    address: Address
    mask: Word | None = Field(default=None, gt=0)
    inverted: bool = False
    stale_ms: int | None = Field(default=None, ge=200, le=2_000)

    @model_validator(mode="after")
    def _mask_where_needed(self) -> Self:
        if self.table.holds_bits and self.mask is not None:
            raise ValueError("a mask is for registers")
        if not self.table.holds_bits and self.mask is None:
            raise ValueError("a point in a register needs a mask")
        return self

    def is_on(self, value: int) -> bool:
        """Return whether the point is on when the device holds `value` there."""
        return bool(value & (1 if self.mask is None else self.mask)) != self.inverted


class PositionRule(Part):
    """A rule of `RegisterPosition.when`: if the masked register equals a number, the position is `is_`."""

    mask: Word = 0xFFFF
    equals: Word
    is_: GatePosition = Field(alias="is")


class RegisterPosition(Part):
    """The position of a gate whose device gives it as a number in a register.

    Attributes:
        table: holding or input registers.
        address: the register's address as the file counts.
        mask: which bits of the register count for `values`.
        values: the position that each number means; other numbers mean UNKNOWN.
        when: rules for a register that combines several things. The first rule that fits gives the position. Given
            instead of `values`.
    """

    table: Register
    address: Address
    mask: Word = 0xFFFF
    values: dict[int, GatePosition] = Field(default_factory=dict)
    when: tuple[PositionRule, ...] = ()

    _numbers = field_validator("values", mode="before")(numbers_for_keys)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.values) == bool(self.when):
            raise ValueError("give either values or when")
        return self

    def position(self, value: int) -> GatePosition:
        """Return the position that the register's value means; UNKNOWN when nothing fits."""
        for rule in self.when:
            if value & rule.mask == rule.equals:
                return rule.is_
        return self.values.get(value & self.mask, GatePosition.UNKNOWN)


def _kind_of_position(raw: object) -> str:
    if isinstance(raw, LimitPosition) or (isinstance(raw, dict) and {"closed_point", "open_point"} & raw.keys()):
        return "limits"
    return "register"


Position = Annotated[
    Annotated[RegisterPosition, Tag("register")] | Annotated[LimitPosition, Tag("limits")],
    Discriminator(_kind_of_position),
]


class Reading(Part):
    """A number for technicians; read when somebody asks, never by the polls.

    Attributes:
        table: holding or input registers.
        address: the first register's address as the file counts.
        words: the number of registers, 1 or 2.
        word_order: the order of two registers; the profile's own when left out.
        mask: which bits count; not for signed numbers.
        signed: whether the number is in two's complement.
        scale: the factor from the raw number to `unit`.
        unit: the unit of measurement.
        unknown: the raw number by which the device says that it does not know.
        names: words for certain numbers.
    """

    table: Register
    address: Address
    words: Literal[1, 2] = 1
    word_order: Order | None = None
    mask: int | None = Field(default=None, gt=0, le=0xFFFF_FFFF)
    signed: bool = False
    scale: float = 1.0
    unit: str = ""
    unknown: int | None = None
    names: dict[int, str] = Field(default_factory=dict)

    _numbers = field_validator("names", mode="before")(numbers_for_keys)

    def words_of(self, values: tuple[int, ...], *, word_order: Order) -> str:
        """Format the registers' values for people."""
        in_order = values if (self.word_order or word_order) == "high_first" else values[::-1]
        number = 0
        for value in in_order:
            number = number << 16 | value
        if self.mask is not None:
            number &= self.mask
        if self.signed and number >> (16 * self.words - 1):
            number -= 1 << 16 * self.words
        if number == self.unknown:
            return "unknown"
        if number in self.names:
            return self.names[number]
        return (
            f"{number * self.scale:g} {self.unit}".rstrip() if self.scale != 1.0 else f"{number} {self.unit}".rstrip()
        )


class PulseBy(StrEnum):
    """The side that ends the pulse of a command: the device or the host (the gateway)."""

    DEVICE = "device"
    HOST = "host"


class Command(Part):
    """The write that gives a command.

    Attributes:
        write: the table: coils (function 5) or holding registers (function 6, or 16 with `many`).
        address: the address as the file counts.
        value: true or false, or a number that is sent as it is, to coils too (some take the pulse length there).
        many: whether to use function 16 even for a single register, for devices that lack function 6.
        pulse_by: `device`: one write, and the device ends the pulse itself. `host`: the gateway writes `release` after
            `pulse_ms`. That is the last resort: a gateway that dies in between leaves the output on.
        pulse_ms: the length of the pulse, where the gateway ends it or the device takes a length.
        pulse_unit_ms: given for a device that takes the length as the written value, in this unit; then `value` must be
            left out.
        pulse_range: the least and the greatest length that the device takes, in its unit.
        release: the value that ends a pulse of the gateway.
        acknowledged_by: `echo`: the device must repeat the write; `answer`: any answer to the write counts, for devices
            that put a value of their own there.
        idempotent: whether giving the command again, while the device obeys it, changes nothing. False for step-by-step
            inputs: such a command is refused when the gate already does or has done what it asks, and when the gate's
            position is unknown.
    """

    write: Writable
    address: Address
    value: bool | Word = True
    many: bool = False
    pulse_by: PulseBy = PulseBy.DEVICE
    pulse_ms: int = Field(default=500, ge=50, le=2_000)
    pulse_unit_ms: float | None = Field(default=None, gt=0, le=1_000)
    pulse_range: tuple[Word, Word] = (1, 0xFFFF)
    release: bool | Word = False
    acknowledged_by: Literal["echo", "answer"] = "echo"
    idempotent: bool = True

    @model_validator(mode="after")
    def _pulse_fits(self) -> Self:
        if self.many and self.write is not Table.HOLDING_REGISTER:
            raise ValueError("many is for registers")
        if self.pulse_unit_ms is None:
            return self
        if self.pulse_by is PulseBy.HOST or "value" in self.model_fields_set:
            raise ValueError("pulse_unit_ms: the device makes the pulse and its length is the value")
        lowest, highest = self.pulse_range
        count = self.pulse_ms / self.pulse_unit_ms
        if count != int(count) or not lowest <= count <= highest:
            raise ValueError(
                f"pulse_ms {self.pulse_ms} is no whole number of {self.pulse_unit_ms:g} ms from {lowest} to {highest}"
            )
        return self

    @property
    def pulse_seconds(self) -> float | None:
        """The seconds after which the gateway ends the pulse; None when the device ends it."""
        return self.pulse_ms / 1000 if self.pulse_by is PulseBy.HOST else None

    @property
    def written(self) -> bool | int:
        """The value that is written: `value`, or the pulse's length in the device's unit."""
        return self.value if self.pulse_unit_ms is None else int(self.pulse_ms / self.pulse_unit_ms)


class Preparation(Part):
    """A setting that is written whenever the device connects, before it counts as connected.

    Attributes:
        what: the setting's name for people, in the error when the device does not take it.
        write: the table: coils or holding registers.
        address: the address as the file counts.
        value: the value that must be there.
        many: whether to use function 16 even for a single register.
        read_back: whether the setting is read first, written only if it differs (its memory may wear out), and then
            read again; a value that still differs is a fault. Otherwise it is written without a read.
    """

    what: str = Field(min_length=1, max_length=80)
    write: Writable
    address: Address
    value: bool | Word
    many: bool = False
    read_back: bool = True


class Expired(Part):
    """The place where the device shows that its watchdog ran out. The device is prepared again then."""

    table: Table
    address: Address
    mask: Word = 0xFFFF
    equals: Word


class Heartbeat(Part):
    """A register that must be written again and again, or the device switches its outputs off.

    Attributes:
        write: the table: coils or holding registers.
        address: the address as the file counts.
        values: the values that are written in turn. Neighbours differ, because some devices heed only a change.
        every_ms: the interval between two writes.
        expired: the place where the device shows that its watchdog ran out; None for none.
    """

    write: Writable
    address: Address
    values: tuple[bool | Word, ...] = Field(default=(1, 2), min_length=2, max_length=16)
    every_ms: int = Field(ge=100, le=60_000)
    expired: Expired | None = None

    @model_validator(mode="after")
    def _values_change(self) -> Self:
        if any(a == b for a, b in zip(self.values, (*self.values[1:], self.values[0]), strict=True)):
            raise ValueError("values: neighbours must differ")
        return self


class Block(Part):
    """A range of registers or bits that is read as a whole, because the device requires or prefers that."""

    table: Table
    address: Address
    count: int = Field(ge=1, le=2_000)

    @model_validator(mode="after")
    def _one_read(self) -> Self:
        if self.count > self.table.longest_read:
            raise ValueError(f"count: one read gives at most {self.table.longest_read}")
        return self


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
