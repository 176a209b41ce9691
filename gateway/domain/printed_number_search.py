"""Search for the format, bit order and shift that turn a reading into a printed number. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from gateway.domain.reader_bits import ReaderBits
from gateway.domain.wiegand import FORMATS, Format

_PAIR: Final = re.compile(r"\s*(\d{1,5})\s*[,:/-]\s*(\d{1,7})\s*")
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


@dataclass(frozen=True, slots=True)
class Fit:
    """A meaning that matches the reading after the reader's changes are undone."""

    meaning: Meaning
    way: ReaderBits
    bit_length: int
    bits: int


def meanings(printed: str) -> Iterator[Meaning]:
    """Yield every possible meaning of a printed number, the likelier first."""
    text = printed.strip()
    if pair := _PAIR.fullmatch(text):
        yield from _paired(int(pair[1]), int(pair[2]))
        return
    if text.isascii() and text.isdigit():
        yield from _digits(text)
    plain = re.sub(r"[\s:.-]", "", text)
    if re.fullmatch(r"[0-9A-Fa-f]{4,32}", plain) and (len(plain) >= 8 or not plain.isdigit()):
        yield Meaning(f"the bits {plain.upper()}", None, None, int(plain, 16))


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


def _paired(facility: int, number: int) -> Iterator[Meaning]:
    for layout in FORMATS:
        if layout.facility_bits and layout.holds(facility, number):
            yield Meaning(f"facility {facility}, number {number}", layout, facility, number)
    if facility <= 0xFF and number <= 0xFFFF:
        yield Meaning(f"facility {facility}, number {number}, without parity", None, None, facility << 16 | number, 24)
    if facility <= 0xFFFF and number <= 0xFFFF:
        yield Meaning(f"facility {facility}, number {number}, without parity", None, None, facility << 16 | number, 32)


def _digits(text: str) -> Iterator[Meaning]:
    whole = int(text)
    if len(text) == 8 and int(text[:3]) <= 0xFF and int(text[3:]) <= 0xFFFF:
        yield from _paired(int(text[:3]), int(text[3:]))
    for layout in FORMATS:
        if not layout.facility_bits and layout.holds(0, whole):
            yield Meaning(f"number {whole}", layout, 0, whole)
    for layout in FORMATS:
        facility, number = whole >> layout.number_bits, whole & (1 << layout.number_bits) - 1
        if facility and layout.holds(facility, number):
            yield Meaning(f"facility {facility}, number {number}, printed as one number", layout, facility, number)
    for layout in FORMATS:
        if layout.facility_bits and layout.holds(0, whole):
            yield Meaning(f"number {whole}, its facility not printed", layout, None, whole)
    yield Meaning(f"the bits of {whole}", None, None, whole)


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
