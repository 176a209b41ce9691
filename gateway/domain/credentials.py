"""Credentials: readings, cards, and the aliases by which they match.

A reading is `(bit_length, bits)`; the numbers printed on cards are aliases of it. An alias is a string that begins with
its form, so that the same number in two forms never matches by accident:

- `raw:26:1A2B3C4` - the exact bits, hexadecimal
- `h10301:1:11572` - facility and card number in a format of `gateway.domain.wiegand`; `h10302:11572` without facility
- `text:0011572` - the characters that a text reader sent, trimmed and upper-cased
- `digits:11572` - the number of a card that is listed with zeros before it, for readers that leave them out or add some
- `exact:aB3dq_Zw` - characters in which small and capital letters differ in meaning, as in codes drawn by a computer
- `plate:AB123CD` - a vehicle's plate without blanks and dashes
- `near:AB123C0` - one text for all plates that cameras confuse; never the alias of a reading, see `plates`
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gateway.domain.wiegand import FORMATS, H10301, formats_of

MAX_TEXT = 128
SEPARATORS: Final = re.compile(r"[\s:.-]")
_UID_BYTES: Final = frozenset({4, 5, 7, 8, 10})
_UID: Final = re.compile(r"(?:0[xX])?([0-9A-Fa-f]+)[hH]?")
_BYTE_PAIRS: Final = re.compile(r"[0-9A-Fa-f]{2}(?:[\s:.-][0-9A-Fa-f]{2})+")
_PAIR: Final = re.compile(r"\s*(\d{1,5})(?:\s*[,:;/-]\s*|\s+)(\d{1,7})\s*", re.ASCII)
_WIDE: Final = range(0xFF01, 0xFF5F)
_HEXADECIMAL = re.compile(r"(0[xX])?[0-9A-Fa-f][0-9A-Fa-f\s:.-]*")


class CardStatus(StrEnum):
    """Status of a card in the card list."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    LOST = "lost"
    BLOCKED = "blocked"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Credential:
    """One reading: bits, or with `bit_length` 0 the text that a reader sent, or a vehicle's plate."""

    bit_length: int = 0
    bits: int = 0
    text: str = ""
    plate: str = ""

    def aliases(self) -> tuple[str, ...]:
        """Return every alias under which this reading may be listed, the most exact first."""
        return tuple(_aliases(self))

    def other_spellings(self) -> tuple[str, ...]:
        """Return the aliases of the number in other spellings, which count where no other alias is listed.

        They are other zeros before digits, facility and number in every format with room for them, and a tag's UID.
        """
        return tuple(alias for alias in _other_spellings(self.text.strip()) if alias not in self.aliases())

    def shown(self) -> str:
        """Return the reading for people: as printed on the card if the format is known. Do not look cards up by it."""
        if self.bit_length == 0:
            return self.plate or self.text.strip()
        layout = next(iter(formats_of(self.bit_length, self.bits)), None)
        if layout is not None:
            return layout.shown(*layout.numbers(self.bits))
        return f"{self.bit_length} bits {self.bits:X}"

    def read_as(self) -> str:
        """Write the bits as `edge-gateway cards explain --read` takes them, e.g. "0x25A69 of 26 bits"; "" for text."""
        return f"0x{self.bits:X} of {self.bit_length} bits" if self.bit_length else ""


@dataclass(frozen=True, slots=True)
class Card:
    """An access card as decisions need it.

    Attributes:
        card_id: central's id, or a provisional one.
        number: the printed number, for people.
        status: its status in the card list.
        valid_from: first microsecond (UTC) of validity, or None for no lower bound.
        valid_until: first microsecond (UTC) no longer valid, or None for no upper bound.
        holder: the name shown to technicians; "" when unknown.
        zones: the zones or lanes that it is for; none: all.
        schedules: the schedules of its validity, one of which must be open; none: always.
        owner: the account that this card and others belong to; "" when unknown.
        first_person: whether its holder, by entering, opens areas to others for the day.
        duress: whether presenting it signals that the holder is forced to.
        pin: the PIN that its holder types where a lane asks for one, "" for none. A secret: shown nowhere.
        unread: which fields of its record could not be understood, "" for none; such a card opens nothing.
        aliases: the aliases of readings that it matches; see the module's docstring.
    """

    card_id: int
    number: str
    status: CardStatus = CardStatus.ACTIVE
    valid_from: int | None = None
    valid_until: int | None = None
    holder: str = ""
    zones: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    owner: str = ""
    first_person: bool = False
    duress: bool = False
    pin: str = field(default="", repr=False)
    unread: str = ""
    aliases: tuple[str, ...] = ()


