"""Check values of serial frames. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache


class Algorithm(StrEnum):
    """An algorithm of check values. The CRCs are named as in the catalogue of parametrised CRC algorithms."""

    SUM = "sum"
    SUM_COMPLEMENT = "sum-complement"
    SUM_NEGATED = "sum-negated"
    XOR = "xor"
    CRC16_ARC = "crc16-arc"
    CRC16_MODBUS = "crc16-modbus"
    CRC16_MCRF4XX = "crc16-mcrf4xx"
    CRC16_X25 = "crc16-x25"
    CRC16_KERMIT = "crc16-kermit"
    CRC16_CCITT_FALSE = "crc16-ccitt-false"
    CRC16_XMODEM = "crc16-xmodem"

    @property
    def width(self) -> int:
        """The length of the value in bytes."""
        return 2 if self in _CRCS else 1

    def of(self, data: bytes) -> int:
        """Compute the check value of `data`.

        - `sum`: the low byte of the sum; `sum-complement`: its ones' complement; `sum-negated`: its two's complement.
        - `xor`: all bytes combined by exclusive or.
        - `crc16-…`: the CRC of that name.
        """
        match self:
            case Algorithm.SUM:
                return sum(data) & 0xFF
            case Algorithm.SUM_COMPLEMENT:
                return ~sum(data) & 0xFF
            case Algorithm.SUM_NEGATED:
                return -sum(data) & 0xFF
            case Algorithm.XOR:
                return _xor(data)
            case _:
                return _crc16(_CRCS[self], data)


@dataclass(frozen=True, slots=True)
class _Crc16:
    """A CRC: the polynomial (highest power first), start value, bit order, and the value XORed with the result."""

    polynomial: int
    start: int
    reflected: bool
    final: int = 0


_CRCS = {
    Algorithm.CRC16_ARC: _Crc16(0x8005, 0x0000, reflected=True),
    Algorithm.CRC16_MODBUS: _Crc16(0x8005, 0xFFFF, reflected=True),
    Algorithm.CRC16_MCRF4XX: _Crc16(0x1021, 0xFFFF, reflected=True),
    Algorithm.CRC16_X25: _Crc16(0x1021, 0xFFFF, reflected=True, final=0xFFFF),
    Algorithm.CRC16_KERMIT: _Crc16(0x1021, 0x0000, reflected=True),
    Algorithm.CRC16_CCITT_FALSE: _Crc16(0x1021, 0xFFFF, reflected=False),
    Algorithm.CRC16_XMODEM: _Crc16(0x1021, 0x0000, reflected=False),
}


def _xor(data: bytes) -> int:
    value = 0
    for byte in data:
        value ^= byte
    return value


def _crc16(crc: _Crc16, data: bytes) -> int:
    table = _table(crc.polynomial, reflected=crc.reflected)
    value = crc.start
    for byte in data:
        if crc.reflected:
            value = value >> 8 ^ table[(value ^ byte) & 0xFF]
        else:
            value = (value << 8) & 0xFFFF ^ table[value >> 8 ^ byte]
    return value ^ crc.final


@cache
def _table(polynomial: int, *, reflected: bool) -> tuple[int, ...]:
    return tuple(_entry(byte, polynomial, reflected=reflected) for byte in range(256))


def _entry(byte: int, polynomial: int, *, reflected: bool) -> int:
    if reflected:
        mirrored = int(f"{polynomial:016b}"[::-1], 2)
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (mirrored if value & 1 else 0)
        return value
    value = byte << 8
    for _ in range(8):
        value = (value << 1) & 0xFFFF ^ (polynomial if value & 0x8000 else 0)
    return value
