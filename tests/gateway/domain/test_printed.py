"""A card that is enrolled with what an unknown reading says answers to that reading."""

from datetime import UTC

import pytest

from gateway.central.field_map import CardFieldMap, map_card
from gateway.domain.credentials import Credential, h10301_bits
from gateway.domain.printed import enrolment, readings_of
from gateway.domain.wiegand import CORPORATE_1000, H10302, H10306

READINGS = {
    "26 bits": Credential(26, h10301_bits(1, 11572)),
    "34 bits with a format": Credential(34, H10306.build(12, 345)),
    "35 bits": Credential(35, CORPORATE_1000.build(700, 9)),
    "37 bits without a facility": Credential(37, H10302.build(0, 4711)),
    "a tag's number": Credential(32, 0x04A1B2C3),
    "text": Credential(text="AB-12"),
    "plate": Credential(plate="DM001"),
}


@pytest.mark.parametrize("name", READINGS)
def test_an_enrolled_card_answers_to_the_reading(name):
    reading = READINGS[name]
    fields = enrolment(reading.shown(), read_as=reading.read_as(), plate=reading.plate)
    card = map_card(1, dict(fields), CardFieldMap(), UTC)
    assert set(card.aliases) & set(reading.aliases())


def test_a_reading_that_no_field_can_hold_is_not_offered():
    reading = Credential(19, 0x12345)
    assert enrolment(reading.shown(), read_as=reading.read_as()) == {}


@pytest.mark.parametrize(
    ("typed", "first", "others"),
    [
        ("001,11572", Credential(26, h10301_bits(1, 11572)), {Credential(text="001,11572")}),
        ("77108", Credential(text="77108"), {Credential(26, h10301_bits(1, 11572))}),
        ("00111572", Credential(text="00111572"), {Credential(26, h10301_bits(1, 11572))}),
        (
            "0005076483",
            Credential(text="0005076483"),
            {Credential(32, 0x4D7603), Credential(26, h10301_bits(77, 30211))},
        ),
        ("04:a1:b2:c3", Credential(text="04:a1:b2:c3"), {Credential(32, 0x04A1B2C3)}),
        ("dm-001", Credential(text="dm-001"), set()),
    ],
)
def test_typed_text_may_stand_for_several_readings(typed, first, others):
    found = readings_of(typed)
    assert found[0] == first
    assert others <= set(found)


SPELLINGS = [
    ("0005076483", Credential(text="5076483")),
    ("5076483", Credential(32, 5076483, text="0005076483")),
    ("0005076483", Credential(32, 0x4D7603)),
    ("0005076483", Credential(26, h10301_bits(77, 30211))),
    ("077,30211", Credential(26, h10301_bits(77, 30211))),
    ("77 30211", Credential(26, h10301_bits(77, 30211))),
    ("04:A1:B2:C3:D4:E5:F6", Credential(56, 0x04A1B2C3D4E5F6)),
    ("1ea68671", Credential(32, 0x1EA68671)),
    ("3-2965", Credential(text="003,02965")),
    ("256-70000", Credential(text="256,70000")),
    ("256,70000", Credential(text="256:70000")),
    ("3 2965", Credential(text="003:02965")),
    ("3\u20132965", Credential(text="003,02965")),
    ("0000199573", Credential(text="003,02965")),
    ("1e a6 86 71", Credential(text="1EA68671")),
    ("0x1EA68671", Credential(text="1ea68671h")),
    ("04A2B3C4D5E680", Credential(text="04:a2:b3:c4:d5:e6:80")),
    ("\uff11\uff12\uff13\uff15", Credential(text="1235")),
    ("\u200f\u0661\u0662\u0663\u0664", Credential(text="1234")),
    ("\uff21\uff22\uff0d\uff17", Credential(text="ab-7")),
]


@pytest.mark.parametrize(("number", "reading"), SPELLINGS)
def test_one_number_in_any_spelling_is_one_card(number, reading):
    card = map_card(1, {"number": number}, CardFieldMap(), UTC)
    assert set(card.aliases) & {*reading.aliases(), *reading.other_spellings()}


@pytest.mark.parametrize(
    ("number", "reading"),
    [
        ("11572", Credential(text="1157")),
        ("0", Credential(text="00A")),
        ("12\u00b2", Credential(text="122")),
        ("3-2965", Credential(text="32965")),
        ("3-2965", Credential(text="003,02966")),
        ("12345678", Credential(text="12:34:56:78")),
    ],
)
def test_another_number_is_another_card(number, reading):
    card = map_card(1, {"number": number}, CardFieldMap(), UTC)
    assert not set(card.aliases) & {*reading.aliases(), *reading.other_spellings()}


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([{"number": "3,2965"}, {"number": "3,2965", "format": "H10304"}], "003,02965"),
        ([{"uid": "1EA68671"}, {"number": "1e:a6:86:71"}], "1EA6:8671"),
    ],
)
def test_a_spelling_that_may_be_the_card_of_two_finds_both(records, text):
    reading = Credential(text=text)
    cards = [map_card(place, record, CardFieldMap(), UTC) for place, record in enumerate(records, 1)]
    assert not any(set(card.aliases) & set(reading.aliases()) for card in cards)
    assert all(set(card.aliases) & set(reading.other_spellings()) for card in cards)


def test_a_tag_of_digits_alone_is_no_other_number():
    tag, number = ({"uid": "04123456"}, {"number": "4123456"})
    reading = Credential(text="04:12:34:56")
    found = [
        bool(set(map_card(1, record, CardFieldMap(), UTC).aliases) & set(reading.other_spellings()))
        for record in (tag, number)
    ]
    assert found == [True, False]
