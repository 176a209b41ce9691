"""Texts and plates as searches compare them."""

import pytest

from gateway.store.engine.text_search import folded, holds, plate_in_text, searched_plate


@pytest.mark.parametrize(
    ("written", "searched"),
    [
        ("Möbel", "MÖBEL"),
        ("Mo\u0308bel", "möbel"),
        ("Straße", "STRASSE"),
        ("ΟΔΟΣ", "οδος"),
        ("Οδός", "ΟΔΌΣ"),
        ("Въезд", "ВЪЕЗД"),
        ("İstanbul", "istanbul"),
        ("ISPARTA", "\u0131sparta"),
        ("\uff21\uff22\uff11\uff12", "ab12"),
    ],
)
def test_case_and_unicode_form_do_not_count(written, searched):
    assert folded(written) == folded(searched)
    assert folded(folded(written)) == folded(written)


def test_different_letters_stay_different():
    assert folded("Muller") != folded("Müller")


@pytest.mark.parametrize("searched", ["ab12CD", "AB 12 CD", "12-CD", "b·12"])
def test_a_plate_is_held_in_any_spelling(searched):
    assert holds("The car AB-12 cd left.", folded(searched), plate_in_text(searched))


@pytest.mark.parametrize("searched", ["gate", "4 2", "", "card 0042 was lost at gate 7"])
def test_words_and_numbers_are_no_plates(searched):
    assert plate_in_text(searched) == ""


@pytest.mark.parametrize("searched", ["12%", "AB_12", "AB\\12"])
def test_other_signs_are_no_part_of_a_plate(searched):
    assert searched_plate(searched) == ""


def test_a_plate_may_be_of_digits_alone():
    assert searched_plate("12-34") == "1234"


def test_nothing_holds_no_text():
    assert not holds(None, "none", "")
