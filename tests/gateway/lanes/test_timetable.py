"""What the schedule wants, at the edges of its windows and in the site's own time."""

from __future__ import annotations

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from gateway.clock import Stamp
from gateway.domain.schedules import WEEK, Calendar, Schedule, Window
from gateway.lanes.orders import OrderKind
from gateway.lanes.timetable import Timetable

HERE = Calendar(zone=ZoneInfo("Europe/Berlin"))
MORNING = Schedule("Morning rush", (Window(frozenset(WEEK), time(7), time(9)),))
NIGHT = Schedule("Night", (Window(frozenset(WEEK), time(22), time(5)),))
TIMETABLE = Timetable(calendar=HERE, hold_open=MORNING, lock_down=NIGHT)


def at(text: str, *, trusted: bool = True) -> Stamp:
    moment = datetime.fromisoformat(text).replace(tzinfo=HERE.zone).astimezone(UTC)
    return Stamp(int(moment.timestamp() * 1_000_000), trusted)


@pytest.mark.parametrize(
    ("moment", "kind"),
    [
        ("2026-01-15T06:59:59", None),
        ("2026-01-15T07:00:00", OrderKind.HOLD_OPEN),
        ("2026-07-15T08:59:59", OrderKind.HOLD_OPEN),
        ("2026-07-15T09:00:00", None),
        ("2026-01-15T22:00:00", OrderKind.LOCK_DOWN),
        ("2026-03-29T04:59:59", OrderKind.LOCK_DOWN),
        ("2026-03-29T05:00:00", None),
    ],
)
def test_windows_begin_and_end_by_the_wall_clock_of_the_site(moment, kind):
    order = TIMETABLE.wants(at(moment), before=None)
    assert (order.kind if order else None) is kind


def test_order_names_its_schedule():
    order = TIMETABLE.wants(at("2026-01-15T08:00:00"), before=None)
    assert order is not None
    assert order.sentence() == "the lane is held open by schedule: Morning rush"


def test_locked_down_counts_for_more():
    both = Timetable(calendar=HERE, hold_open=NIGHT, lock_down=NIGHT)
    order = both.wants(at("2026-01-15T23:00:00"), before=None)
    assert order is not None
    assert order.kind is OrderKind.LOCK_DOWN


def test_nothing_begins_or_ends_by_a_clock_that_is_not_trusted():
    assert TIMETABLE.wants(at("2026-01-15T08:00:00", trusted=False), before=None) is None
    held = TIMETABLE.wants(at("2026-01-15T08:00:00"), before=None)
    assert TIMETABLE.wants(at("2026-01-15T12:00:00", trusted=False), before=held) is held
