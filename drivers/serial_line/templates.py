"""Frames as a profile file writes them: bytes with open places, which are filled in or ignored. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

_HEX = re.compile(r"[0-9A-Fa-f]{2}")
_PLACE = re.compile(r"\{([a-z]+)\}")


class Slot(Enum):
    """A byte that a template leaves open."""

    ANY = auto()
    UNIT = auto()
    UNIT_HIGH_DIGIT = auto()
    UNIT_LOW_DIGIT = auto()
    SIZE = auto()
    CHECK = auto()


_WORDS = {"..": Slot.ANY, "unit": Slot.UNIT, "size": Slot.SIZE, "check": Slot.CHECK}
_PLACES = {
    "unit": (Slot.UNIT_HIGH_DIGIT, Slot.UNIT_LOW_DIGIT),
    "check": (Slot.CHECK, Slot.CHECK),
    "any": (Slot.ANY,),
}


@dataclass(frozen=True, slots=True)
class Template:
    """A sequence of bytes, some of which are left open."""

    parts: tuple[int | Slot, ...]

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def names_unit(self) -> bool:
        """True when it contains the device's address."""
        return any(part in {Slot.UNIT, Slot.UNIT_HIGH_DIGIT, Slot.UNIT_LOW_DIGIT} for part in self.parts)

    @property
    def has_any(self) -> bool:
        """True when one of its bytes may have any value."""
        return Slot.ANY in self.parts

    def filled(self, *, unit: int) -> bytes:
        """Fill in the unit's address. All other open bytes become zero; `Sealing` sets sizes and checks later."""
        return bytes(_byte(part, unit) or 0 for part in self.parts)

    def matches(self, frame: bytes, *, unit: int) -> bool:
        """Return whether the frame begins like this template. Sizes and checks match any value; see `Framing`."""
        if len(frame) < len(self.parts):
            return False
        wanted = (_byte(part, unit) for part in self.parts)
        return all(want is None or want == byte for want, byte in zip(wanted, frame, strict=False))


def template_of(written: object) -> Template:
    """Parse a template as a profile file writes it.

    - A string holds bytes in hexadecimal and words, as in `"EB unit 40 00 check"`. The words are `unit` (the address),
      `..` (any byte), `size` and `check` (filled in later; a check of two bytes is written twice).
    - A table `{ text = "…" }` holds characters, with the places `{unit}` (two hexadecimal digits), `{check}` (two
      characters) and `{any}` (one).

    Raises ValueError for anything else.
    """
    if isinstance(written, Template):
        return written
    if isinstance(written, str):
        return Template(tuple(_part(word) for word in written.split()))
    if isinstance(written, dict) and written.keys() == {"text"} and isinstance(written["text"], str):
        return Template(tuple(_text_parts(written["text"])))
    raise ValueError('bytes are written as "7E 00 unit check" or { text = "…" }')


def plain_bytes(written: object) -> bytes:
    """Parse bytes without open places. Raises ValueError for anything else."""
    if isinstance(written, bytes):
        return written
    template = template_of(written)
    if any(isinstance(part, Slot) for part in template.parts):
        raise ValueError("only fixed bytes can stand here")
    return template.filled(unit=0)


def _part(word: str) -> int | Slot:
    if _HEX.fullmatch(word):
        return int(word, 16)
    if word not in _WORDS:
        raise ValueError(f"{word!r} is neither two hexadecimal digits nor one of {', '.join(_WORDS)}")
    return _WORDS[word]


def _text_parts(text: str) -> list[int | Slot]:
    parts: list[int | Slot] = []
    for place, piece in enumerate(_PLACE.split(text)):
        if place % 2 == 0:
            parts += piece.encode("latin-1")
        elif piece in _PLACES:
            parts += _PLACES[piece]
        else:
            raise ValueError(f"{{{piece}}} is none of {', '.join(f'{{{name}}}' for name in _PLACES)}")
    return parts


def _byte(part: int | Slot, unit: int) -> int | None:
    match part:
        case int():
            return part
        case Slot.UNIT:
            return unit
        case Slot.UNIT_HIGH_DIGIT:
            return ord(f"{unit:02X}"[0])
        case Slot.UNIT_LOW_DIGIT:
            return ord(f"{unit:02X}"[1])
        case _:
            return None
