"""A card that is enrolled with what an unknown reading says answers to that reading."""

from datetime import UTC

import pytest

from gateway.central.pull.field_map import CardFieldMap, map_card
from gateway.domain.credentials import Credential, h10301_bits
from gateway.domain.printed import enrolment, readings_of
from gateway.domain.wiegand import CORPORATE_1000, H10302, H10306

H10301_77 = Credential(26, h10301_bits(77, 30211))
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
    card = map_card(1, dict(fields), CardFieldMap(), UTC).card
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
]


@pytest.mark.parametrize(("number", "reading"), SPELLINGS)
def test_one_number_in_any_spelling_is_one_card(number, reading):
    card = map_card(1, {"number": number}, CardFieldMap(), UTC).card
    assert set(card.aliases) & {*reading.aliases(), *reading.other_spellings()}


@pytest.mark.parametrize(("number", "reading"), [("11572", Credential(text="1157")), ("0", Credential(text="00A"))])
def test_another_number_is_another_card(number, reading):
    card = map_card(1, {"number": number}, CardFieldMap(), UTC).card
    assert not set(card.aliases) & {*reading.aliases(), *reading.other_spellings()}
