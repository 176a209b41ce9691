"""Orders of a lane by its schedules. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.domain.access import Stance
from gateway.domain.schedules import Calendar, Schedule
from gateway.lanes.access_rules import calendar_of, schedules_of
from gateway.lanes.machine.state.orders import Order, OrderKind
from gateway.runtime.clock import Stamp
from gateway.site import LaneSection, Site

_BY = "schedule"
_LOCKS = {
    Stance.SECURE: "locks the lane down and does not unlock it",
    Stance.USUAL: "locks and unlocks the lane by the clock as it is",
    Stance.OPEN: "does not lock the lane down",
}
_HOLDS = {
    Stance.SECURE: "does not begin to hold the gate open",
    Stance.USUAL: "does not begin to hold the gate open",
    Stance.OPEN: "holds the gate open by the clock as it is",
}


@dataclass(frozen=True, slots=True)
class Timetable:
    """The times at which a lane is held open or locked down; a lock-down overrides holding open.

    While the clock is not trusted, the lane's stance says which changes still follow it. A wrong hour must not open a
    gate to everybody, nor shut people out for good:

    | stance   | lock-down            | holding open         |
    |----------|----------------------|----------------------|
    | `SECURE` | begins, does not end | ends, does not begin |
    | `USUAL`  | begins and ends      | ends, does not begin |
    | `OPEN`   | ends, does not begin | begins and ends      |
    """

    calendar: Calendar = field(default_factory=Calendar)
    hold_open: Schedule | None = None
    lock_down: Schedule | None = None
    stance: Stance = Stance.USUAL

    def wants(self, stamp: Stamp, *, before: Order | None) -> Order | None:
        """Return the order for this moment; `before` is the order until now."""
        wanted = self._by_clock(stamp)
        if stamp.trusted or wanted == before:
            return wanted
        locks = wanted is not None and wanted.kind is OrderKind.LOCK_DOWN
        was_locked = before is not None and before.kind is OrderKind.LOCK_DOWN
        if self.stance is Stance.OPEN:
            return self._held_open(stamp) if locks and not was_locked else wanted
        if self.stance is Stance.SECURE and was_locked:
            return before
        return wanted if locks else None

    def doubt(self, stamp: Stamp) -> str:
        """Return in one sentence what an untrusted clock means for this lane; "" for nothing."""
        if stamp.trusted or (self.hold_open is None and self.lock_down is None):
            return ""
        parts = []
        if self.lock_down is not None:
            parts.append(_LOCKS[self.stance])
        if self.hold_open is not None:
            parts.append(_HOLDS[self.stance])
        return f"the time is not certain; until it is, the schedule {' and '.join(parts)}"

    def _by_clock(self, stamp: Stamp) -> Order | None:
        if self.lock_down is not None and self.calendar.is_open(self.lock_down, stamp.micros):
            return Order(kind=OrderKind.LOCK_DOWN, by=_BY, reason=self.lock_down.name)
        return self._held_open(stamp)

    def _held_open(self, stamp: Stamp) -> Order | None:
        if self.hold_open is not None and self.calendar.is_open(self.hold_open, stamp.micros):
            return Order(kind=OrderKind.HOLD_OPEN, by=_BY, reason=self.hold_open.name)
        return None


def timetable_of(site: Site, lane: LaneSection) -> Timetable:
    """Return the lane's timetable by the site file."""
    schedules = schedules_of(site)
    return Timetable(
        calendar=calendar_of(site),
        hold_open=schedules[lane.hold_open_schedule] if lane.hold_open_schedule is not None else None,
        lock_down=schedules[lane.lock_down_schedule] if lane.lock_down_schedule is not None else None,
        stance=lane.doubt.clock,
    )
