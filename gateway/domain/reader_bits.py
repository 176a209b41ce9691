"""Corrections for readers that change the order or value of a card's bits. Pure.

Readers are wired and set up in many ways: bits may come inverted, last bit first, last byte first, or with additional
bits before and behind. Cards are stored as they are; each reader's changes are undone before a card is looked up.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_BITS = 256


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
