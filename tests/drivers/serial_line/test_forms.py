"""The meaning of a line's bytes. The parity is checked against the definition of the credentials."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.serial_line.reader import Reading, read_line
from gateway.domain.credentials import Credential, h10301_alias, h10301_bits


@given(st.integers(0, 255), st.integers(0, 65_535), st.sampled_from(["{:03d},{:05d}", "{:03d}{:05d}"]))
def test_facility_and_card_become_26_bits(facility, number, pattern):
    reading = read_line(pattern.format(facility, number).encode(), form="wiegand26")
    assert reading == Reading(26, h10301_bits(facility, number), "")
    assert h10301_alias(facility, number) in Credential(reading.bit_length, reading.bits).aliases()


@pytest.mark.parametrize(
    ("line", "form", "prefix", "reading"),
    [
        (b"213,02000", "wiegand26", "", Reading(26, h10301_bits(213, 2000), "")),
        (b"\x02W-001,11572\x03", "wiegand26", "W-", Reading(26, h10301_bits(1, 11_572), "")),
        (b"7186A61E", "hex", "", Reading(32, 0x7186A61E, "")),
        (b"0a", "hex", "", Reading(8, 0x0A, "")),
        (b"0013961168", "decimal", "", Reading(32, 13_961_168, "0013961168")),
        (b"18446744073709551615", "decimal", "", Reading(64, 2**64 - 1, "18446744073709551615")),
        (b"  CARD-7 \r", "text", "", Reading(0, 0, "CARD-7")),
        (b"ID:CARD-7", "text", "ID:", Reading(0, 0, "CARD-7")),
        (b"CARD-7", "text", "ID:", Reading(0, 0, "CARD-7")),
        (b"\x00\x00CARD-7", "text", "", Reading(0, 0, "CARD-7")),
    ],
)
def test_a_line_is_read(line, form, prefix, reading):
    assert read_line(line, form=form, prefix=prefix) == reading


@pytest.mark.parametrize(
    ("line", "form"),
    [
        (b"\xff\xfe12", "text"),
        (b"\x02\x03", "text"),
        (b"12\x0034", "text"),
        (b"12G4", "hex"),
        (b"F" * 65, "hex"),
        (b"-12", "decimal"),
        (b"1.5", "decimal"),
        (b"18446744073709551616", "decimal"),
        (b"256,1", "wiegand26"),
        (b"1,65536", "wiegand26"),
        (b"12345", "wiegand26"),
        (b"1,2,3", "wiegand26"),
        (b"0001,2", "wiegand26"),
    ],
)
def test_a_line_of_another_form_is_a_violation(line, form):
    with pytest.raises(ProtocolViolation):
        read_line(line, form=form)


@given(st.binary(max_size=300), st.sampled_from(["text", "hex", "decimal", "wiegand26"]))
def test_noise_is_a_violation_or_a_reading(noise, form):
    with contextlib.suppress(ProtocolViolation):
        reading = read_line(noise, form=form)
        assert reading.bits < 1 << max(reading.bit_length, 1)
