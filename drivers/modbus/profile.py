"""What a gate controller on Modbus looks like, as data: the model of a profile file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from drivers.contract import DriverError, GatePosition
from drivers.modbus.frames import Read, Table, Write, coil_word

PointName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
Word = Annotated[int, Field(ge=0, le=0xFFFF)]


class ProfileError(DriverError, ValueError):
    """A profile file cannot be used; the text names the file, the place in it and the fault, one per line."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Point(_Part):
    """A named input: one bit of a table of bits, or some bits of a register.

    Attributes:
        table: where it is.
        address: in the file's own counting; see `address_base`.
        mask: which bits of a register count: the point is on when any of them is. Only for registers.
        inverted: on when the device says off, as with normally closed contacts.
    """

    table: Table
    address: int = Field(ge=0, le=65_536)
    mask: Word | None = Field(default=None, gt=0)
    inverted: bool = False

    @model_validator(mode="after")
    def _mask_where_needed(self) -> Self:
        if self.table.holds_bits and self.mask is not None:
            raise ValueError("a mask is for registers")
        if not self.table.holds_bits and self.mask is None:
            raise ValueError("a point in a register needs a mask")
        return self

    def is_on(self, value: int) -> bool:
        """Whether the point is on when the device holds `value` there."""
        return bool(value & (1 if self.mask is None else self.mask)) != self.inverted


class RegisterPosition(_Part):
    """The device says its position in a register, by number.

    Attributes:
        table: holding or input registers.
        address: in the file's own counting.
        mask: which bits of the register count.
        values: what each number means; others are unknown positions.
    """

    table: Literal[Table.HOLDING_REGISTER, Table.INPUT_REGISTER]
    address: int = Field(ge=0, le=65_536)
    mask: Word = 0xFFFF
    values: dict[int, GatePosition] = Field(min_length=1)

    @field_validator("values", mode="before")
    @classmethod
    def _numbers(cls, values: object) -> object:
        """TOML's keys are strings; here they are numbers, decimal or 0x…."""
        if not isinstance(values, dict):
            return values
        return {int(key, 0) if isinstance(key, str) else key: value for key, value in values.items()}


class LimitPosition(_Part):
    """The device has limit switches: the position is derived from two of the points."""

    closed_point: PointName
    open_point: PointName


def _kind_of_position(raw: object) -> str:
    if isinstance(raw, LimitPosition) or (isinstance(raw, dict) and {"closed_point", "open_point"} & raw.keys()):
        return "limits"
    return "register"


Position = Annotated[
    Annotated[RegisterPosition, Tag("register")] | Annotated[LimitPosition, Tag("limits")],
    Discriminator(_kind_of_position),
]


class PulseBy(StrEnum):
    """Who ends the pulse of a command."""

    DEVICE = "device"
    HOST = "host"


class Command(_Part):
    """What to write for a command.

    Attributes:
        write: a coil (function 5) or a holding register (function 6).
        address: in the file's own counting.
        value: true and false for a coil; a number is sent as it is, to coils too (some take a pulse length there).
        pulse_by: `device`: one write, and the device itself ends the pulse. `host`: the release is written after
            `pulse_ms`; the last resort, because a gateway that dies in between leaves the output on.
        pulse_ms: length of a host's pulse.
        release: what ends a host's pulse.
    """

    write: Literal[Table.COIL, Table.HOLDING_REGISTER]
    address: int = Field(ge=0, le=65_536)
    value: bool | Word = True
    pulse_by: PulseBy = PulseBy.DEVICE
    pulse_ms: int = Field(default=500, ge=50, le=2_000)
    release: bool | Word = False

    @property
    def pulse_seconds(self) -> float | None:
        """How long the host holds the output; None when the device does."""
        return self.pulse_ms / 1000 if self.pulse_by is PulseBy.HOST else None


class Commands(_Part):
    """The commands that the device knows; one that is left out is refused."""

    open: Command
    close: Command | None = None
    stop: Command | None = None


class GateProfile(_Part):
    """A whole profile.

    Attributes:
        name: for people.
        address_base: 0 when the file's addresses are those on the wire, 1 when they count from one as manuals do.
        poll_ms: how often inputs and position are read.
        reply_ms: how long an answer may take.
        position: where the position comes from.
        points: the inputs by name.
        commands: what to write.
    """

    name: str = Field(min_length=1)
    address_base: Literal[0, 1] = 0
    poll_ms: int = Field(default=100, ge=20, le=500)
    reply_ms: int = Field(default=300, ge=20, le=900)
    position: Position
    points: dict[PointName, Point] = Field(default_factory=dict)
    commands: Commands

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if isinstance(self.position, LimitPosition):
            for name in (self.position.closed_point, self.position.open_point):
                if name not in self.points:
                    raise ValueError(f"position names the point {name!r}, which is not in points")
        for place, address in self._addresses():
            if not 0 <= address - self.address_base <= 0xFFFF:
                raise ValueError(f"{place}: address {address} with address_base {self.address_base}")
        return self

    def wire_address(self, address: int) -> int:
        """An address of this file as it goes over the wire."""
        return address - self.address_base

    def reads(self) -> tuple[Read, ...]:
        """The fewest reads that fetch all points and the position; values that nobody asked for are never read."""
        places = {(point.table, self.wire_address(point.address)) for point in self.points.values()}
        if isinstance(self.position, RegisterPosition):
            places.add((self.position.table, self.wire_address(self.position.address)))
        return tuple(_joined(places))

    def write_of(self, command: Command) -> Write:
        """The write that gives the command."""
        return self._write(command, command.value)

    def release_of(self, command: Command) -> Write:
        """The write that ends a host's pulse."""
        return self._write(command, command.release)

    def _write(self, command: Command, value: bool | int) -> Write:  # noqa: FBT001 (the profile's own either-or)
        word = value
        if isinstance(value, bool):
            word = coil_word(on=value) if command.write is Table.COIL else int(value)
        return Write(command.write, self.wire_address(command.address), word)

    def _addresses(self) -> Iterable[tuple[str, int]]:
        yield from ((f"points.{name}", point.address) for name, point in self.points.items())
        if isinstance(self.position, RegisterPosition):
            yield "position", self.position.address
        named = (("open", self.commands.open), ("close", self.commands.close), ("stop", self.commands.stop))
        for name, command in named:
            if command is not None:
                yield f"commands.{name}", command.address


def load_profile(path: Path) -> GateProfile:
    """Read a profile file. Raises ProfileError with every fault of it."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path}: is not TOML: {error}") from error
    try:
        return GateProfile.model_validate(raw)
    except ValidationError as error:
        faults = (
            f"{path}: {'.'.join(str(part) for part in fault['loc']) or 'profile'}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        raise ProfileError("\n".join(faults)) from error


def _joined(places: Iterable[tuple[Table, int]]) -> Iterable[Read]:
    """Neighbouring addresses of one table become one read, as long as a request may be."""
    table: Table | None = None
    first = count = 0
    for next_table, address in sorted(places):
        if next_table is table and address == first + count and count < next_table.longest_read:
            count += 1
            continue
        if table is not None:
            yield Read(table, first, count)
        table, first, count = next_table, address, 1
    if table is not None:
        yield Read(table, first, count)
