"""The parts of a profile file: points, positions, readings, commands, preparations and the heartbeat."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import (
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from drivers.contract import GatePosition
from drivers.gates.profile_parts import LimitPosition
from drivers.modbus.messages import Table
from drivers.profile_file import Part, numbers_for_keys

Word = Annotated[int, Field(ge=0, le=0xFFFF)]
Address = Annotated[int, Field(ge=0, le=65_536)]
Register = Literal[Table.HOLDING_REGISTER, Table.INPUT_REGISTER]
Writable = Literal[Table.COIL, Table.HOLDING_REGISTER]
Order = Literal["high_first", "low_first"]


class Point(Part):
    """A named input: one bit of a table of bits, or some bits of a register.

    Attributes:
        table: where it is.
        address: in the file's own counting; see `address_base`.
        mask: which bits of a register count: the point is on when any of them is. Only for registers.
        inverted: on when the device says off, as with normally closed contacts.
        stale_ms: the point is unknown when it was not read for so long; otherwise until the device counts as lost.
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
    """The register, masked, equals a number: then the position is this."""

    mask: Word = 0xFFFF
    equals: Word
    is_: GatePosition = Field(alias="is")


class RegisterPosition(Part):
    """The device says its position in a register, by number.

    Attributes:
        table: holding or input registers.
        address: in the file's own counting.
        mask: which bits of the register count for `values`.
        values: what each number means; others are unknown positions.
        when: for registers that put several things together: the first rule that fits says the position. Instead of
            `values`.
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
        """Return the position that the register's value means."""
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
        address: of the first register, in the file's own counting.
        words: 1 or 2 registers.
        word_order: of two registers; the file's own when left out.
        mask: which bits count; not for signed numbers.
        signed: two's complement.
        scale: the number is multiplied by this.
        unit: what it is measured in.
        unknown: the number by which the device says that it does not know.
        names: what numbers mean.
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
    """The one who ends the pulse of a command: the device or the host."""

    DEVICE = "device"
    HOST = "host"


class Command(Part):
    """The write that gives a command.

    Attributes:
        write: coils (function 5) or holding registers (function 6, or 16 with `many`).
        address: in the file's own counting.
        value: true and false for a coil; a number is sent as it is, to coils too (some take a pulse length there).
        many: function 16 even for a single register, for devices that lack function 6.
        pulse_by: `device`: one write, and the device itself ends the pulse. `host`: the release is written after
            `pulse_ms`; the last resort, because a gateway that dies in between leaves the output on.
        pulse_ms: length of the pulse, where the host makes it or the device takes it.
        pulse_unit_ms: the device takes the length as the written value, in this unit; then there is no `value`.
        pulse_range: least and greatest value that it takes.
        release: what ends a host's pulse.
        acknowledged_by: `echo`: the device must repeat the write; `answer`: any answer to it counts, for devices that
            put a value of their own there.
        idempotent: whether giving it again, while it is being obeyed, changes nothing. Step-by-step inputs are not:
            such a command is refused while the gate already does, or has done, what it asks, or while nobody knows.
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
        """The seconds for which the host holds the output; None when the device does."""
        return self.pulse_ms / 1000 if self.pulse_by is PulseBy.HOST else None

    @property
    def written(self) -> bool | int:
        """The number that is written: the value, or the pulse's length in the device's unit."""
        return self.value if self.pulse_unit_ms is None else int(self.pulse_ms / self.pulse_unit_ms)


class Preparation(Part):
    """A write whenever the device comes (back), before it counts as connected.

    Attributes:
        what: for people, when the device does not take it.
        write: a coil or a holding register.
        address: in the file's own counting.
        value: what must be there.
        many: function 16 even for a single register.
        read_back: it is read first and written only if it differs (settings live in memory that wears out), and then
            read again: what differs still is a fault. Otherwise it is only written.
    """

    what: str = Field(min_length=1, max_length=80)
    write: Writable
    address: Address
    value: bool | Word
    many: bool = False
    read_back: bool = True


class Expired(Part):
    """The place where the device shows that its watchdog ran out; it is prepared anew then."""

    table: Table
    address: Address
    mask: Word = 0xFFFF
    equals: Word


class Heartbeat(Part):
    """A register that must be written again and again, or the device switches its outputs off.

    Attributes:
        write: a coil or a holding register.
        address: in the file's own counting.
        values: written in turn; two neighbours differ, because some devices heed only a change.
        every_ms: how often.
        expired: where it is seen that the device gave up waiting.
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
    """Registers or bits that the device gives only, or better, all at once."""

    table: Table
    address: Address
    count: int = Field(ge=1, le=2_000)

    @model_validator(mode="after")
    def _one_read(self) -> Self:
        if self.count > self.table.longest_read:
            raise ValueError(f"count: one read gives at most {self.table.longest_read}")
        return self
