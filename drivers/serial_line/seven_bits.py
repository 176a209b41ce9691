"""Noise of a line, and plain characters from bytes with a parity bit or from characters of two bytes. Pure."""

from __future__ import annotations

from typing import Final

SWITCHED_ON: Final = bytes((0x80, 0xC0, 0xE0, 0xFC, 0xFE, 0xFF))
"""Bytes that a line shows when it is switched on: zeros, then ones. No digit is one or two bits away from one."""
NOISE: Final = bytes((*range(0x21), 0x7F)) + SWITCHED_ON
"""Bytes that are no part of a card: control characters, blanks, and those of a line that is switched on."""
_FEWEST: Final = 4
"""Fewer bytes may have such a form by accident."""


def plain_bytes(data: bytes) -> bytes:
    """Return the characters of a line that was sent with seven data bits, or as UTF-16; other bytes unchanged.

    A port set to eight data bits and no parity shows a sender of seven with its parity bit on top. The line counts as
    such only when the parity of every byte is right, the same for all.
    """
    if len(data) >= _FEWEST and max(data) >= 0x80 and len({byte.bit_count() % 2 for byte in data}) == 1:
        return bytes(byte & 0x7F for byte in data)
    if len(data) >= 2 * _FEWEST and len(data) % 2 == 0:
        for characters, others in ((data[::2], data[1::2]), (data[1::2], data[::2])):
            if not any(others) and all(characters):
                return characters
    return data
