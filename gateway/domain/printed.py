"""Numbers printed on cards, and the readings that they can mean. Pure.

One card has many numbers: 26 bits of facility 1 and number 11572 are also printed as 77108, facility 213 and number
2000 also as 0013961168. Only a number that cannot mean another card becomes an alias. The others are offered: by the
warnings of a card, and by `edge-gateway cards explain`.

Readers are wired and set up in many ways: bits may come inverted, last bit first, last byte first, or with additional
bits before and behind. Cards are stored as they are; each reader's changes are undone before a card is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

from gateway.domain.credentials import (
    MAX_TEXT,
    SEPARATORS,
    Credential,
    digits_alias,
    facility_and_number,
    listed_text_alias,
    plain_number,
    raw_alias,
    text_alias,
    uid_alias,
)
from gateway.domain.wiegand import FORMATS, H10301, Format, formats_of

_LONG_DIGITS: Final = 10
_MOST_DIGITS: Final = 18
_READ_AS: Final = re.compile(r"0x([0-9A-F]+) of ([0-9]{1,3}) bits")

MOST_BITS = 256

_SHIFTS: Final = 3


@dataclass(frozen=True, slots=True)
class Meaning:
    """One possible meaning of a printed number.

    Attributes:
        said: the meaning in words.
        layout: the card format that it assumes, None for bare bits.
        facility: the facility number, None if only the card number is printed.
        number: the card number; without a format, the bits.
        bit_length: without a format, the number of bits; None for any.
    """

    said: str
    layout: Format | None
    facility: int | None
    number: int
    bit_length: int | None = None

    def fits(self, bit_length: int, bits: int) -> bool:
        """Return whether these bits carry the number, parity included."""
        if self.layout is None:
            return bits == self.number and self.bit_length in (None, bit_length)
        if bit_length != self.layout.bit_length or not self.layout.fits(bits):
            return False
        facility, number = self.layout.numbers(bits)
        return number == self.number and self.facility in (None, facility)

    def reading(self) -> Credential | None:
        """Return the reading of such a card; None where the facility or the number of bits is not known."""
        if self.layout is not None and self.facility is not None:
            return Credential(self.layout.bit_length, self.layout.build(self.facility, self.number))
        return Credential(self.bit_length, self.number) if self.layout is None and self.bit_length else None


def layout_named(name: str) -> Format | None:
    """Return the format that a record names (`H10301`, `37-bit H10302`, `Corporate 1000`); None for an unknown one."""
    plain = SEPARATORS.sub("", name).casefold().replace("corporate1000", "c1000")
    return next((layout for layout in FORMATS if layout.name in plain), None)


def listed_aliases(text: str, layout: Format | None, *, whole: bool = True) -> Iterator[str]:
    """Yield the aliases under which the card list has a printed number: its characters, and what it certainly means.

    Args:
        text: the number as printed.
        layout: the format that the record names, None for none.
        whole: whether the number stands for the card by itself. With a facility in another field it does not.
    """
    text = plain_number(text)
    yield listed_text_alias(text)
    if text.isascii() and text.isdigit():
        if whole:
            yield from _digit_aliases(text, layout)
    elif pair := facility_and_number(text):
        built = layout if layout is not None and layout.facility_bits else H10301
        if built.holds(*pair):
            yield built.alias(*pair)
        elif (plain := text_alias("{},{}".format(*pair))) != text_alias(text):
            yield plain
    elif whole and (uid := uid_alias(text)) and not SEPARATORS.sub("", text).isdigit():
        yield uid


def meanings(printed: str) -> Iterator[Meaning]:
    """Yield every possible meaning of a printed number, the likelier first."""
    text = plain_number(printed).strip()
    if pair := facility_and_number(text):
        yield from _paired(*pair)
        return
    if text.isascii() and text.isdigit():
        yield from _digits(text)
    plain = SEPARATORS.sub("", text)
    if re.fullmatch(r"[0-9A-Fa-f]{4,32}", plain) and (len(plain) >= 8 or not plain.isdigit()):
        yield Meaning(f"the bits {plain.upper()}", None, None, int(plain, 16))


def readings_of(text: str) -> tuple[Credential, ...]:
    """Return the readings that a typed card number may stand for, the likelier first: its characters, then its bits."""
    text = plain_number(text).strip()
    typed = Credential(text=text[:MAX_TEXT])
    bits = [reading for meaning in meanings(text) if (reading := meaning.reading()) is not None]
    if uid := uid_alias(text):
        _, length, digits = uid.split(":")
        bits.append(Credential(int(length), int(digits, 16)))
    plain = SEPARATORS.sub("", text)
    if _is_long(plain):
        bits.append(Credential(32, int(plain)))
    return tuple(dict.fromkeys((*bits, typed) if facility_and_number(text) else (typed, *bits)))


def enrolment(shown: str, *, read_as: str = "", plate: str = "") -> Mapping[str, str]:
    """Return the fields of a new card that this reading would match; none if no field can hold it.

    Args:
        shown: the reading as `Credential.shown` writes it.
        read_as: its bits as `Credential.read_as` writes them, "" for none.
        plate: the plate that was read, "" for a card.
    """
    if plate:
        return {"plate": plate}
    bits = _READ_AS.fullmatch(read_as)
    if bits is None:
        return {"number": shown} if shown and not read_as else {}
    return fields_of_bits(int(bits[2]), int(bits[1], 16))


def fields_of_bits(bit_length: int, bits: int) -> Mapping[str, str]:
    """Return the fields of a card that answers to these bits; none if no field can hold them."""
    layout = next(iter(formats_of(bit_length, bits)), None)
    if layout is None:
        uid = f"{bits:0{bit_length // 4}X}"
        return {"uid": uid} if bit_length % 4 == 0 and uid_alias(uid) else {}
    facility, number = layout.numbers(bits)
    if layout is H10301:
        return {"number": layout.shown(facility, number)}
    if not layout.facility_bits:
        return {"number": str(number), "card_format": layout.name}
    return {"facility_code": str(facility), "card_number": str(number), "card_format": layout.name}


def _digit_aliases(text: str, layout: Format | None) -> Iterator[str]:
    """Yield the aliases of plain digits.

    Ten digits are all of 24 or 32 bits, as on tags. Any other number has a meaning only in a known format: facility and
    number in one, or the number of a format without facility.
    """
    if text.startswith("0") and (digits := digits_alias(text)):
        yield digits
    if len(text) > _MOST_DIGITS:
        return
    whole = int(text)
    if _is_long(text):
        yield raw_alias(32, whole)
        if whole < 1 << 24:
            yield H10301.alias(*_split(H10301, whole))
    elif layout is not None and whole < 1 << layout.facility_bits + layout.number_bits:
        facility, number = _split(layout, whole)
        if facility or not layout.facility_bits:
            yield layout.alias(facility, number)


def _is_long(text: str) -> bool:
    return len(text) == _LONG_DIGITS and text.isascii() and text.isdigit() and int(text) < 1 << 32


def _paired(facility: int, number: int) -> Iterator[Meaning]:
    said = f"facility {facility}, number {number}"
    for layout in FORMATS:
        if layout.facility_bits and layout.holds(facility, number):
            yield Meaning(said, layout, facility, number)
    if facility <= 0xFF and number <= 0xFFFF:
        yield Meaning(f"{said}, without parity", None, None, facility << 16 | number, 24)
    if facility <= 0xFFFF and number <= 0xFFFF:
        yield Meaning(f"{said}, without parity", None, None, facility << 16 | number, 32)


def _digits(text: str) -> Iterator[Meaning]:
    whole = int(text)
    if len(text) == 8 and int(text[:3]) <= 0xFF and int(text[3:]) <= 0xFFFF:
        yield from _paired(int(text[:3]), int(text[3:]))
    for layout in FORMATS:
        if not layout.facility_bits and layout.holds(0, whole):
            yield Meaning(f"number {whole}", layout, 0, whole)
    for layout in FORMATS:
        facility, number = _split(layout, whole)
        if facility and layout.holds(facility, number):
            yield Meaning(f"facility {facility}, number {number}, printed as one number", layout, facility, number)
    for layout in FORMATS:
        if layout.facility_bits and layout.holds(0, whole):
            yield Meaning(f"number {whole}, its facility not printed", layout, None, whole)
    yield Meaning(f"the bits of {whole}", None, None, whole)


def _split(layout: Format, whole: int) -> tuple[int, int]:
    return whole >> layout.number_bits, whole & (1 << layout.number_bits) - 1


@dataclass(frozen=True, slots=True)
class ReaderBits:
    """Steps that undo a reader's changes, in this order.

    Attributes:
        skip_first: number of additional bits before the card's own.
        skip_last: number of additional bits behind the card's own.
        inverted: whether ones and zeros are exchanged.
        last_bit_first: whether the bits come in the opposite order.
        last_byte_first: whether the bytes come in the opposite order; the card's bits must be whole bytes.
    """

    skip_first: int = 0
    skip_last: int = 0
    inverted: bool = False
    last_bit_first: bool = False
    last_byte_first: bool = False

    def undo(self, bit_length: int, bits: int) -> tuple[int, int]:
        """Return length and bits as on the card; unchanged if there are too few bits, or no whole bytes to reverse."""
        length = bit_length - self.skip_first - self.skip_last
        if length <= 0 or (self.last_byte_first and length % 8):
            return bit_length, bits
        mask = (1 << length) - 1
        bits = bits >> self.skip_last & mask
        if self.inverted:
            bits ^= mask
        if self.last_bit_first:
            bits = int(f"{bits:0{length}b}"[::-1], 2)
        if self.last_byte_first:
            bits = int.from_bytes(bits.to_bytes(length // 8, "big"), "little")
        return length, bits

    def setting(self) -> str:
        """Return the setting for the site file; "" when nothing must be undone."""
        words = [f"{name} = {value}" for name in ("skip_first", "skip_last") if (value := getattr(self, name))]
        words += [f"{name} = true" for name in ("inverted", "last_bit_first", "last_byte_first") if getattr(self, name)]
        return f"bits = {{ {', '.join(words)} }}" if words else ""


@dataclass(frozen=True, slots=True)
class Fit:
    """A meaning that matches the reading after the reader's changes are undone."""

    meaning: Meaning
    way: ReaderBits
    bit_length: int
    bits: int


