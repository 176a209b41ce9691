"""Schedules in local time: holidays, windows over midnight, and both changes of daylight saving."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.schedules import WEEK, Calendar, Schedule, Window

MONTREAL = ZoneInfo("America/Toronto")
CHRISTMAS = Calendar(MONTREAL, {date(2026, 12, 25): "Christmas"})


def at(text, zone=MONTREAL, fold=0):
    moment = datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def schedule(*windows):
    return Schedule("hours", tuple(Window(frozenset(days), begins, ends) for days, begins, ends in windows))


OFFICE = schedule((WEEK[:5], time(8), time(18)))
NIGHT = schedule((["fri"], time(22), time(6)))


@pytest.mark.parametrize(
    ("moment", "open_"),
    [
        ("2026-01-30T07:59:59", False),
        ("2026-01-30T08:00:00", True),
        ("2026-01-30T17:59:59", True),
        ("2026-01-30T18:00:00", False),
        ("2026-01-31T12:00:00", False),  # a Saturday
        ("2026-12-25T12:00:00", False),  # a holiday on a Friday
    ],
)
def test_office_hours(moment, open_):
    assert CHRISTMAS.is_open(OFFICE, at(moment)) is open_


@pytest.mark.parametrize(
    ("moment", "open_"),
    [
        ("2026-01-30T21:59:59", False),
        ("2026-01-30T22:00:00", True),
        ("2026-01-31T05:59:59", True),
        ("2026-01-31T06:00:00", False),
        ("2026-01-30T05:00:00", False),  # the window of Thursday does not exist
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_it_begins_on(moment, open_):
    assert CHRISTMAS.is_open(NIGHT, at(moment)) is open_


def test_a_night_that_begins_on_a_holiday_does_not_begin_and_one_before_it_ends_in_it():
    thursdays = schedule((["thu"], time(22), time(6)))
    assert CHRISTMAS.is_open(thursdays, at("2026-12-25T05:00:00"))
    assert not CHRISTMAS.is_open(NIGHT, at("2026-12-25T23:00:00"))
    assert not CHRISTMAS.is_open(NIGHT, at("2026-12-26T05:00:00"))


def test_windows_for_holidays():
    short = schedule((["holiday"], time(10), time(12)))
    assert CHRISTMAS.is_open(short, at("2026-12-25T11:00:00"))
    assert not CHRISTMAS.is_open(short, at("2026-12-24T11:00:00"))


def test_equal_times_are_a_whole_day():
    whole = schedule((["sat"], time(6), time(6)))
    assert CHRISTMAS.is_open(whole, at("2026-01-31T06:00:00"))
    assert CHRISTMAS.is_open(whole, at("2026-02-01T05:59:59"))
    assert not CHRISTMAS.is_open(whole, at("2026-02-01T06:00:00"))


def test_the_hour_that_comes_twice_counts_twice():
    """2026-11-01 in Montreal: 01:30 comes at 05:30 and again at 06:30 UTC."""
    early = schedule((["sun"], time(1), time(2)))
    first, second = at("2026-11-01T01:30:00", fold=0), at("2026-11-01T01:30:00", fold=1)
    assert second - first == 3_600_000_000
    assert CHRISTMAS.is_open(early, first)
    assert CHRISTMAS.is_open(early, second)
    assert not CHRISTMAS.is_open(early, second + 30 * 60_000_000)


def test_the_hour_that_is_skipped_does_not_come():
    """2026-03-08 in Montreal: 01:59:59 is followed by 03:00."""
    skipped, across = schedule((["sun"], time(2), time(3))), schedule((["sun"], time(2, 30), time(3, 30)))
    before = at("2026-03-08T01:59:00")
    opened = [minute for minute in range(180) if CHRISTMAS.is_open(skipped, before + minute * 60_000_000)]
    assert opened == []
    assert CHRISTMAS.is_open(across, before + 2 * 60_000_000)


@given(micros=st.integers(-(2**62), 2**62))
def test_any_moment_can_be_asked_about(micros):
    assert CHRISTMAS.is_open(OFFICE, micros) in {True, False}


@given(hour=st.integers(0, 365 * 24 * 4))
def test_a_schedule_and_the_rest_of_the_week_take_turns(hour):
    """Before eight the windows of the day before still hold, which may be a day of another kind."""
    rest = schedule((WEEK[:5], time(18), time(8)), (["sat", "sun"], time(8), time(8)), (["holiday"], time(8), time(8)))
    micros = at("2026-01-01T00:00:00") + hour * 15 * 60_000_000
    either = CHRISTMAS.is_open(OFFICE, micros) != CHRISTMAS.is_open(rest, micros)
    assert either or CHRISTMAS.local(micros).time() < time(8)
