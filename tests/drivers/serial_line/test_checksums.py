"""Check values against the published ones, and against frames of real devices."""

from __future__ import annotations

import pytest

from drivers.serial_line.frames import Algorithm

DIGITS = b"123456789"


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [
        (Algorithm.CRC16_ARC, 0xBB3D),
        (Algorithm.CRC16_MODBUS, 0x4B37),
        (Algorithm.CRC16_MCRF4XX, 0x6F91),
        (Algorithm.CRC16_X25, 0x906E),
        (Algorithm.CRC16_KERMIT, 0x2189),
        (Algorithm.CRC16_CCITT_FALSE, 0x29B1),
        (Algorithm.CRC16_XMODEM, 0x31C3),
        (Algorithm.SUM, 0xDD),
        (Algorithm.SUM_COMPLEMENT, 0x22),
        (Algorithm.SUM_NEGATED, 0x23),
        (Algorithm.XOR, 0x31),
    ],
)
def test_the_catalogues_check_values(algorithm, value):
    assert algorithm.of(DIGITS) == value
    assert algorithm.width == (2 if value > 0xFF else 1)


@pytest.mark.parametrize(
    ("algorithm", "covered", "check"),
    [
        (Algorithm.SUM, "A0 01 01", "A2"),
        (Algorithm.SUM, "A0 01 00", "A1"),
        (Algorithm.XOR, "EB 01 40 00", "AA"),
        (Algorithm.XOR, "EB 01 41 00", "AB"),
        # The maker's table says AB for both of these.
        (Algorithm.XOR, "EB 01 42 00", "A8"),
        (Algorithm.XOR, "EB 01 43 00", "A9"),
        (Algorithm.SUM_COMPLEMENT, "7E 00 01 10 00 00 00", "70"),
        (Algorithm.CRC16_MCRF4XX, "04 00 01", "DB 4B"),
        (Algorithm.XOR, "00 FF 00 66 01 05", "9D"),
        (Algorithm.XOR, "01 82 01 64", "E6"),
    ],
)
def test_frames_of_devices(algorithm, covered, check):
    value = algorithm.of(bytes.fromhex(covered))
    assert value.to_bytes(algorithm.width, "little") == bytes.fromhex(check)
