"""Readings of plates: normal form, confidence, and the filter of repeated readings. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

from drivers.contract import ProtocolViolation

Event = TypeVar("Event")
Direction = Literal["approaching", "leaving", ""]

_REMEMBERED = 64
_REPEATED_SECONDS = 30.0
_LEFT_SECONDS = 30.0
_Key = tuple[str, str]
"""An id that the camera gave, never empty, and a plate."""


@dataclass(frozen=True, slots=True)
class PlateReading:
    """A camera's report of one vehicle.

    Attributes:
        plate: the plate as `drivers.plate_text.camera_plate` returns it; with `left` it may be empty.
        confidence: 0.0 to 1.0.
        vehicle: the camera's own id of the vehicle, "" for none.
        direction: the vehicle's direction, "" when the camera gives none.
        occurrence: an id of this message, the same when it is sent again within 30 s; "" when the camera gives none.
        left: whether the camera has lost the vehicle from view. That is no reading, and later readings of the vehicle's
            plates are ignored.
    """

    plate: str
    confidence: float = 1.0
    vehicle: str = ""
    direction: Direction = ""
    occurrence: str = ""
    left: bool = False


@dataclass(frozen=True, slots=True)
class UnreadPlate:
    """A report of a vehicle whose plate cannot be read. `reason`: why, in one sentence."""

    reason: str


Found = PlateReading | UnreadPlate


def found_in(events: Iterable[Event], read: Callable[[Event], tuple[Found, ...]]) -> tuple[Found, ...]:
    """Return the readings of a message's events. One that cannot be read does not cost the others."""
    found: list[Found] = []
    for event in events:
        try:
            found += read(event)
        except ProtocolViolation as violation:
            found.append(UnreadPlate(str(violation)))
    return tuple(found)


def fraction(value: str | float | None, *, of: float = 1.0) -> float:
    """Return a confidence, 0.0 to 1.0: `value` divided by `of`, its greatest value.

    1.0 when the camera gives none, 0.0 when its value is no number or negative.
    """
    if value is None or value == "":
        return 1.0
    try:
        number = float(value) / of
    except ValueError:
        return 0.0
    return min(1.0, number) if number >= 0.0 else 0.0  # 0.0 for NaN too, which compares as False


def occurrence_of(*words: str) -> str:
    """Return an id of a message, made of these fields; "" when all are empty."""
    return " ".join(words) if any(words) else ""


class Sightings:
    """The filter of one camera's readings: it drops repeated ones, and those of a vehicle that has just left.

    Cameras send a message again when its answer was late. A vehicle that has left must not be taken for the next one.
    Both hold for 30 s; after that an id may belong to another message or vehicle, since cameras count from the begin
    when they restart. One that restarted sooner sends another plate under the same id, so an id counts only together
    with a plate. Where no plate of the vehicle that left is known, all of that id are ignored.
    """

    def __init__(self) -> None:
        self._said: OrderedDict[_Key, float] = OrderedDict()
        self._read: OrderedDict[_Key, float] = OrderedDict()
        self._left: OrderedDict[_Key, float] = OrderedDict()

    def fresh(self, readings: Iterable[PlateReading], *, at: float) -> tuple[PlateReading, ...]:
        """Return those of the readings that must be reported. `at` is when they came."""
        return tuple(reading for reading in readings if self._is_fresh(reading, at))

    def _is_fresh(self, reading: PlateReading, at: float) -> bool:
        seen = (reading.vehicle, reading.plate)
        if reading.left:
            plates = {plate for vehicle, plate in self._read if vehicle == reading.vehicle} | {reading.plate} - {""}
            for plate in plates or {""}:
                _remember(self._left, (reading.vehicle, plate), at)
                self._read.pop((reading.vehicle, plate), None)
            return False
        said = (reading.occurrence, reading.plate)
        if any(_within(self._left, key, at, _LEFT_SECONDS) for key in (seen, (reading.vehicle, ""))):
            return False
        if _within(self._said, said, at, _REPEATED_SECONDS):
            return False
        _remember(self._said, said, at)
        _remember(self._read, seen, at)
        return True


def _within(place: OrderedDict[_Key, float], key: _Key, at: float, seconds: float) -> bool:
    return at - place.get(key, float("-inf")) < seconds


def _remember(place: OrderedDict[_Key, float], key: _Key, at: float) -> None:
    if not key[0]:
        return
    place[key] = at
    place.move_to_end(key)
    if len(place) > _REMEMBERED:
        place.popitem(last=False)
