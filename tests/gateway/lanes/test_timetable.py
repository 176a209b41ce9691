"""The wishes of a schedule, at the edges of its windows and in the site's own time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.access import Stance
from gateway.domain.events import EventKind as E
from gateway.domain.schedules import WEEK, Calendar, Schedule, Window
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import DOUBTED_SECONDS
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.timetable import Timetable
from gateway.runtime.clock import Stamp

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
    assert str(order.words()) == "the lane is held open by schedule: Morning rush"


def test_locked_down_counts_for_more():
    both = Timetable(calendar=HERE, hold_open=NIGHT, lock_down=NIGHT)
    order = both.wants(at("2026-01-15T23:00:00"), before=None)
    assert order is not None
    assert order.kind is OrderKind.LOCK_DOWN


@pytest.mark.parametrize(
    ("stance", "lock_begins", "lock_ends", "hold_begins", "hold_ends"),
    [
        (Stance.SECURE, True, False, False, True),
        (Stance.USUAL, True, True, False, True),
        (Stance.OPEN, False, True, True, True),
    ],
)
def test_by_a_clock_that_is_not_trusted_the_lanes_stance_counts(stance, lock_begins, lock_ends, hold_begins, hold_ends):
    timetable = replace(TIMETABLE, stance=stance)

    def wants(hour, before):
        order = timetable.wants(at(f"2026-01-15T{hour}:00:00", trusted=False), before=before)
        return order.kind if order else None

    locked = timetable.wants(at("2026-01-15T23:00:00"), before=None)
    held = timetable.wants(at("2026-01-15T08:00:00"), before=None)
    assert (wants("23", None) is OrderKind.LOCK_DOWN) is lock_begins
    assert (wants("12", locked) is None) is lock_ends
    assert (wants("08", None) is OrderKind.HOLD_OPEN) is hold_begins
    assert (wants("12", held) is None) is hold_ends
    assert wants("23", locked) is OrderKind.LOCK_DOWN
    assert wants("08", held) is OrderKind.HOLD_OPEN, "what goes on goes on"
    assert (wants("23", held) is OrderKind.LOCK_DOWN) is lock_begins


def test_what_a_clock_that_is_not_trusted_means_is_said_where_there_are_schedules():
    unsure = at("2026-01-15T08:00:00", trusted=False)
    assert TIMETABLE.doubt(unsure) == (
        "the time is not certain; until it is, the schedule locks and unlocks the lane by the clock as it is and "
        "does not begin to hold the gate open"
    )
    assert TIMETABLE.doubt(at("2026-01-15T08:00:00")) == ""
    assert Timetable(calendar=HERE).doubt(unsure) == ""


def test_doubt_is_told_once_after_a_while_and_when_it_is_over(lane):
    for _ in range(2):
        lane.do(m.OrderScheduled(None, TIMETABLE.doubt(at("2026-01-15T08:00:00", trusted=False))))
    lane.wait(DOUBTED_SECONDS - 1)
    assert lane.events == [], "each start begins so"
    lane.wait(300)
    assert lane.events == [E.SCHEDULE_DOUBTED]
    assert "the time is not certain" in lane.state.troubles.present[0].text
    lane.do(m.OrderScheduled(None))
    assert lane.events == [E.SCHEDULE_DOUBTED, E.TROUBLE_ENDED]
