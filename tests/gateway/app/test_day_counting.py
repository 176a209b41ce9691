"""Counts of each day: each event once, whatever is deleted or started anew, and what lines count by themselves."""

from __future__ import annotations

from contextlib import asynccontextmanager
from zoneinfo import ZoneInfo

from at_work import opened_store

from drivers.bus.line_quality import Failure, LineAnswers
from gateway.app.services import DayCounting
from gateway.domain.day_counts import Measure
from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import Stamp
from gateway.store import Entry, Store

DAY = 86_400_000_000
NOON = 20_454 * DAY + DAY // 2  # 2026-01-01, 12:00 UTC
TOKYO = ZoneInfo("Asia/Tokyo")


class Days:
    """A clock of whole days."""

    def __init__(self) -> None:
        self.day = 0

    def monotonic(self) -> float:
        return self.day * 86_400.0

    def wall(self) -> Stamp:
        return Stamp(NOON + self.day * DAY, trusted=True)


class House:
    """A store, the counting of its days, and a line with one unit."""

    def __init__(self, store: Store) -> None:
        self.store, self.clock, self.line = store, Days(), LineAnswers(line="yard")
        self.counting = self.started()

    def started(self) -> DayCounting:
        return DayCounting(
            day_counts=self.store.day_counts,
            lines=lambda: (self.line.quality(down_reason="", now=self.clock.monotonic()),),
            clock=self.clock,
            zone=lambda: TOKYO,
        )

    async def happen(self, kind: EventKind, *, times: int = 1, hours: float = 0, **more) -> None:
        at = self.clock.wall().micros + int(hours * 3_600_000_000)
        event = Event(kind=kind, date_at=at, clock_trusted=True, text="It was.", lane_id="entry", **more)
        await self.store.journal.record(Entry(events=(event,) * times))

    async def counts(self) -> dict[tuple[str, str, str], int]:
        await self.counting.look()
        found = await self.store.day_counts.since("")
        return {(one.day, one.measure.value, one.part): one.amount for one in found}


@asynccontextmanager
async def a_house(folder):
    async with opened_store(folder) as store:
        yield House(store)


async def test_each_event_counts_once_on_its_day_at_the_site(tmp_path):
    async with a_house(tmp_path) as house:
        await house.happen(EventKind.GATE_OPENED, times=3)
        await house.happen(EventKind.GATE_OPENED, hours=4)  # after midnight in Tokyo
        await house.happen(EventKind.VEHICLE_BACKED_OUT, data={"let_in": True})
        await house.happen(EventKind.UNAUTHORISED_PASSAGE, data={"on_arming_loop": False})
        await house.happen(EventKind.INPUT_CHATTERS)
        await house.happen(EventKind.GATE_CLOSED)
        await house.happen(EventKind.DEVICE_LOST, device_id=7)
        await house.happen(EventKind.FOOTAGE_GAP, device_id=9, data={"seconds": 61.6})
        await house.happen(EventKind.FOOTAGE_GAP, device_id=9, data={"seconds": -3.0})
        expected = {
            ("2026-01-01", "cycles", "entry"): 3,
            ("2026-01-02", "cycles", "entry"): 1,
            ("2026-01-01", "missed_vehicles", "entry"): 2,
            ("2026-01-01", "unsteady_inputs", "entry"): 1,
            ("2026-01-01", "losses", "7"): 1,
            ("2026-01-01", "footage_gaps", "9"): 1,
            ("2026-01-01", "footage_seconds", "9"): 62,
        }
        assert await house.counts() == expected
        assert await house.counts() == expected
        house.counting = house.started()
        assert await house.counts() == expected


async def test_events_of_before_the_counting_are_counted_step_by_step(tmp_path):
    async with a_house(tmp_path) as house:
        await house.happen(EventKind.VEHICLE_ARRIVED, times=5000)
        await house.happen(EventKind.GATE_OPENED, times=4500)
        assert await house.store.day_counts.count_events(TOKYO) is True
        assert await house.counts() == {("2026-01-01", "cycles", "entry"): 4500}


async def test_days_that_cannot_be_and_days_too_old_go(tmp_path):
    async with a_house(tmp_path) as house:
        await house.happen(EventKind.GATE_OPENED)
        await house.happen(EventKind.GATE_OPENED, hours=24 * 30)
        assert list(await house.counts()) == [("2026-01-01", "cycles", "entry")]
        assert await house.store.day_counts.first_day() == "2026-01-01"
        house.clock.day = 401
        assert await house.counts() == {}
        assert await house.store.day_counts.first_day() == ""


async def test_a_line_counts_on_from_where_it_was_and_anew_when_it_is_opened_anew(tmp_path):
    async with a_house(tmp_path) as house:
        for _ in range(4):
            house.line.answered(3, took=0.01, now=0.0)
        house.line.failed(3, Failure.SILENT, now=0.0)
        first = {("2026-01-01", "requests", "yard/3"): 5, ("2026-01-01", "failed_silent", "yard/3"): 1}
        assert await house.counts() == first
        assert await house.counts() == first
        house.clock.day = 1
        house.line.failed(3, Failure.GARBLED, now=86_400.0)
        second = {("2026-01-02", "requests", "yard/3"): 1, ("2026-01-02", "failed_garbled", "yard/3"): 1}
        assert await house.counts() == first | second
        house.line = LineAnswers(line="yard")
        house.line.failed(3, Failure.LATE, now=86_400.0)
        third = {("2026-01-02", "requests", "yard/3"): 2, ("2026-01-02", "failed_late", "yard/3"): 1}
        assert await house.counts() == first | second | third


def test_every_failure_of_a_line_has_a_measure():
    assert {f"failed_{failure.value}" for failure in Failure} <= {measure.value for measure in Measure}
