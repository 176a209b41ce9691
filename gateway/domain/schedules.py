"""Schedules: hours in the wall time of the site. Pure.

A window belongs to the day on which it begins; one whose end is not after its beginning ends on the next day. On a
holiday only windows for holidays begin. Times are compared in local time: an hour that comes twice in autumn counts
twice, and an hour that is skipped in spring does not come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun", "holiday"]
WEEK: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Window:
    """Hours from `begins` until before `ends` on each of `days`; equal times mean 24 hours."""

    days: frozenset[Day]
    begins: time
    ends: time

    @property
    def is_overnight(self) -> bool:
        """True if it ends on the next day."""
        return self.ends <= self.begins


@dataclass(frozen=True, slots=True)
class Schedule:
    """A named set of windows, open while at least one of them is."""

    name: str
    windows: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True)
class Calendar:
    """The site's time zone and its holidays with their names."""

    zone: tzinfo = UTC
    holidays: Mapping[date, str] = field(default_factory=dict)

    def local(self, micros: int) -> datetime:
        """Convert wall micros UTC to local time in whole seconds, limited to the years that `datetime` can hold."""
        try:
            return (_EPOCH + timedelta(seconds=micros // 1_000_000)).astimezone(self.zone)
        except OverflowError:
            end = datetime.max.replace(tzinfo=self.zone) if micros > 0 else datetime.min.replace(tzinfo=self.zone)
            return end.replace(microsecond=0)

    def is_open(self, schedule: Schedule, micros: int) -> bool:
        """Return whether the schedule is open at this moment (wall micros UTC)."""
        local = self.local(micros)
        today, moment = local.date(), local.time()
        yesterday = today - timedelta(days=1) if today > date.min else today
        for window in schedule.windows:
            overnight = window.is_overnight
            if window.begins <= moment and (overnight or moment < window.ends) and self._begins(window, today):
                return True
            if overnight and moment < window.ends and self._begins(window, yesterday):
                return True
        return False

    def _begins(self, window: Window, day: date) -> bool:
        kind: Day = "holiday" if day in self.holidays else WEEK[day.weekday()]
        return kind in window.days
