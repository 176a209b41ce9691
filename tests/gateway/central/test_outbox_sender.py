"""The outbox against the simulated central and a real store."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest
from fresh_ids import fresh_ids
from set_machine import PushedClock
from waiting import until
from wired import outbox_sender

from gateway.central.push.requests import creates_among, delivery_request, given_id
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.domain.writes import site_id_in
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import Entry, EventFilter
from gateway.store.outbox.rows import OutboxRow, insert_outbox
from simulation.far_ends.central import Chances, ErrorKind, Faults

NOW = 1_769_860_800_000_000
SOON = Backoff(first=0.01, longest=0.05)


@pytest.fixture
def see(store):
    """Records a camera event, which puts a row into the outbox; answers its id."""

    async def record(camera_id=201, name="Vehicle passed"):
        moment = Moment(
            camera_id=camera_id,
            name=name,
            description="",
            pinned_from=NOW,
            pinned_until=NOW + 10_000_000,
            clock_trusted=True,
        )
        event = Event(kind=EventKind.VEHICLE_PASSED, date_at=NOW, clock_trusted=True, text="", lane_id="north")
        recorded = await store.journal.record(Entry(events=(event,), moments=(moment,)))
        return recorded.camera_event_ids[0]

    return record


async def send_all(sender):
    """Sends until nothing is left to do at once."""
    while (await sender.send_due()).wait == 0:
        pass


async def balanced(store):
    books = await store.outbox.books()
    assert books.balance(), books
    return books


async def test_camera_events_go_up_in_order_and_learn_centrals_id(central, store, sender, see):
    ids = [await see() for _ in range(3)]
    await send_all(sender)
    assert [site_id_in(event["source_id"]) for event in central.camera_events] == ids
    assert central.camera_events[0]["date_at"] == "2026-01-31T12:00:00.000Z"
    for mine, theirs in zip(ids, central.camera_events, strict=True):
        assert (await store.camera_events.get(mine)).central_id == theirs["id"]
        assert (await store.camera_events.get(theirs["id"])).id == mine
    books = await balanced(store)
    assert (books.accepted, books.delivered, books.waiting) == (3, 3, 0)


@pytest.mark.parametrize("kinds", list(itertools.permutations(("camera_event", "entry", "access_card", "device"))))
def test_lists_are_asked_for_in_the_order_of_the_rows(kinds):
    """In the order of a set, equal runs of a simulation would differ from process to process."""
    rows = [OutboxRow(number, "", kind, 1, "{}", 0, 0, 0, False, "") for number, kind in enumerate((*kinds, *kinds))]
    assert [operation.kind for operation in creates_among(rows)] == list(kinds)


async def all_sent(store, sender):
    async def sent():
        await sender.send_due()
        return not (await balanced(store)).waiting

    await until(sent)


async def test_what_never_came_through_is_sent_again_with_the_same_key(central, store, sender, see):
    await see()
    central.faults = Faults(paths="/v1/camera/event", chances=Chances(lost_requests=1))
    turn = await sender.send_due()
    assert turn.wakes_on_new_rows is False
    assert not central.camera_events
    central.faults = Faults()
    await all_sent(store, sender)
    keys = [request.key for request in central.requests if request.method == "PUT"]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert (await balanced(store)).delivered == len(central.camera_events) == 1


async def test_central_away_keeps_everything_and_then_all_goes_in_order(central, store, sender, see):
    await central.stop()
    ids = [await see() for _ in range(6)]
    assert (await sender.send_due()).wakes_on_new_rows is False
    for _ in range(8):
        await sender.send_due()
        assert (await balanced(store)).waiting == 6
    await central.start()
    await all_sent(store, sender)
    assert sorted(site_id_in(event["source_id"]) for event in central.camera_events) == ids
    assert (await balanced(store)).delivered == 6


async def test_after_a_long_absence_waiting_rows_go_at_once(central, store, client, see):
    sender = outbox_sender(
        client=client,
        newest=fresh_ids(client),
        store=store,
        clock=SystemClock(),
        row_backoff=Backoff(first=200, longest=300),
        away_backoff=SOON,
    )
    await central.stop()
    for _ in range(4):
        await see()
    for _ in range(3):
        await sender.send_due()
    await central.start()
    await send_all(sender)
    assert len(central.camera_events) == 4


async def test_a_row_that_the_line_has_failed_often_goes_soon_after_it_is_well(central, store, client, see):
    clock = PushedClock()
    await see()
    await central.stop()
    for _ in range(12):
        clock.stepped += 60
        await outbox_sender(
            client=client, newest=fresh_ids(client), store=store, clock=clock
        ).send_due()  # as after so many power cuts
    (row,) = await store.outbox.due(now=2**62)
    assert row.tries == 12
    await central.start()
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=clock)
    assert 0 < (await sender.send_due()).wait <= 15
    clock.stepped += 15
    await send_all(sender)
    assert (await balanced(store)).delivered == 1


async def test_what_central_refuses_is_parked_and_the_rest_goes_on(central, store, sender, see):
    bad = await see(camera_id=999)
    good = await see()
    await send_all(sender)
    assert [site_id_in(event["source_id"]) for event in central.camera_events] == [good]
    books = await balanced(store)
    assert (books.parked, books.delivered) == (1, 1)
    (event,) = (await store.events.page(EventFilter(types=(int(EventKind.RECORD_PARKED),)))).events
    assert "camera 999 not found" in event.description
    assert json.loads(event.data)["record_id"] == bad


async def test_a_flood_of_refusals_is_told_twenty_times_an_hour_with_how_many_more(central, client, store, see):
    clock = PushedClock()
    sender = outbox_sender(
        client=client,
        newest=fresh_ids(client),
        store=store,
        clock=clock,
        row_backoff=SOON,
        away_backoff=SOON,
        may_take=0,
    )

    async def told():
        page = await store.events.page(EventFilter(types=(int(EventKind.RECORD_PARKED),)), limit=100)
        return [event.description for event in page.events]

    for _ in range(25):
        await see(camera_id=999)
    await send_all(sender)
    assert (await balanced(store)).parked == 25
    assert len(await told()) == 20
    clock.pushed = 3600
    await see(camera_id=998)
    await send_all(sender)
    first, *others = await told()
    assert len(others) == 20
    assert first.endswith("camera 998 not found; 5 more were refused since the last event of this kind")
    assert not any("more were refused" in text for text in others)


async def test_a_parked_row_holds_those_of_its_record_back_but_no_other(central, store, sender, see):
    bad = await see(camera_id=999)
    await store.database.write(lambda c: insert_outbox(c, kind="camera_event", record_id=bad, body="{}", now=NOW))
    await send_all(sender)
    books = await balanced(store)
    assert (books.parked, books.waiting) == (1, 1)
    assert (await sender.send_due()).wait > 1
    good = await see()
    await send_all(sender)
    assert [site_id_in(event["source_id"]) for event in central.camera_events] == [good]


async def test_a_denied_account_parks_nothing(central, store, sender, see):
    central.faults = Faults(deny="can_add_camera_events")
    await see()
    await sender.send_due()
    assert (await balanced(store)).waiting == 1
    central.faults = Faults()
    await all_sent(store, sender)
    assert (await balanced(store)).parked == 0


async def entered(store, number):
    """An entry that waits to go up."""
    body = json.dumps({"device_id": 101, "type": "entry", "date_at": "2026-01-31T12:00:00Z"})
    await store.database.write(lambda c: insert_outbox(c, kind="entry", record_id=number, body=body, now=NOW))


def asked(central, path):
    return [request for request in central.requests if request.path == path and request.method == "PUT"]


@pytest.mark.parametrize(
    "fault",
    [Faults(deny="can_add_camera_events"), Faults(paths="/v1/camera/event", error=ErrorKind.JSON, error_times=10_000)],
    ids=["not permitted", "failing"],
)
async def test_an_operation_that_central_does_not_do_holds_up_no_other(central, store, client, see, fault):
    slow = Backoff(first=200, longest=300)
    sender = outbox_sender(
        client=client, newest=fresh_ids(client), store=store, clock=PushedClock(), row_backoff=slow, away_backoff=slow
    )
    central.faults = fault
    for _ in range(40):
        await see()
    for number in range(1, 4):
        await entered(store, number)
    await send_all(sender)
    assert len(central.entries) == 3
    assert 0 < len(asked(central, "/v1/camera/event")) < 10, "every row found out for itself"
    books = await balanced(store)
    assert (books.delivered, books.waiting, books.parked) == (3, 40, 0)
    told = ("PUT /v1/camera/event: database is unavailable",) if fault.error is ErrorKind.JSON else ()
    assert sender.failing == told
    await entered(store, 4)
    await send_all(sender)
    assert len(central.entries) == 4


async def test_what_was_not_permitted_goes_up_once_it_is(central, store, client, see):
    clock = PushedClock()
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=clock)
    central.faults = Faults(deny="can_add_camera_events")
    ids = [await see() for _ in range(40)]
    await send_all(sender)
    turn = await sender.send_due()
    assert 0 < turn.wait <= 60
    assert turn.wakes_on_new_rows
    central.faults = Faults()
    clock.pushed += 60
    await send_all(sender)
    assert [site_id_in(event["source_id"]) for event in central.camera_events] == ids
    assert (await balanced(store)).delivered == 40


async def test_a_row_on_which_central_fails_does_not_hold_up_others(central, store, client, see):
    sender = outbox_sender(
        client=client,
        newest=fresh_ids(client),
        store=store,
        clock=SystemClock(),
        row_backoff=Backoff(first=200, longest=300),
        away_backoff=SOON,
    )
    central.faults = Faults(paths="/v1/camera/event", error=ErrorKind.JSON, error_times=1)
    first, second = await see(), await see()
    await send_all(sender)
    assert [site_id_in(event["source_id"]) for event in central.camera_events] == [second]
    (row,) = await store.outbox.due(now=NOW * 2)
    assert (row.record_id, row.tries) == (first, 1)
    assert "database is unavailable" in row.error


async def test_a_start_waits_for_no_backoff_of_the_one_before(central, store, client, see, running):
    def started():
        backoff = Backoff(first=200, longest=300)
        newest = fresh_ids(client)
        return outbox_sender(
            client=client, newest=newest, store=store, clock=SystemClock(), row_backoff=backoff, may_take=0
        )

    central.faults = Faults(paths="/v1/camera/event", error=ErrorKind.JSON, error_times=1)
    await see()
    await send_all(started())
    assert central.camera_events == []

    async def report(_):
        pass

    async with running(started().run(report)):
        await until(lambda: len(central.camera_events) == 1)


async def test_a_kind_that_nothing_takes_is_parked(central, store, sender):
    await store.database.write(lambda c: insert_outbox(c, kind="dance", record_id=1, body="{}", now=NOW))
    await store.database.write(lambda c: insert_outbox(c, kind="entry", record_id=1, body="[", now=NOW))
    await send_all(sender)
    assert (await balanced(store)).parked == 2


async def test_an_entry_goes_up(central, store, sender):
    body = json.dumps({"device_id": 101, "type": "entry", "date_at": "2026-01-31T12:00:00Z"})
    await store.database.write(lambda c: insert_outbox(c, kind="entry", record_id=1, body=body, now=NOW))
    await send_all(sender)
    assert central.entries[0]["device_id"] == 101


async def test_a_wall_clock_that_steps_back_does_not_keep_rows_waiting(central, store, client, see):
    clock = PushedClock(stepped=365 * 86_400)
    sender = outbox_sender(
        client=client,
        newest=fresh_ids(client),
        store=store,
        clock=clock,
        row_backoff=SOON,
        away_backoff=SOON,
        may_take=0,
    )
    await see()
    await central.stop()
    await sender.send_due()
    await central.start()
    clock.stepped = 0
    await send_all(sender)
    assert len(central.camera_events) == 1


async def test_a_row_that_a_clock_ahead_put_off_does_not_wait_behind_one_that_is_soon_due(central, store, client, see):
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0)
    await see()
    await see()
    far, near = await store.outbox.due(now=2**62)
    now = SystemClock().wall().micros
    await store.outbox.failed(far, error="away", next_at=now + 365 * 86_400_000_000, at_central=False)
    await store.outbox.failed(near, error="failed", next_at=now + 200_000_000, at_central=False)
    for _ in range(3):
        await sender.send_due()
    (waiting,) = await store.refused.page(refused=False)
    assert waiting.id == near.id


async def test_cancelled_in_the_middle_of_a_call_it_is_not_made_again(central, store, client, sender, see):
    await see()
    central.faults = Faults(paths="/v1/camera/event", slow_body_seconds=5)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sender.send_due())
        await until(lambda: len(central.camera_events) == 1)
        task.cancel()
    assert (await balanced(store)).waiting == 1
    central.faults = Faults()
    await send_all(sender)
    assert len(central.camera_events) == 1
    assert (await balanced(store)).delivered == 1


def test_the_id_that_central_gave_is_found_in_the_shapes_it_may_come_in():
    assert given_id({"event": {"id": 5}}, ("event",)) == 5
    assert given_id({"success": True, "id": 6}, ("event",)) == 6
    assert given_id({"success": True}, ("event",)) is None


async def test_a_shipment_carries_the_body_as_recorded(store, see):
    await see()
    (row,) = await store.outbox.due(now=NOW)
    request = delivery_request(row)
    operation = request.operation
    assert (operation.method, operation.path) == ("PUT", "/v1/camera/event")
    assert request.body == json.loads(row.body)
