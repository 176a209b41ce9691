"""Card formats of Wiegand readers: the places of facility, number and parity in the bits. Pure.

Bits are an integer whose highest bit was sent first; places count from the lowest bit, which is 0. The layouts are
those that HID publishes for its formats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Parity:
    """A parity bit: its place, the mask of the bits that it covers, and whether their sum with it is odd."""

    place: int
    covers: int
    odd: bool

    def bit(self, bits: int) -> int:
        """Return the parity bit that these bits need."""
        return (bits & self.covers).bit_count() % 2 ^ self.odd


@dataclass(frozen=True, slots=True)
class Format:
    """A layout of bits. With `facility_bits` 0 it has no facility. `parities` are in the order of computation."""

    name: str
    bit_length: int
    facility_bits: int
    facility_place: int
    number_bits: int
    number_place: int
    parities: tuple[Parity, ...]

    def fits(self, bits: int) -> bool:
        """Return whether bits of this length have this format's parity."""
        return all(parity.bit(bits) == bits >> parity.place & 1 for parity in self.parities)

    def numbers(self, bits: int) -> tuple[int, int]:
        """Return facility (0 for none) and card number of bits of this length, whatever their parity."""
        facility = bits >> self.facility_place & (1 << self.facility_bits) - 1
        return facility, bits >> self.number_place & (1 << self.number_bits) - 1

    def holds(self, facility: int, number: int) -> bool:
        """Return whether the format has room for the numbers."""
        return 0 <= facility < 1 << self.facility_bits and 0 <= number < 1 << self.number_bits

    def build(self, facility: int, number: int) -> int:
        """Return the bits of a card, parity included. Raises ValueError for numbers that are too large."""
        if not self.holds(facility, number):
            raise ValueError(f"{self.name} has no room for facility {facility}, number {number}")
        bits = facility << self.facility_place | number << self.number_place
        for parity in self.parities:
            bits |= parity.bit(bits) << parity.place
        return bits

    def alias(self, facility: int, number: int) -> str:
        """Return the alias of a card in this format."""
        return f"{self.name}:{facility}:{number}" if self.facility_bits else f"{self.name}:{number}"

    def shown(self, facility: int, number: int) -> str:
        """Write the numbers as they are printed on cards."""
        return f"{facility:03d},{number:05d}" if self.facility_bits else str(number)


def _span(highest: int, lowest: int) -> int:
    return (1 << highest + 1) - (1 << lowest)


_PAIR37: Final = (Parity(36, _span(35, 18), odd=False), Parity(0, _span(18, 1), odd=True))

_PAIR26: Final = (Parity(25, _span(24, 13), odd=False), Parity(0, _span(12, 1), odd=True))
_PAIR34: Final = (Parity(33, _span(32, 17), odd=False), Parity(0, _span(16, 1), odd=True))

H10301: Final = Format("h10301", 26, 8, 17, 16, 1, _PAIR26)
H10306: Final = Format("h10306", 34, 16, 17, 16, 1, _PAIR34)
CORPORATE_1000: Final = Format(
    "c1000",
    35,
    12,
    21,
    20,
    1,
    (
        Parity(33, 0x1_B6DB_6DB6, odd=False),
        Parity(0, 0x3_6DB6_DB6C, odd=True),
        Parity(34, _span(33, 0), odd=True),
    ),
)
H10302: Final = Format("h10302", 37, 0, 0, 35, 1, _PAIR37)
H10304: Final = Format("h10304", 37, 16, 20, 19, 1, _PAIR37)

FORMATS: Final = (H10301, H10306, CORPORATE_1000, H10302, H10304)
_BY_LENGTH: Final = {
    length: tuple(layout for layout in FORMATS if layout.bit_length == length)
    for length in {layout.bit_length for layout in FORMATS}
}


@lru_cache(maxsize=64)
def formats_of(bit_length: int, bits: int) -> tuple[Format, ...]:
    """Return every format that these bits match in length and parity. The decision on a card asks several times."""
    return tuple(layout for layout in _BY_LENGTH.get(bit_length, ()) if layout.fits(bits))
