"""Lengths of time as they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.web.legacy.access import LONGEST, length_of

HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("8", 8), ("1.5", 1.5), (" 8 h ", 8), ("8h", 8), ("8 hours", 8), ("1 hour", 1), ("90 minutes", 1.5),
        ("90m", 1.5),
        ("30 min", 0.5), ("2 days", 48), ("1d", 24), ("1 week", 168), ("PT8H", 8), ("P1D", 24), ("P1DT12H", 36),
        ("P2W", 336), ("PT90M", 1.5), ("PT1.5H", 1.5), ("PT3600S", 1), ("pt8h", 8),
    ],
)  # fmt: skip
def test_lengths_that_are_understood(text, hours):
    assert length_of(text) == hours * HOUR


@pytest.mark.parametrize("text", ["permanent", "Permanent", " permanent "])
def test_permanent_has_no_length(text):
    assert length_of(text) is None


@pytest.mark.parametrize(
    "text",
    ["", "soon", "0", "0h", "-1", "P", "PT", "P1Y", "P1M", "P1DT", "1 fortnight", "11 years", "999999999", "1e9", "nan",
     "8hs", "\u0664", "inf", "1,5"],
)  # fmt: skip
def test_what_is_no_length_is_named(text):
    with pytest.raises(ValueError, match=r"must be"):
        length_of(text)


@given(st.text(max_size=20))
def test_any_text_is_a_length_or_refused(text):
    try:
        length = length_of(text)
    except ValueError:
        return
    assert length is None or 0 < length <= LONGEST