def explain(printed: str, bit_length: int, bits: int) -> tuple[Fit, ...]:
    """Return the ways in which the printed number fits the reading with the fewest corrections of its bits.

    `bit_length` and `bits` are the reading as the reader sent it.
    """
    said = tuple(meanings(printed))
    fits = (
        Fit(meaning, way, *turned)
        for way in sorted(_ways(bit_length), key=_turns)
        for turned in (way.undo(bit_length, bits),)
        for meaning in said
        if meaning.fits(*turned)
    )
    plainest: dict[tuple[str, Format | None, int], Fit] = {}
    for fit in fits:
        plainest.setdefault((fit.meaning.said, fit.meaning.layout, _turns(fit.way)), fit)
    least = min((_turns(fit.way) for fit in plainest.values()), default=0)
    return tuple(fit for fit in plainest.values() if _turns(fit.way) == least)


def _ways(bit_length: int) -> Iterator[ReaderBits]:
    yes_or_no = (False, True)
    for first, last in product(range(_SHIFTS), repeat=2):
        length = bit_length - first - last
        if first + last >= _SHIFTS or length < 1:
            continue
        for inverted, bitwise, bytewise in product(yes_or_no, yes_or_no, yes_or_no):
            if not bytewise or length % 8 == 0:
                yield ReaderBits(first, last, inverted, bitwise, bytewise)


def _turns(way: ReaderBits) -> int:
    return way.skip_first + way.skip_last + way.inverted + way.last_bit_first + way.last_byte_first
