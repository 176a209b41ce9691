"""A reader of the bits of a parameter set (ITU-T H.264, 7.2 and 9.1). Pure."""

from __future__ import annotations


class Bits:
    """A reader of bits and Exp-Golomb codes. It removes emulation prevention bytes first.

    All reads raise IndexError when the data is cut short.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data.replace(b"\x00\x00\x03", b"\x00\x00")
        self._at = 0

    def bits(self, count: int) -> int:
        """Read the next `count` bits as a number."""
        value = 0
        for _ in range(count):
            value = value << 1 | self._data[self._at >> 3] >> (7 - (self._at & 7)) & 1
            self._at += 1
        return value

    def skip(self, count: int) -> None:
        """Skip bits."""
        self._at += count

    def unsigned(self) -> int:
        """Read an unsigned Exp-Golomb number, ue(v)."""
        zeros = 0
        while not self.bits(1):
            zeros += 1
        return (1 << zeros) - 1 + self.bits(zeros)

    def signed(self) -> int:
        """Read a signed Exp-Golomb number, se(v)."""
        value = self.unsigned()
        return (value + 1) // 2 if value & 1 else -(value // 2)
