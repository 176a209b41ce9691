"""What the schedule wants of a lane at a moment. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.clock import Stamp
from gateway.domain.schedules import Calendar, Schedule
from gateway.lanes.access_rules import calendar_of, schedules_of
from gateway.lanes.orders import Order, OrderKind
from gateway.site import LaneSection, Site

_BY = "schedule"


@dataclass(frozen=True, slots=True)
class Timetable:
    """When a lane is held open and when it is locked down; locked down counts for more."""

    calendar: Calendar = field(default_factory=Calendar)
    hold_open: Schedule | None = None
    lock_down: Schedule | None = None

    def wants(self, stamp: Stamp, *, before: Order | None) -> Order | None:
        """The order that counts at this moment, `before` the one until now.

        While the clock is not trusted nothing begins and nothing ends: a wrong hour must neither open a gate nor shut
        people out.
        """
        if not stamp.trusted:
            return before
        for kind, schedule in ((OrderKind.LOCK_DOWN, self.lock_down), (OrderKind.HOLD_OPEN, self.hold_open)):
            if schedule is not None and self.calendar.is_open(schedule, stamp.micros):
                return Order(kind=kind, by=_BY, reason=schedule.name)
        return None


def timetable_of(site: Site, lane: LaneSection) -> Timetable:
    """The lane's timetable by the site file."""
    schedules = schedules_of(site)
    return Timetable(
        calendar=calendar_of(site),
        hold_open=schedules[lane.hold_open_schedule] if lane.hold_open_schedule is not None else None,
        lock_down=schedules[lane.lock_down_schedule] if lane.lock_down_schedule is not None else None,
    )
