from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.plate_text import plain_plate
from gateway.domain.credentials import Card, CardStatus
from gateway.domain.plates import NearPlate, nearest, skeleton, substitutions

NOW = 1_000


def listed(*plates):
    return [NearPlate(plate, Card(number, plate)) for number, plate in enumerate(plates, start=1)]


def blocked(plate, status=CardStatus.BLOCKED):
    return NearPlate(plate, Card(99, plate, status=status))


def test_blanks_dashes_and_case_do_not_count():
    assert plain_plate(" ab-12 cd") == "AB12CD"


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ("AB12CD", "AB12CD", 0),
        ("OO11", "0Q1I", 3),
        ("8B5S", "BB55", 2),
        ("AB12", "AB13", None),
        ("AB12", "AB123", None),
        ("6Z", "G2", 2),
    ],
)
def test_substitutions(one, other, count):
    assert substitutions(one, other) == count


def test_one_valid_plate_within_two_substitutions():
    assert nearest("A0B1", listed("AOBI"), NOW).card == Card(1, "AOBI")
    assert nearest("000A", listed("OOOA"), NOW).card is None, "three are too many"
    assert nearest("A0B1", listed("XYZ"), NOW).card is None


CYRILLIC = "А123ВС77"  # noqa: RUF001
HALF = "А123BС77"  # noqa: RUF001
GREEK = "ΙΕΖ1234"  # noqa: RUF001


@pytest.mark.parametrize(("listed_as", "read_as"), [(CYRILLIC, "A123BC77"), ("A123BC77", CYRILLIC), (GREEK, "IEZ1234")])
def test_letters_of_other_alphabets_that_look_the_same_are_near(listed_as, read_as):
    match = nearest(read_as, listed(listed_as), NOW)
    assert match.card == Card(1, listed_as)
    assert match.looks_alike
    assert not nearest("A0B1", listed("AOBI"), NOW).looks_alike
    assert skeleton(listed_as) == skeleton(read_as)


def test_plate_that_looks_the_same_opens_nothing_beside_a_blocked_or_another_one():
    assert nearest("A123BC77", [*listed(CYRILLIC), blocked(HALF)], NOW).card is None
    assert nearest("A123BC77", listed(CYRILLIC, HALF), NOW).card is None


def test_plate_is_plain_in_any_width_and_with_the_digits_of_any_script():
    assert plain_plate("\uff41\uff42 \u0661\u0662-\uff13") == "AB123"


def test_two_valid_plates_that_near_are_none():
    assert nearest("A0B1", listed("AOB1", "AQB1"), NOW).card is None


def test_a_blocked_plate_as_near_forbids():
    assert nearest("A0B1", [*listed("AOB1"), blocked("AQB1")], NOW).card is None
    assert nearest("A0B1", [*listed("AOB1"), blocked("AQB1", CardStatus.LOST)], NOW).card is None
    assert nearest("A0B1", [*listed("AOB1"), blocked("AQBI")], NOW).card is not None, "that one is farther"


def test_cards_that_are_not_valid_now_are_no_match():
    over = [NearPlate("AOB1", Card(1, "", valid_until=NOW)), NearPlate("AQB1", Card(2, "", valid_from=NOW))]
    assert nearest("A0B1", over, NOW).card == Card(2, "", valid_from=NOW)


@given(st.text("ABO0DQ12Z5S8BG6I", max_size=8))
def test_a_skeleton_is_its_own_skeleton(plate):
    assert skeleton(skeleton(plate)) == skeleton(plate)
    assert substitutions(plate, skeleton(plate)) is not None