def text_alias(text: str) -> str:
    """Return the alias of characters as sent or printed; case and blanks at the ends are ignored."""
    return f"text:{text.strip().upper()}"


def listed_text_alias(text: str) -> str:
    """Return the alias under which the card list has these characters.

    Case counts in a text with both small and capital letters that is no hexadecimal number: two codes from a barcode
    may differ in nothing else. Otherwise it is ignored, since people and readers write `ab-12` in either case.
    """
    return _exact_alias(text) if _is_case_exact(text) else text_alias(text)


def _is_case_exact(text: str) -> bool:
    plain = text.strip()
    return plain not in {plain.upper(), plain.lower()} and not _HEXADECIMAL.fullmatch(plain)


def _exact_alias(text: str) -> str:
    return f"exact:{text.strip()}"


def digits_alias(text: str) -> str:
    """Return the alias of plain digits without the zeros before them; "" for another text."""
    return f"digits:{int(text)}" if text.isascii() and text.isdigit() and len(text) <= MAX_TEXT else ""


def raw_alias(bit_length: int, bits: int) -> str:
    """Return the alias of exact bits."""
    return f"raw:{bit_length}:{bits:X}"


def plain_number(text: str) -> str:
    """Write a typed number in plain characters: digits of all scripts, wide forms, dashes and blanks as in ASCII."""
    return text if text.isascii() else "".join(map(_plain, text))


def facility_and_number(text: str) -> tuple[int, int] | None:
    """Return facility and number out of `001,11572` in any spelling; None for another text."""
    found = _PAIR.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None


def uid_alias(text: str) -> str | None:
    """Return the alias of a tag's UID in hexadecimal (4, 5, 7, 8 or 10 bytes); None for another text."""
    found = _UID.fullmatch(SEPARATORS.sub("", text))
    if found is None or len(found[1]) % 2 or len(found[1]) // 2 not in _UID_BYTES:
        return None
    return raw_alias(4 * len(found[1]), int(found[1], 16))


def plate_alias(plate: str) -> str:
    """Return the alias of a plate, which must be in capitals without blanks and dashes."""
    return f"plate:{plate}"


def near_alias(skeleton: str) -> str:
    """Return the alias shared by all plates of one skeleton; see `gateway.domain.plates.skeleton`."""
    return f"near:{skeleton}"


def h10301_alias(facility: int, number: int) -> str:
    """Return the alias of a 26-bit H10301 card: facility 0..255, number 0..65535."""
    return H10301.alias(facility, number)


def h10301_bits(facility: int, number: int) -> int:
    """Return the 26 bits of an H10301 card, parity included. Numbers that are too large lose their high bits."""
    return H10301.build(facility & 0xFF, number & 0xFFFF)


def _aliases(credential: Credential) -> Iterator[str]:
    if credential.bit_length:
        yield raw_alias(credential.bit_length, credential.bits)
        for layout in formats_of(credential.bit_length, credential.bits):
            yield layout.alias(*layout.numbers(credential.bits))
    if credential.text.strip():
        yield text_alias(credential.text)
        if _is_case_exact(credential.text):
            yield _exact_alias(credential.text)
    if credential.plate:
        yield plate_alias(credential.plate)


def _other_spellings(text: str) -> Iterator[str]:
    if digits := digits_alias(text):
        yield text_alias(digits.partition(":")[2])
        yield digits
    elif pair := facility_and_number(text):
        yield text_alias("{},{}".format(*pair))
        yield from (layout.alias(*pair) for layout in FORMATS if layout.facility_bits and layout.holds(*pair))
    elif (uid := uid_alias(text)) and (_BYTE_PAIRS.fullmatch(text) or not SEPARATORS.sub("", text).isdigit()):
        yield uid


def _plain(one: str) -> str:
    if ord(one) in _WIDE:
        return chr(ord(one) - _WIDE.start + ord("!"))
    match unicodedata.category(one):
        case "Nd":
            return str(unicodedata.decimal(one))
        case "Pd":
            return "-"
        case "Zs":
            return " "
        case "Cf":  # marks of the writing direction, which copied Arabic digits carry
            return ""
        case _:
            return one
