"""Derivation of points and position from a status frame, as a profile describes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from pydantic import Field, field_validator, model_validator

from drivers.contract import GatePosition, PointState
from drivers.gates.polls import limit_position, position_between
from drivers.gates.profile_parts import LimitPosition
from drivers.profile_file import Part, numbers_for_keys


class ShownPosition(StrEnum):
    """The positions that a number may mean: those of the contract, and `moving` where the direction is not given."""

    UNKNOWN = "unknown"
    CLOSED = "closed"
    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"
    STOPPED = "stopped"
    MOVING = "moving"


class Number(Part):
    """A number in a frame.

    Attributes:
        at: the place of its first byte, counted from the frame's begin.
        width: the number of its bytes, the highest first.
        digits: whether its bytes are hexadecimal digits as characters.
    """

    at: int = Field(ge=0, le=511)
    width: int = Field(default=1, ge=1, le=4)
    digits: bool = False

    def of(self, frame: bytes) -> int | None:
        """Read the number; None if the frame is too short, or has other characters than digits there."""
        raw = frame[self.at : self.at + self.width]
        if len(raw) < self.width:
            return None
        if not self.digits:
            return int.from_bytes(raw, "big")
        text = raw.decode("latin-1")
        return int(text, 16) if all(digit in "0123456789abcdefABCDEF" for digit in text) else None


class StatusPoint(Number):
    """A named input.

    Attributes:
        mask: the point is on when any of these bits is. With neither `mask` nor `equals`, any bit counts.
        equals: the point is on when the number equals this.
        inverted: whether the point is on when the device says off, as with normally closed contacts.
        stale_ms: the age limit: the point is unknown when it was not read for so long. None: it keeps its state until
            the device counts as lost.
    """

    mask: int | None = Field(default=None, gt=0)
    equals: int | None = Field(default=None, ge=0)
    inverted: bool = False
    stale_ms: int | None = Field(default=None, ge=200, le=2_000)

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if self.mask is not None and self.equals is not None:
            raise ValueError("'mask' and 'equals' do not go together")
        return self

    def state_in(self, frame: bytes) -> PointState:
        """Return the point's state; UNKNOWN when the frame has no number there."""
        number = self.of(frame)
        if number is None:
            return PointState.UNKNOWN
        says = number == self.equals if self.equals is not None else bool(number & (self.mask or ~0))
        return PointState.ON if says != self.inverted else PointState.OFF


class ValuePosition(Number):
    """The position of a gate whose device gives it as a number.

    Attributes:
        values: the position that each number means; other numbers mean UNKNOWN.
    """

    values: dict[int, ShownPosition] = Field(min_length=1)

    _numbers = field_validator("values", mode="before")(numbers_for_keys)


def position_in(
    frame: bytes,
    source: ValuePosition | LimitPosition | None,
    points: Mapping[str, PointState],
    *,
    before: GatePosition,
    commanded: GatePosition | None,
) -> GatePosition:
    """Derive the position from a status frame.

    Args:
        frame: the status frame.
        source: the profile's source of the position; None when the device gives none.
        points: the named points of the same frame.
        before: the position that the frame before showed.
        commanded: the position to which the last command acknowledged since then leads: OPENING, CLOSING or STOPPED;
            None when there was no command.
    """
    match source:
        case None:
            return GatePosition.UNKNOWN
        case LimitPosition():
            return limit_position(
                closed=points[source.closed_point],
                opened=points[source.open_point],
                before=before,
                commanded=commanded,
            )
        case ValuePosition():
            number = source.of(frame)
            shown = ShownPosition.UNKNOWN if number is None else source.values.get(number, ShownPosition.UNKNOWN)
            return position_between(before, commanded) if shown is ShownPosition.MOVING else GatePosition(shown.value)
