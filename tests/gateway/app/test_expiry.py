"""Expiry of events, which pulling programs may still need; an event that expires unread leaves a record."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

import pytest
from at_work import opened_store

from gateway.app.expiry import EventKeeping
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment, Passage, PassageOutcome
from gateway.runtime.clock import Stamp
from gateway.store import Consumer, Entry, EventFilter, ExpiryLimits, ReadCursor, RecordTimes, Store

DAY = 86_400_000_000
NOON = 20_454 * DAY + DAY // 2
LIMITS = ExpiryLimits(days=100, most_days=200, most_events=10_000, transaction_days=90, incident_days=150)


class Days:
    """A clock of whole days."""

    def __init__(self) -> None:
        self.day = 0.0
        self.trusted = True

    def monotonic(self) -> float:
        return self.day * 86_400

    def wall(self) -> Stamp:
        return Stamp(NOON + int(self.day * DAY), self.trusted)


class House:
    """A store, its keeping, and events of any day."""

    def __init__(self, store: Store, clock: Days) -> None:
        self.store, self.clock, self.forgotten = store, clock, list[int]()

    def keeping(self, **changed: int) -> EventKeeping:
        async def forget(number: int) -> None:
            self.forgotten.append(number)

        limits = ExpiryLimits(**{name: getattr(LIMITS, name) for name in LIMITS.__slots__} | changed)
        return EventKeeping(
            expiry=self.store.expiry,
            read_cursors=self.store.read_cursors,
            journal=self.store.journal,
            clock=self.clock,
            limits=limits,
            consumer_days=30,
            forget=forget,
        )

    async def happen(self, *, kind: EventKind = EventKind.GATE_OPENED, trusted: bool = True, **more) -> int:
        stamp = self.clock.wall()
        event = Event(kind=kind, date_at=stamp.micros, clock_trusted=trusted, text="It was.", lane_id="entry")
        return (await self.store.journal.record(Entry(events=(event,), **more))).event_ids[-1]

    async def read(self, account: str, to: int) -> None:
        now = self.clock.wall().micros
        await self.store.read_cursors.save([ReadCursor(Consumer(account, "event"), to, read_at=now, began_at=now)])

    async def ids(self) -> list[int]:
        page = await self.store.events.page(EventFilter(), limit=500)
        assert page.count == len(page.events)
        return sorted(event.id for event in page.events)

    async def gaps(self) -> list[dict[str, object]]:
        page = await self.store.events.page(EventFilter(types=(EventKind.UNREAD_DROPPED,)), limit=500)
        return [json.loads(event.data) for event in reversed(page.events)]


@pytest.fixture
async def house(tmp_path) -> AsyncIterator[House]:
    clock = Days()
    async with opened_store(tmp_path, sends=True, times=RecordTimes(now=lambda: clock.wall().micros)) as store:
        yield House(store, clock)


@pytest.fixture
def aged(house: House) -> Callable[..., object]:
    """An event on each day, from the first to the last; the clock stands at the last."""

    async def happen(days: range) -> list[int]:
        made = []
        for day in days:
            house.clock.day = day
            made.append(await house.happen())
        return made

    return happen


async def test_events_go_when_their_days_are_over_and_no_sooner(house, aged):
    made = await aged(range(0, 301, 50))
    await house.keeping().look()
    assert await house.ids() == made[-3:]  # the one that is a hundred days old is not older
    assert await house.gaps() == []


async def test_what_somebody_has_not_read_stays_until_the_most_that_is_kept(house, aged):
    made = await aged(range(0, 301, 25))  # 13 of them, the last at day 300
    await house.read("central", made[6])  # day 150
    await house.keeping().look()
    assert await house.ids() == made[7:]
    assert await house.gaps() == []
    house.clock.day = 390  # days 175 and below are beyond the most, the day of 190 is not
    await house.read("central", made[6])
    await house.keeping().look()
    (gap,) = await house.gaps()
    assert (gap["from_id"], gap["to_id"], gap["count"], gap["unread_by"]) == (made[7], made[7], 1, "central")
    assert gap["from"] == gap["until"] != ""
    assert (await house.ids())[0] == made[8]
    await house.keeping().look()
    assert len(await house.gaps()) == 1


async def test_too_many_go_whoever_has_not_read_them(house):
    made = [await house.happen() for _ in range(60)]
    await house.read("central", made[2])
    await house.read("till", made[40])
    await house.keeping(most_events=50).look()
    (gap,) = await house.gaps()
    kept = [number for number in await house.ids() if number <= made[-1]]
    assert kept == made[-49:]
    assert (gap["from_id"], gap["to_id"], gap["count"]) == (made[3], made[10], 8)
    assert gap["unread_by"] == "central"


async def test_who_has_not_read_for_its_days_holds_nothing_and_the_record_names_it(house, aged):
    made = await aged(range(0, 251, 50))
    house.clock.day = 219
    await house.read("away", made[0])
    house.clock.day = 250
    await house.read("central", made[-1])
    await house.keeping().look()
    assert (await house.ids())[0] == made[3]
    (gap,) = await house.gaps()
    assert (gap["from_id"], gap["to_id"], gap["unread_by"]) == (made[1], made[2], "away")
    assert [mark.consumer.account for mark in await house.store.read_cursors.all()] == ["central"]


async def test_a_clock_that_is_not_trusted_makes_nothing_old(house, aged):
    made = await aged(range(0, 301, 100))
    house.clock.trusted = False
    await house.keeping().look()
    assert await house.ids() == made


async def test_what_an_untrusted_clock_stamped_goes_with_what_came_after_it(house):
    first = await house.happen()  # by a clock that stood in the past
    doubtful = await house.happen(trusted=False)
    house.clock.day = 350
    young = await house.happen()
    house.clock.day = 360
    await house.keeping().look()
    assert await house.ids() == [doubtful, young]  # it may have been made right before the young one
    house.clock.day = 451
    last = await house.happen()
    await house.keeping().look()
    assert await house.ids() == [last]
    assert first < doubtful


async def test_a_clock_set_forward_makes_nothing_old_for_a_day(house, aged):
    made = await aged(range(3))
    keeping = house.keeping()
    await keeping.look()
    wall = house.clock.wall
    house.clock.wall = lambda: Stamp(wall().micros + 900 * DAY, trusted=True)
    await keeping.look()
    assert await house.ids() == made


async def test_what_lanes_know_again_after_a_restart_stays(house):
    order = await house.happen(kind=EventKind.ORDER_BEGAN)
    await house.happen()
    house.clock.day = 300
    await house.happen()
    await house.keeping().look()
    assert order in await house.ids()
    ended = await house.happen(kind=EventKind.ORDER_ENDED)
    await house.keeping().look()
    assert order in await house.ids()  # of each kind the newest is looked at
    again = await house.happen(kind=EventKind.ORDER_BEGAN)
    await house.keeping().look()
    ids = await house.ids()
    assert order not in ids
    assert {ended, again} <= set(ids)


async def test_an_event_stays_with_its_camera_event_and_that_until_central_has_it(house):
    now = house.clock.wall().micros
    moment = Moment(camera_id=7, name="Entry", description="", pinned_from=now, pinned_until=now, clock_trusted=True)
    passage = Passage(
        lane_id="entry", direction="entry", outcome=PassageOutcome.PASSED, started_at=now, ended_at=now,
        clock_trusted=True, card_id=None, credential="", reason="granted",
    )  # fmt: skip
    proven = await house.happen(moments=(moment,), passage=passage)
    (camera_event,) = await house.store.camera_events.of_events((proven,))
    await house.store.camera_events.mark_ready(camera_event.id)
    house.clock.day = 140
    await house.happen()
    await house.keeping().look()
    assert proven in await house.ids()
    for row in await house.store.outbox.due(now=house.clock.wall().micros):
        await house.store.outbox.delivered(row, central_id=row.id + 5000)
    await house.keeping().look()  # the camera event goes after the events were looked through
    await house.keeping().look()
    assert proven not in await house.ids()
    assert house.forgotten == [camera_event.id]
    assert await house.store.camera_events.get(camera_event.id) is None
    assert await house.store.passages.page() == ()


async def test_a_gap_is_on_disk_before_anything_of_it_goes(house, monkeypatch):
    made = [await house.happen() for _ in range(40)]
    await house.read("central", made[0])

    async def killed(*_args, **_fields):
        raise KeyboardInterrupt

    monkeypatch.setattr(house.store.expiry, "remove", killed)
    with pytest.raises(KeyboardInterrupt):
        await house.keeping(most_events=30).look()
    assert len(await house.gaps()) == 1
    assert set(made) <= set(await house.ids())


async def test_many_go_in_steps_and_the_books_of_the_list_hold(house):
    for _ in range(4):
        events = tuple(
            Event(kind=EventKind.GATE_OPENED, date_at=NOON, clock_trusted=True, text="x") for _ in range(300)
        )
        await house.store.journal.record(Entry(events=events))
    house.clock.day = 300
    last = await house.happen()
    await house.keeping().look()
    page = await house.store.events.page(EventFilter())
    assert ([event.id for event in page.events], page.count) == ([last], 1)
