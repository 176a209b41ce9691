"""A card that is enrolled with what an unknown reading says answers to that reading."""

from datetime import UTC

import pytest

from gateway.central.pull.field_map import CardFieldMap, map_card
from gateway.domain.credentials import Credential, h10301_bits
from gateway.domain.enrolment import enrolment, readings_of
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
    card = map_card(1, dict(fields), CardFieldMap(), UTC).card
    assert set(card.aliases) & set(reading.aliases())


def test_a_reading_that_no_field_can_hold_is_not_offered():
    reading = Credential(19, 0x12345)
    assert enrolment(reading.shown(), read_as=reading.read_as()) == {}


def test_typed_text_is_a_printed_pair_a_number_or_a_plate():
    assert next(readings_of("001,11572")) == Credential(26, h10301_bits(1, 11572))
    assert list(readings_of(" dm-001 ")) == [Credential(text="dm-001"), Credential(plate="DM001")]
