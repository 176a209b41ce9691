"""Readings of plates: normal form, confidence, and the filter of repeated readings. Pure."""

from __future__ import annotations

import unicodedata
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Direction = Literal["approaching", "leaving", ""]

_LONGEST_PLATE = 16
_REMEMBERED = 64
_LEFT_SECONDS = 30.0
_NO_PLATE = frozenset({"UNKNOWN", "NOPLATE", "NONE", "NULL", "UNLICENSED", "NOTDETECTED", "无车牌", "无牌车"})


@dataclass(frozen=True, slots=True)
class PlateReading:
    """A camera's report of one vehicle.

    Attributes:
        plate: the plate as `normalised` returns it; empty only with `left`.
        confidence: 0.0 to 1.0.
        vehicle: the camera's own id of the vehicle, "" for none.
        direction: the vehicle's direction, "" when the camera gives none.
        occurrence: an id of this message, the same when it is sent again; "" when the camera gives none.
        left: whether the camera has lost the vehicle from view. That is no reading, and later readings of the vehicle
            are ignored.
    """

    plate: str
    confidence: float = 1.0
    vehicle: str = ""
    direction: Direction = ""
    occurrence: str = ""
    left: bool = False


def normalised(text: str) -> str:
    """Normalise a plate to upper-case letters and digits; "" when the text is not a plate."""
    plate = "".join(char for char in unicodedata.normalize("NFKC", text).upper() if char.isalnum())
    return "" if plate in _NO_PLATE or len(plate) > _LONGEST_PLATE else plate


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


def told_apart(plate: str, *words: str) -> str:
    """Return an id of a message, made of its plate and these other fields; "" when all of those are empty."""
    return " ".join((*words, plate)) if any(words) else ""


class Sightings:
    """The filter of one camera's readings: it drops repeated ones, and those of a vehicle that has just left.

    Cameras send a message again when its answer was late. A vehicle that has left must not be taken for the next one.
    That holds for 30 s; after that its id may belong to another vehicle, since cameras count from the begin when they
    restart.
    """

    def __init__(self) -> None:
        self._said: OrderedDict[str, float] = OrderedDict()
        self._left: OrderedDict[str, float] = OrderedDict()

    def fresh(self, readings: Iterable[PlateReading], *, at: float) -> tuple[PlateReading, ...]:
        """Return those of the readings that must be reported. `at` is when they came."""
        return tuple(reading for reading in readings if self._is_fresh(reading, at))

    def _is_fresh(self, reading: PlateReading, at: float) -> bool:
        if reading.left:
            _remember(self._left, reading.vehicle, at)
            return False
        if at - self._left.get(reading.vehicle, float("-inf")) < _LEFT_SECONDS or reading.occurrence in self._said:
            return False
        _remember(self._said, reading.occurrence, at)
        return True


def _remember(place: OrderedDict[str, float], word: str, at: float) -> None:
    if not word:
        return
    place[word] = at
    if len(place) > _REMEMBERED:
        place.popitem(last=False)
