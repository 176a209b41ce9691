"""Printed numbers, readers' ways, and the question which of them fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.credentials import uid_alias
from gateway.domain.printed import ReaderBits, explain, layout_named, listed_aliases, meanings
from gateway.domain.wiegand import CORPORATE_1000, FORMATS, H10301, H10302, H10304

ONE = H10301.build(1, 11572)

ways = st.builds(ReaderBits, st.integers(0, 2), st.integers(0, 2), st.booleans(), st.booleans(), st.booleans())


def turned(bit_length, bits, way):
    """Return the bits that a reader of this way sends for a card."""
    if way.last_byte_first and bit_length % 8 == 0:
        bits = int.from_bytes(bits.to_bytes(bit_length // 8, "big")[::-1], "big")
    if way.last_bit_first:
        bits = int(f"{bits:0{bit_length}b}"[::-1], 2)
    if way.inverted:
        bits ^= (1 << bit_length) - 1
    return bit_length + way.skip_first + way.skip_last, bits << way.skip_last


@given(way=ways, number=st.integers(0, 2**32 - 1))
def test_every_way_is_undone(way, number):
    assert way.undo(*turned(32, number, way)) == (32, number)


@given(length=st.integers(0, 40), bits=st.integers(0), way=ways)
def test_any_reading_can_be_turned(length, bits, way):
    out, turned_bits = way.undo(length, bits % (1 << length))
    assert 0 <= turned_bits < 1 << out


def test_known_turns():
    assert ReaderBits(last_byte_first=True).undo(32, 0x7186A61E) == (32, 0x1EA68671)
    facility = ReaderBits(inverted=True).undo(8, 55)
    assert facility == (8, 200)
    assert ReaderBits(1, 0, inverted=True).setting() == "bits = { skip_first = 1, inverted = true }"
    assert ReaderBits().setting() == ""


@pytest.mark.parametrize(
    ("printed", "length", "bits", "setting"),
    [
        ("001,11572", 26, ONE, ""),
        ("77108", 26, ONE, ""),
        ("00111572", 26, ONE, ""),
        ("11572", 26, ONE, ""),
        ("1:11572", 26, ONE ^ 0x3FFFFFF, "bits = { inverted = true }"),
        ("1/11572", 26, int(f"{ONE:026b}"[::-1], 2), "bits = { last_bit_first = true }"),
        ("1-11572", 27, ONE, "bits = { skip_first = 1 }"),
        ("1-11572", 27, ONE << 1, "bits = { skip_last = 1 }"),
        ("213,02000", 24, 213 << 16 | 2000, ""),
        ("0013961168", 26, H10301.build(213, 2000), ""),
        ("7186A61E", 32, 0x1EA68671, "bits = { last_byte_first = true }"),
        ("71:86:a6:1e", 32, 0x7186A61E, ""),
        ("123456", 37, H10302.build(0, 123456), ""),
        ("12345,123456", 37, H10304.build(12345, 123456), ""),
        ("4000,654321", 35, CORPORATE_1000.build(4000, 654321), ""),
    ],
)
def test_what_makes_a_number_fit(printed, length, bits, setting):
    fits = explain(printed, length, bits)
    assert fits
    assert setting in {fit.way.setting() for fit in fits}


def test_facility_55_read_as_200():
    """A reader that inverts 24 bits shows facility 55 as 200."""
    (fit, *_) = explain("200,1", 24, (200 << 16 | 1) ^ 0xFFFFFF)
    assert (0xFFFFFF ^ (200 << 16 | 1)) >> 16 == 55
    assert fit.way == ReaderBits(inverted=True)


def test_nothing_fits_another_card():
    assert explain("002,11572", 26, ONE) == ()
    assert explain("hello", 26, ONE) == ()
    assert list(meanings("")) == []


@given(layout=st.sampled_from(FORMATS), way=ways, data=st.data())
def test_whatever_a_reader_does_is_found(layout, way, data):
    facility = data.draw(st.integers(0, min(0xFFFF, (1 << layout.facility_bits) - 1)))
    number = data.draw(st.integers(0, min(9_999_999, (1 << layout.number_bits) - 1)))
    printed = f"{facility},{number}" if layout.facility_bits else str(number)
    if way.skip_first + way.skip_last > 2:
        return
    assert explain(printed, *turned(layout.bit_length, layout.build(facility, number), way))


@pytest.mark.parametrize(
    ("name", "layout"),
    [("H10301", H10301), ("37-bit H10304", H10304), ("Corporate 1000", CORPORATE_1000), ("mifare", None), ("", None)],
)
def test_named_formats(name, layout):
    assert layout_named(name) is layout


@pytest.mark.parametrize(
    ("text", "layout", "aliases"),
    [
        ("0013961168", None, ["digits:13961168", "raw:32:D507D0", "h10301:213:2000"]),
        ("4294967295", None, ["raw:32:FFFFFFFF"]),
        ("77108", None, []),
        ("0077108", None, ["digits:77108"]),
        ("77108", H10301, ["h10301:1:11572"]),
        ("11572", H10301, []),
        ("11572", H10302, ["h10302:11572"]),
        ("9999999999", None, []),
        ("12a", H10301, []),
        ("001,11572", None, ["h10301:1:11572"]),
        ("1 11572", None, ["h10301:1:11572"]),
        ("300,5", H10304, ["h10304:300:5"]),
        ("300,5", None, []),
        ("04:A2:24:B2:C5:5E:80", None, ["raw:56:4A224B2C55E80"]),
        ("1ea68671", None, ["raw:32:1EA68671"]),
        ("12-34-56-78", None, []),
    ],
)
def test_only_what_cannot_mean_another_card_becomes_an_alias(text, layout, aliases):
    assert list(listed_aliases(text, layout))[1:] == aliases


def test_beside_a_facility_of_its_own_a_bare_number_is_characters_alone():
    assert list(listed_aliases("0013961168", None, whole=False)) == ["text:0013961168"]


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("7186a61e", "raw:32:7186A61E"),
        ("04:A2:24:B2:C5:5E:80", "raw:56:4A224B2C55E80"),
        ("7186a6", None),
        ("xyz", None),
        ("0x04123456", "raw:32:4123456"),
        ("1ea68671h", "raw:32:1EA68671"),
    ],
)
def test_uids(text, alias):
    assert uid_alias(text) == alias
