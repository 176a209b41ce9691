from __future__ import annotations

import asyncio
import json

import pytest

from gateway.domain.errors import StoreError
from gateway.domain.events import EventKind
from gateway.store import Entry, EventFilter
from gateway.texts import from_json, text


async def record(store, entry, count, **fields):
    return [(await store.journal.record(entry(description=f"event {n}", **fields))).event_ids[0] for n in range(count)]


async def test_an_event_is_kept_as_it_was(store, entry, event):
    made = event(
        'Größe 50 % "quoted" 車',
        kind=EventKind.DEVICE_LOST,
        device_id=103,
        lane_id="in",
        clock_trusted=False,
        data={"tries": 3, "rate": 0.5, "name": "ä", "none": None, "yes": True},
    )
    (number,) = (await store.journal.record(Entry(events=(made,)))).event_ids
    found = await store.events.get(number)
    assert (found.id, found.description, found.device_id, found.lane_id) == (number, made.description, 103, "in")
    assert (found.type, found.category, found.subcategory, found.name) == (202, 2, 3, "Device lost")
    assert (found.date_at, found.clock_trusted) == (made.date_at, False)
    assert json.loads(found.data) == dict(made.data)


async def test_a_text_is_kept_with_its_key_and_arguments(store, event):
    why = text("safety.not_clear", point=text("point.closing"), seconds=1.5)
    made = event(text("event.command_for.close", who="Zoë \ud800", why=why)), event("card 7 was added by chief")
    numbers = (await store.journal.record(Entry(events=made))).event_ids
    keyed, plain = [await store.events.get(number) for number in numbers]
    assert keyed.description == "close by Zoë ?: the closing loop has not been free for 1.5 s yet"
    inner = {"point": {"key": "point.closing", "arguments": {}}, "seconds": 1.5}
    assert from_json(keyed.said, keyed.description) == {
        "key": "event.command_for.close",
        "arguments": {"who": "Zoë ?", "why": {"key": "safety.not_clear", "arguments": inner}},
        "english": keyed.description,
    }
    assert (plain.description, plain.said) == ("card 7 was added by chief", None)


@pytest.mark.parametrize("number", [0, -1, 7, 2**63, 2**200])
async def test_an_unknown_id_is_none(store, number):
    assert await store.events.get(number) is None
    assert await store.camera_events.get(number) is None
    assert await store.devices.get(number) is None
    assert await store.cards.get(number) is None


async def test_what_neither_json_nor_utf8_can_say_does_not_cost_the_event(store, entry):
    odd = {"figure": float("nan"), "most": float("inf"), "text": "\ud800"}
    (number,) = (await store.journal.record(entry(description="read \udcff", data=odd))).event_ids
    found = await store.events.get(number)
    assert found.description == "read ?"
    assert json.loads(found.data) == {"figure": None, "most": None, "text": "?"}


async def test_cursors_stay_put_while_new_events_arrive(store, entry):
    ids = await record(store, entry, 23)
    seen, cursor = [], 0
    while cursor is not None:
        page = await store.events.page(EventFilter(), before=cursor, limit=5)
        seen += [event.id for event in page.events]
        cursor = page.next_cursor
        await record(store, entry, 2)
    assert seen == ids[::-1]


async def test_the_last_page_has_no_cursor_even_when_it_is_full(store, entry):
    ids = await record(store, entry, 10)
    first = await store.events.page(EventFilter(), limit=5)
    assert first.next_cursor == ids[5]
    last = await store.events.page(EventFilter(), before=first.next_cursor, limit=5)
    assert (len(last.events), last.next_cursor, last.count) == (5, None, 10)


@pytest.mark.parametrize("limit", [0, -1, -2])
async def test_a_page_without_room_is_empty(store, entry, limit):
    await record(store, entry, 3)
    page = await store.events.page(EventFilter(), limit=limit)
    assert (page.events, page.count, page.next_cursor) == ((), 3, None)


