"""Card formats against bits made by other programs, and against themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.credentials import Credential, h10301_bits
from gateway.domain.wiegand import CORPORATE_1000, FORMATS, H10301, H10302, H10304, H10306, formats_of


def even(bits, places):
    return sum(bits >> place & 1 for place in places) % 2


@given(layout=st.sampled_from(FORMATS), data=st.data())
def test_what_is_built_is_read_back(layout, data):
    facility = data.draw(st.integers(0, (1 << layout.facility_bits) - 1))
    number = data.draw(st.integers(0, (1 << layout.number_bits) - 1))
    bits = layout.build(facility, number)
    assert bits < 1 << layout.bit_length
    assert layout.fits(bits)
    assert layout.numbers(bits) == (facility, number)
    assert layout in formats_of(layout.bit_length, bits)
    assert layout.alias(facility, number) in Credential(layout.bit_length, bits).aliases()


@given(layout=st.sampled_from(FORMATS), data=st.data())
def test_one_flipped_bit_never_fits(layout, data):
    bits = layout.build(0, data.draw(st.integers(0, (1 << layout.number_bits) - 1)))
    assert not layout.fits(bits ^ 1 << data.draw(st.integers(0, layout.bit_length - 1)))


@given(facility=st.integers(0, 0xFFF), number=st.integers(0, 0xFFFFF))
def test_parity_of_corporate_1000_bit_by_bit(facility, number):
    """Bits counted from 1 at the front, as the format's description does."""
    bits = CORPORATE_1000.build(facility, number)
    at = [bits >> 35 - place & 1 for place in range(36)]
    assert sum(at[place] for place in (2, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 18, 19, 21, 22, 24, 25)) + sum(
        at[place] for place in (27, 28, 30, 31, 33, 34)
    ) in range(0, 30, 2)
    covered = (2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21, 23, 24, 26, 27, 29, 30, 32, 33, 35)
    assert sum(at[place] for place in covered) % 2 == 1
    assert sum(at[1:]) % 2 == 1


@given(number=st.integers(0, (1 << 35) - 1))
def test_37_bits_share_their_middle_bit_and_both_formats(number):
    bits = H10302.build(0, number)
    assert even(bits, range(18, 37)) == 0
    assert even(bits, range(19)) == 1
    facility, short = H10304.numbers(bits)
    assert facility << 19 | short == number
    assert {H10302, H10304} == set(formats_of(37, bits))


def test_known_bits():
    assert H10301.build(1, 11572) == h10301_bits(1, 11572) == 0b0_00000001_0010110100110100_1
    assert H10306.build(1, 1) == 1 << 33 | 1 << 17 | 1 << 1
    assert [layout.name for layout in formats_of(26, 0)] == []


def test_numbers_without_room():
    with pytest.raises(ValueError, match="h10301 has no room"):
        H10301.build(256, 1)
    with pytest.raises(ValueError, match="no room"):
        H10302.build(1, 1)


@pytest.mark.parametrize(
    ("credential", "shown"),
    [
        (Credential(26, h10301_bits(1, 11572)), "001,11572"),
        (Credential(37, H10302.build(0, 123456)), "123456"),
        (Credential(32, 0x7186A61E), "32 bits 7186A61E"),
        (Credential(text=" 12 "), "12"),
        (Credential(plate="AB12CD"), "AB12CD"),
    ],
)
def test_shown(credential, shown):
    assert credential.shown() == shown


def test_aliases_of_plates_and_text_never_meet():
    assert Credential(plate="0007").aliases() == ("plate:0007",)
    assert Credential(text="0007").aliases() == ("text:0007",)
