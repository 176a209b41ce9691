"""Texts of events as spreadsheets take them."""

import pytest

from gateway.domain.events import without_formula


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_no_text_of_an_event_is_a_formula(begin):
    assert without_formula(f"{begin}1+1") == f"'{begin}1+1"
    assert without_formula(f"1{begin}1") == f"1{begin}1"
    assert without_formula("") == ""
