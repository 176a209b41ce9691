"""Date filters across summer time, offsets and the ends of time."""

from zoneinfo import ZoneInfo

import pytest

from gateway.runtime.clock import iso_utc
from gateway.web.http.dates import from_micros, until_micros

TORONTO = ZoneInfo("America/Toronto")


def test_a_day_is_the_sites_day_even_when_it_has_23_hours():
    assert iso_utc(from_micros("2026-03-08", TORONTO)) == "2026-03-08T05:00:00.000Z"
    assert iso_utc(until_micros("2026-03-08", TORONTO)) == "2026-03-09T04:00:00.000Z"


def test_a_moment_is_taken_as_written_or_in_the_sites_zone():
    assert iso_utc(from_micros(" 2026-07-01T12:00:00Z ", TORONTO)) == "2026-07-01T12:00:00.000Z"
    assert iso_utc(from_micros("2026-07-01T12:00:00+02:00", TORONTO)) == "2026-07-01T10:00:00.000Z"
    assert iso_utc(from_micros("2026-07-01 12:00", TORONTO)) == "2026-07-01T16:00:00.000Z"


def test_an_end_includes_its_millisecond():
    at = from_micros("2026-07-01T12:00:00.123Z", TORONTO)
    assert until_micros("2026-07-01T12:00:00.123Z", TORONTO) == at + 1_000


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-02-30", "0000-01-01", "2026-1-1", "12:00", "9999-12-31T23:59:59-12:00"]
)
def test_what_is_no_date_is_refused(text):
    with pytest.raises(ValueError, match=r"must be a date|out of range"):
        from_micros(text, TORONTO)


def test_the_last_day_of_all_has_no_end():
    assert until_micros("9999-12-31", TORONTO) > from_micros("9999-12-31", TORONTO)
