"""The meaning of a line's bytes. The parity is checked against the definition of the credentials."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.serial_line.card_lines import Reading, read_line
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
        (b"\x00\xffCARD-7", "text", "", Reading(0, 0, "CARD-7")),  # the line was switched on
        (b"\xc3\x41\xd2\x44\x2d\xb7\x8d", "text", "", Reading(0, 0, "CARD-7")),  # seven bits, even parity
        (b"C\x00A\x00R\x00D\x00-\x007\x00", "text", "", Reading(0, 0, "CARD-7")),
        (b"04:a1:b2:c3", "hex", "", Reading(32, 0x04A1B2C3, "")),
        (b"04 A1-B2.C3", "hex", "", Reading(32, 0x04A1B2C3, "")),
        (b"0x1EA68671", "hex", "", Reading(32, 0x1EA68671, "")),
        (b"1ea68671h", "hex", "", Reading(32, 0x1EA68671, "")),
        (b"\x020A004D760332\x03", "hex", "", Reading(48, 0x0A004D760332, "", is_tag_frame=True)),
        (b"0A004D760332", "hex", "", Reading(48, 0x0A004D760332, "")),  # STX was lost
        (b"\x0204A1B2C3\x03", "hex", "", Reading(32, 0x04A1B2C3, "")),
        (b"077:30211", "wiegand26", "", Reading(26, h10301_bits(77, 30_211), "")),
    ],
)
def test_a_line_is_read(line, form, prefix, reading):
    assert read_line(line, form=form, prefix=prefix) == reading


@pytest.mark.parametrize(
    ("line", "form"),
    [
        (b"12\xff", "text"),
        (b"\xb11572", "text"),
        (b"\x020A004D76023A\x03", "hex"),
        (b"\x03\x020A004D76033B\r\n", "hex"),
        (b"0A004D76023A\r\n\x03", "hex"),  # STX was lost
        (b"\x060A004D76023A\r\n\x03", "hex"),
        (b"\x020A:00:4D:76:02:3A\x03", "hex"),
        (b"\x020x0A004D76023A\x03", "hex"),
        (b"\x020a004d76023ah\x03", "hex"),
        (b"0x", "hex"),
        (b"04::g1", "hex"),
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


@pytest.mark.parametrize(
    ("line", "check_digits", "is_right"),
    [
        (b"0A004D760332", "xor", True),
        (b"0A004D76023A", "xor", False),
        (b"0A004D760332", "none", True),
        (b"0A004D7603D0", "sum", True),
        (b"0A004D7603D1", "sum", False),
        (b"0A0", "xor", False),
        (b"\x020A004D76023A", "none", True),
    ],
)
def test_check_digits_that_the_site_file_names_are_verified(line, check_digits, is_right):
    with contextlib.nullcontext() if is_right else pytest.raises(ProtocolViolation):
        read_line(line, form="hex", check_digits=check_digits)


SPELLINGS = ["\x02{}\x03", "{}\x03", "\x00{}", "\x03{}", "\x06{}", "\x7f\x02{}", "\x020x{}", "\x02{}h"]


@given(
    st.binary(min_size=5, max_size=5),
    st.integers(0, 11),
    st.sampled_from("0123456789ABCDEF"),
    st.sampled_from(SPELLINGS),
    st.sampled_from(["", ":", " ", "-", "."]),
)
def test_one_misread_digit_of_a_tag_frame_is_no_card(tag, place, digit, spelling, between):
    check = 0
    for byte in tag:
        check ^= byte
    digits = tag.hex().upper() + f"{check:02X}"
    misread = digits[:place] + digit + digits[place + 1 :]
    line = spelling.format(between.join(misread[at : at + 2] for at in range(0, 12, 2)))
    with contextlib.nullcontext() if misread == digits else pytest.raises(ProtocolViolation):
        read_line(line.encode(), form="hex")


@pytest.mark.parametrize("line", [b"\x020A004D76033\x03", b"4D760332", b"A1B2C3D0", b"\x02B0A004D760332\x03"])
def test_a_reader_of_tag_frames_sends_no_other_line(line):
    assert read_line(line, form="hex").bit_length
    with pytest.raises(ProtocolViolation):
        read_line(line, form="hex", sends_tag_frames=True)
    assert read_line(line, form="hex", check_digits="none", sends_tag_frames=True).bit_length
