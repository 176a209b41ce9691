"""Requests to a Modbus device and its answers, as values; `drivers.modbus.frames` has their bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal


class Table(StrEnum):
    """The four tables of a Modbus device."""

    COIL = "coil"
    DISCRETE_INPUT = "discrete_input"
    HOLDING_REGISTER = "holding_register"
    INPUT_REGISTER = "input_register"

    @property
    def holds_bits(self) -> bool:
        """True when its values are 0 or 1; otherwise 0 to 65535."""
        return self in {Table.COIL, Table.DISCRETE_INPUT}

    @property
    def longest_read(self) -> int:
        """The most values that one request may read."""
        return 2000 if self.holds_bits else 125


@dataclass(frozen=True, slots=True)
class Read:
    """A read of `count` values of a table from a 0-based address on."""

    table: Table
    address: int
    count: int


@dataclass(frozen=True, slots=True)
class Write:
    """A write of one coil (function 5) or one holding register (function 6) at a 0-based address.

    `value` is the raw 16-bit word. For a coil, 0xFF00 is on and 0 is off; some devices give other words a meaning.
    Normally the device must echo the write; with `any_answer` its answer may carry another value.
    """

    table: Literal[Table.COIL, Table.HOLDING_REGISTER]
    address: int
    value: int
    any_answer: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class WriteMany:
    """A write of neighbouring holding registers (function 16) from a 0-based address on."""

    address: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of any other function. `pdu` is the function code with its data."""

    pdu: bytes


Request = Read | Write | WriteMany | FunctionCall


@dataclass(frozen=True, slots=True)
class Values:
    """The answer to a read: as many values as were asked for."""

    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """The answer to a write: the device confirmed it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer of a device that refuses, with its exception code."""

    code: int

    @property
    def words(self) -> str:
        """The meaning of the code (Modbus application protocol 1.1b3, section 7)."""
        return _REFUSALS.get(self.code, f"exception code {self.code}")


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """The answer to a `FunctionCall`, from the function code on."""

    pdu: bytes


Reply = Values | Written | Refusal | FunctionResult

ACKNOWLEDGED = 5
BUSY = 6
UNREACHABLE = frozenset({10, 11})
"""Refusal codes by which a converter says that the device behind it does not answer."""

_REFUSALS = {
    1: "illegal function",
    2: "illegal data address",
    3: "illegal data value",
    4: "device failure",
    5: "acknowledged, still working",
    6: "device busy",
    8: "memory parity error",
    10: "gateway path unavailable",
    11: "gateway target did not respond",
}


def coil_word(*, on: bool) -> int:
    """Return the word that function 5 sends for on and off."""
    return 0xFF00 if on else 0
