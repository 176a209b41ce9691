"""Not found, said by what stands before central: nothing is lost, doubled or left to a person by it."""

from __future__ import annotations

import asyncio

import pytest
from wired import central_writes, down_sync

from gateway.domain.credentials import CardStatus
from gateway.domain.errors import CentralRefused
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.domain.writes import CAMERA_UPDATE, CARD_CREATE, CARD_DELETE, CARD_LIFECYCLE, CARD_UPDATE
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import Entry
from simulation.far_ends.central import ErrorKind, Faults

AT = 1_767_268_800_000_000
SOON = Backoff(first=0.001, longest=0.005)
UNROUTED = Faults(error=ErrorKind.UNROUTED)
EVENT = Event(EventKind.VEHICLE_PASSED, AT, clock_trusted=True, text="A vehicle passed.", device_id=101)
MOMENT = Moment(201, "Vehicle passed", "", AT - 5, AT + 5, clock_trusted=True)


@pytest.fixture
async def writes(client, store):
    await down_sync(client=client, store=store, clock=SystemClock()).pull()
    return central_writes(client=client, store=store, clock=SystemClock())


async def test_a_write_that_central_has_not_seen_is_held_and_its_record_stays(central, store, writes, go_up):
    central.faults = UNROUTED
    for operation, body in (
        (CARD_UPDATE, {"id": 4001, "note": "x"}),
        (CARD_LIFECYCLE, {"id": 4002, "status": "lost"}),
        (CARD_DELETE, {"id": 4003}),
        (CAMERA_UPDATE, {"id": 201, "description": "x"}),
        (CARD_CREATE, {"number": "77123", "holder_name": "Nora"}),
    ):
        assert (await writes.write(operation, body)).waits
    assert await store.cards.get(4001) is not None
    assert (await store.cards.get(4002)).card.status is CardStatus.LOST
    central.faults = Faults()
    await go_up()
    assert (central.cards[4001]["note"], central.cards[4002]["status"]) == ("x", "lost")
    assert 4003 not in central.cards
    assert central.tables.cameras[201]["description"] == "x"
    assert [card["number"] for card in central.cards.values()].count("77123") == 1
    books = await store.outbox.books()
    assert (books.delivered, books.balance()) == (5, True)


async def test_what_central_itself_does_not_find_is_gone_from_the_site_too(central, store, writes):
    central.tables.cards.remove(4001)
    with pytest.raises(CentralRefused) as refused:
        await writes.write(CARD_UPDATE, {"id": 4001, "note": "x"})
    assert refused.value.status == 404
    assert await store.cards.get(4001) is None
    books = await store.outbox.books()
    assert (books.accepted, books.replaced, books.balance()) == (1, 1, True)


async def test_new_records_wait_and_are_not_left_to_a_person(central, store, writes, sender, go_up):
    await store.journal.record(Entry(events=(EVENT,), moments=(MOMENT,)))
    central.faults = UNROUTED
    for _ in range(5):
        await sender.send_due()
        await asyncio.sleep(0.01)  # the next try is due
    books = await store.outbox.books()
    assert (books.waiting, books.parked) == (1, 0)
    central.faults = Faults()
    await go_up()
    assert len(central.camera_events) == 1


async def test_a_create_of_unknown_outcome_is_looked_for_when_central_is_there_again(central, store, sender, go_up):
    await store.journal.record(Entry(events=(EVENT,), moments=(MOMENT,)))
    central.faults = Faults(paths="/v1/camera/event", lost_answers=1)
    await sender.send_due()
    central.faults = UNROUTED
    for _ in range(5):
        await store.outbox.retry_now()
        await sender.send_due()
    books = await store.outbox.books()
    assert (books.waiting, books.parked) == (1, 0)
    central.faults = Faults()
    await go_up()
    assert len(central.camera_events) == 1


async def test_a_kind_that_this_central_does_not_take_waits_for_a_person(central, store, sender):
    await store.journal.record(Entry(events=(EVENT,), moments=(MOMENT,)))
    central.faults = Faults(paths="/v1/camera/event", error=ErrorKind.UNROUTED)
    await sender.send_due()
    books = await store.outbox.books()
    assert (books.waiting, books.parked) == (0, 1)
