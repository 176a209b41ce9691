"""Central's clock out of its answers' headers."""

from __future__ import annotations

import pytest

from gateway.central.client.state import CentralOffset, offset_from
from gateway.runtime.clock import Stamp

DATE = "Sat, 31 Jan 2026 12:00:00 GMT"
NOON = 1_769_860_800


def seen(seconds, *, took=0.2, **headers):
    stamp = Stamp(micros=int((NOON + seconds) * 1_000_000), trusted=True)
    return offset_from({"Date": DATE, **headers}, wall=stamp, took=took)


def offset(seconds, doubt, at=0):
    return CentralOffset(seconds, doubt, Stamp(at * 1_000_000, trusted=True))


def test_clocks_that_agree_differ_by_no_more_than_the_doubt():
    for late in (0.1, 0.5, 1.1):
        found = seen(late)
        assert abs(found.seconds) <= found.doubt
        assert not found.exceeds(0)


@pytest.mark.parametrize(
    ("ours", "text"),
    [
        (-90, "is 1 min 31 s ahead of"),
        (91, "is 1 min 30 s behind"),
        (10_800.5, "is 3 h behind"),
        (-172_800, "is 2 d ahead"),
    ],
)
def test_a_difference_is_found_and_said(ours, text):
    found = seen(ours)
    assert found.exceeds(80)
    assert text in str(found.sentence())


@pytest.mark.parametrize("date", ["yesterday", "", "Sat, 31 Jan 2026 99:00:00 GMT"])
def test_a_date_that_is_none_says_nothing(date):
    assert offset_from({"Date": date}, wall=Stamp(0, trusted=True), took=0.1) is None
    assert offset_from({}, wall=Stamp(0, trusted=True), took=0.1) is None


def test_an_answer_out_of_a_cache_or_long_under_way_says_nothing():
    assert seen(0, Age="30") is None
    assert seen(0, took=20) is None


def test_the_surer_one_counts_until_it_is_old_or_contradicted():
    known = offset(1.0, 0.5)
    assert offset(1.0, 0.4).says_more_than(known)
    assert not offset(1.2, 0.8).says_more_than(known)
    assert offset(1.2, 0.8, at=700).says_more_than(known)
    assert offset(9.0, 0.8).says_more_than(known)
    assert known.says_more_than(None)
