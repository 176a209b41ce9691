"""Comparison of plates, and matching of misread ones. Pure.

Cameras confuse 0 O D Q, 1 I, 2 Z, 5 S, 8 B and 6 G. A misread plate matches a listed one only if at most two characters
differ, each within one of these classes; if no other card's valid plate is that near; and if no plate of a card that is
not active is as near. Letters of Cyrillic and Greek that look like Latin ones are near them, and do not count as
different: cameras and lists write the same plate in either script.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from drivers.plate_text import plain_plate
from gateway.domain.credentials import Card, CardStatus

MOST_SUBSTITUTIONS: Final = 2
_CLASSES: Final = ("0ODQ", "1I", "2Z", "5S", "8B", "6G")
_SKELETON: Final = {ord(letter): letters[0] for letters in _CLASSES for letter in letters}
_LOOK_ALIKES: Final = str.maketrans("АВЕЅІЈКМНОРСТУХЗΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABESIJKMHOPCTYX3ABEZHIKMNOPTYX")  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class NearPlate:
    """A listed plate and its card."""

    plate: str
    card: Card


@dataclass(frozen=True, slots=True)
class PlateMatch:
    """The card that matches a misread plate, or None, and the finding for the decision's trace.

    `looks_alike`: whether the plates look the same, in letters of two alphabets. `plate`: the listed plate.
    """

    card: Card | None
    seen: str
    looks_alike: bool = False
    plate: str = ""


def skeleton(plate: str) -> str:
    """Return the same text for all plates that cameras may confuse with each other."""
    return _in_latin(plate).translate(_SKELETON)


def substitutions(one: str, other: str) -> int | None:
    """Count the characters in which two plates look different; None if cameras would not confuse them."""
    if skeleton(one) != skeleton(other):
        return None
    return sum(left != right for left, right in zip(_in_latin(one), _in_latin(other), strict=True))


def nearest(plate: str, listed: Iterable[NearPlate], now: int) -> PlateMatch:
    """Find the listed plate that was probably misread as `plate`. `now` is wall micros UTC."""
    near = [(count, item) for item in listed if (count := substitutions(plate, item.plate)) is not None]
    near = [(count, item) for count, item in near if count <= MOST_SUBSTITUTIONS]
    valid = [(count, item) for count, item in near if _is_valid(item.card, now)]
    if not valid:
        return PlateMatch(None, "no valid plate is near")
    if len({item.card.card_id for _, item in valid}) > 1:
        return PlateMatch(None, f"{len(valid)} valid plates are near")
    count, found = min(valid, key=lambda pair: pair[0])
    if any(item.card.status is not CardStatus.ACTIVE and other <= count for other, item in near):
        return PlateMatch(None, f"near {found.plate}, and as near one that must not pass")
    seen = f"plate {found.plate} in place of {plate}"
    return PlateMatch(found.card, seen, looks_alike=not count, plate=found.plate)


def _in_latin(plate: str) -> str:
    return plain_plate(plate).translate(_LOOK_ALIKES)


def _is_valid(card: Card, now: int) -> bool:
    begun = card.valid_from is None or now >= card.valid_from
    return card.status is CardStatus.ACTIVE and begun and (card.valid_until is None or now < card.valid_until)
