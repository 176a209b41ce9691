"""Readings of plates, pure: how a plate is written, how sure a camera is, and which readings are new."""

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
        plate: as `normalised` writes it; never empty unless `left`.
        confidence: 0.0 to 1.0.
        vehicle: the camera's own name of the vehicle, "" for none.
        direction: as far as the camera says.
        occurrence: what makes this message different from others of the camera; "" when nothing does.
        left: the camera lost the vehicle from view. That is no reading, and later ones of it are too late.
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
    """Return the confidence as 0.0 to 1.0: `value` as a part of `of`.

    1.0 when the camera says nothing, 0.0 when what it says is no number.
    """
    if value is None or value == "":
        return 1.0
    try:
        number = float(value) / of
    except ValueError:
        return 0.0
    return min(1.0, number) if number >= 0.0 else 0.0  # a NaN is not either


def told_apart(plate: str, *words: str) -> str:
    """Identify an occurrence by what a message bears besides its plate; "" when it bears nothing."""
    return " ".join((*words, plate)) if any(words) else ""


class Sightings:
    """The filter of one camera's readings: it drops repeated ones, and those of a vehicle that has just left.

    Cameras send a message again when its answer was late. A vehicle that has left must not be taken for the next one;
    30 s later its name may belong to another, because cameras begin to count anew when they start.
    """

    def __init__(self) -> None:
        self._said: OrderedDict[str, float] = OrderedDict()
        self._left: OrderedDict[str, float] = OrderedDict()

    def fresh(self, readings: Iterable[PlateReading], *, at: float) -> tuple[PlateReading, ...]:
        """Return those of the `readings` of this instant that are to be reported."""
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
