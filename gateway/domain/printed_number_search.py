"""Search for the format, bit order and shift that turn a reading into a printed number. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from gateway.domain.printed import Meaning, meanings
from gateway.domain.reader_bits import ReaderBits
from gateway.domain.wiegand import Format

_SHIFTS: Final = 3


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