async def test_offset_pages(store, entry):
    ids = await record(store, entry, 7)
    page = await store.events.page(EventFilter(), offset=5, limit=5)
    assert [event.id for event in page.events] == ids[1::-1]


async def test_filters_apply_together_and_count_their_matches(store, entry):
    await record(store, entry, 3, device_id=1, lane_id="in", date_at=100)
    wanted = await record(store, entry, 2, device_id=2, lane_id="in", date_at=200, kind=EventKind.GATE_OPENED)
    await record(store, entry, 2, device_id=2, lane_id="out", date_at=300)

    async def found(**fields):
        page = await store.events.page(EventFilter(**fields))
        assert page.count == len(page.events)
        return [event.id for event in page.events]

    assert await found(device_ids=(2,), types=(EventKind.GATE_OPENED,)) == wanted[::-1]
    assert await found(date_from=200, date_until=300) == wanted[::-1]
    assert len(await found(device_ids=(1, 2))) == 7
    assert await found(search="opened") == wanted[::-1]
    assert len(await found(search="EVENT 1")) == 3


async def test_the_newest_of_a_lane(store, entry):
    await record(store, entry, 1, lane_id="in", kind=EventKind.GATE_OPENED)
    (wanted,) = await record(store, entry, 1, lane_id="in", kind=EventKind.GATE_CLOSED)
    await record(store, entry, 1, lane_id="out", kind=EventKind.GATE_OPENED)
    await record(store, entry, 1, lane_id="in", kind=EventKind.DEVICE_LOST)
    types = (EventKind.GATE_OPENED, EventKind.GATE_CLOSED)
    assert (await store.events.newest(types=types, lane_id="in")).id == wanted
    assert await store.events.newest(types=types, lane_id="elsewhere") is None
    assert await store.events.newest(types=(), lane_id="in") is None


@pytest.mark.parametrize("search", ["50 %", "a_b", "back\\slash", "'quote'", '"', "%", "_", "\\"])
async def test_a_search_means_its_characters(store, entry, search):
    (number,) = (await store.journal.record(entry(description=f"x {search} y"))).event_ids
    await record(store, entry, 3)
    page = await store.events.page(EventFilter(search=search))
    assert [event.id for event in page.events] == [number]


async def test_a_number_that_no_row_can_have_is_refused(store):
    with pytest.raises(StoreError, match="out of range"):
        await store.events.page(EventFilter(device_ids=(2**70,)))


async def test_the_count_of_all_is_exact(store, entry):
    await asyncio.gather(*(store.journal.record(entry()) for _ in range(50)))

    def fail_after_one(connection):
        connection.execute("DELETE FROM event WHERE id = 1")
        raise KeyError

    with pytest.raises(KeyError):
        await store.database.write(fail_after_one)
    await store.database.write(lambda connection: connection.execute("DELETE FROM event WHERE id <= 10"))
    assert (await store.events.page(EventFilter())).count == 40
    assert (await store.events.page(EventFilter(date_from=0))).count == 40


async def test_an_id_is_not_used_again_after_deletion(store, entry):
    ids = await record(store, entry, 3)
    await store.database.write(lambda connection: connection.execute("DELETE FROM event"))
    assert (await record(store, entry, 1))[0] > ids[-1]


async def test_only_so_many_events_of_a_type_are_looked_at_for_a_lane(store, entry):
    (silent,) = await record(store, entry, 1, lane_id="out")
    loud = await record(store, entry, 5, lane_id="in")

    async def lately(lane_id, among):
        found = await store.events.lately(types=[EventKind.VEHICLE_ARRIVED], limit=3, lane_id=lane_id, among=among)
        return [event.id for event in found]

    assert await lately("out", None) == [silent]
    assert await lately("out", 6) == [silent]
    assert await lately("out", 5) == []
    assert await lately("in", 2) == loud[-2:]
    assert await lately("in", 5) == loud[-3:]
