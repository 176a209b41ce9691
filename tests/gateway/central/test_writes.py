"""The way of writes against the simulated central and a real store, one situation at a time."""

from __future__ import annotations

import asyncio
import json

import pytest
from fresh_ids import fresh_ids
from waiting import until
from wired import central_writes, outbox_sender

from gateway.domain.credentials import CardStatus
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.events import Event, EventKind
from gateway.domain.presence import Movement, Way
from gateway.domain.writes import (
    CARD_CREATE,
    CARD_DELETE,
    CARD_LIFECYCLE,
    CARD_UPDATE,
    DEVICE_CONFIG,
    DEVICE_CREATE,
    FIRST_PROVISIONAL_ID,
    is_twin,
)
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import Entry, EventFilter
from simulation.far_ends.central import Chances, Faults

SOON = Backoff(first=0.001, longest=0.005)
TAKEN_UNHEARD = "55502"
"""A number that central gave to another card while the site could not hear of it."""
NEW = {"number": "77123", "holder_name": "Nora", "status": "active"}


async def record(store, card_id):
    return json.loads((await store.cards.get(card_id)).record)


async def known_as(store, number):
    return [card.card_id for card in await store.cards.matching([f"text:{number}"])]


async def test_while_central_answers_a_write_goes_through_and_its_record_is_kept(central, store, down, writes):
    made = await writes.write(CARD_CREATE, NEW)
    assert (made.waits, made.record["number"]) == (False, "77123")
    assert central.cards[made.record_id] == await record(store, made.record_id)
    changed = await writes.write(CARD_UPDATE, {"id": made.record_id, "note": "back door"})
    assert changed.record["note"] == "back door"
    await writes.write(CARD_LIFECYCLE, {"id": made.record_id, "status": "lost"})
    assert (await store.cards.get(made.record_id)).card.status is CardStatus.LOST
    assert central.cards[made.record_id] == await record(store, made.record_id)
    await writes.write(CARD_DELETE, {"id": made.record_id})
    assert made.record_id not in central.cards
    assert await store.cards.get(made.record_id) is None
    books = await store.outbox.books()
    assert (books.accepted, books.delivered, books.balance()) == (4, 4, True)


async def test_centrals_refusal_is_the_callers_and_nothing_changes(central, store, down, writes):
    with pytest.raises(CentralRefused) as refused:
        await writes.write(CARD_CREATE, {**NEW, "number": central.cards[4001]["number"]})
    assert refused.value.status == 409
    assert refused.value.said.endswith("is already used")
    assert await store.cards.count() == 40
    central.faults = Faults(deny="can_edit_access_cards")
    with pytest.raises(CentralRefused, match="permission denied"):
        await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})
    assert (await store.cards.get(4001)).card.status is CardStatus.ACTIVE
    books = await store.outbox.books()
    assert (books.accepted, books.replaced, books.balance()) == (2, 2, True)


async def test_while_central_is_away_a_card_counts_at_once_and_goes_up_later(central, store, down, writes, go_up):
    await central.stop()
    made = await writes.write(CARD_CREATE, NEW)
    assert made.waits
    assert made.record_id >= FIRST_PROVISIONAL_ID
    assert await known_as(store, "77123") == [made.record_id]
    await writes.write(CARD_UPDATE, {"id": made.record_id, "note": "by hand"})
    await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})
    assert (await store.cards.get(4001)).card.status is CardStatus.LOST
    await central.start()
    await go_up()
    (central_id,) = await known_as(store, "77123")
    assert central_id < FIRST_PROVISIONAL_ID
    assert await store.pending_writes.site_id("access_card", made.record_id) == central_id
    assert central.cards[central_id]["note"] == "by hand"
    assert central.cards[4001]["status"] == "lost"
    await down.pull()
    assert await record(store, central_id) == central.cards[central_id]
    assert await store.cards.count() == len(central.cards)


async def test_whoever_went_in_with_a_card_of_the_sites_own_comes_out_with_centrals(
    central, store, client, down, writes
):
    renamed = []
    sender = outbox_sender(
        client=client,
        newest=fresh_ids(client),
        store=store,
        clock=SystemClock(),
        card_renamed=lambda *ids: renamed.append(ids),
    )
    await central.stop()
    with pytest.raises(CentralUnavailable):
        await down.pull()
    made = await writes.write(CARD_CREATE, NEW)
    event = Event(kind=EventKind.VEHICLE_PASSED, date_at=1, clock_trusted=True, text="")
    inside = Movement(Way(enters="garage"), at=1, holder=f"card:{made.record_id}")
    await store.journal.record(Entry(events=(event,), movements=(inside,)))
    await central.start()
    await sender.send_due()
    (central_id,) = await known_as(store, "77123")
    assert renamed == [(made.record_id, central_id)]
    presence = await store.presence.load()
    assert presence.whereabouts(f"card:{central_id}").area_id == "garage"
    assert presence.whereabouts(f"card:{made.record_id}") is None


async def test_what_comes_down_does_not_overwrite_what_waits(central, store, down, writes, go_up):
    central.faults = Faults(paths="/v1/access/lifecycle", down=True)
    await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})
    central.tables.cards.change(4001, {"note": "changed at central"})
    await down.pull()
    shown = await record(store, 4001)
    assert (shown["status"], shown["note"]) == ("lost", "changed at central")
    central.faults = Faults(paths="/v1/access/lifecycle", down=True)
    await writes.write(CARD_DELETE, {"id": 4002})  # behind nothing: goes through
    await down.pull()
    assert await store.cards.get(4002) is None
    central.faults = Faults()
    await go_up()
    await down.pull()
    assert await record(store, 4001) == central.cards[4001]
    assert central.cards[4001]["status"] == "lost"


async def test_a_sweep_leaves_what_has_not_gone_up_and_a_waiting_deletion_stays_deleted(central, store, down, writes):
    await central.stop()
    made = await writes.write(CARD_CREATE, NEW)
    device = await writes.write(DEVICE_CREATE, {"name": "Kiosk"})
    await writes.write(CARD_DELETE, {"id": 4003})
    await central.start()
    for _ in range(3):
        await down.pull()
    assert await store.cards.get(made.record_id) is not None
    assert (await store.devices.get(device.record_id)).name == "Kiosk"
    assert await store.cards.get(4003) is None


async def test_a_write_never_overtakes_one_that_waits(central, store, down, writes, go_up):
    central.faults = Faults(paths="/v1/access/lifecycle", down=True)
    assert (await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})).waits
    assert (await writes.write(CARD_UPDATE, {"id": 4001, "status": "active"})).waits
    central.faults = Faults()
    await go_up()
    assert central.cards[4001]["status"] == "active"


@pytest.mark.parametrize("losses", [0, 1])
async def test_many_who_write_one_card_at_once_leave_both_sides_alike(central, store, down, writes, go_up, losses):
    central.faults = Faults(paths="/v1/access", latency_seconds=0.01, lost_answers=losses)
    states = ["lost", "active", "suspended"] * 4
    await asyncio.gather(*(writes.write(CARD_LIFECYCLE, {"id": 4001, "status": state}) for state in states))
    await go_up()
    assert await record(store, 4001) == central.cards[4001]


async def test_a_deleted_record_that_was_never_tried_does_not_go_up(central, store, down, writes, go_up):
    await central.stop()
    with pytest.raises(CentralUnavailable):
        await down.pull()
    central.requests.clear()
    made = await writes.write(CARD_CREATE, NEW)
    await writes.write(CARD_UPDATE, {"id": made.record_id, "note": "x"})
    assert not (await writes.write(CARD_DELETE, {"id": made.record_id})).waits
    books = await store.outbox.books()
    assert books.balance()
    assert (books.accepted, books.replaced, books.waiting) == (2, 2, 0)
    await central.start()
    await go_up()
    assert not central.requests
    assert await store.cards.count() == 40


async def test_a_deleted_record_that_may_be_at_central_is_created_and_deleted_there(
    central, store, down, writes, go_up
):
    central.faults = Faults(paths="/v1/access", lost_answers=1)
    made = await writes.write(CARD_CREATE, NEW)
    assert made.waits
    assert len(central.cards) == 41
    assert (await writes.write(CARD_DELETE, {"id": made.record_id})).waits
    await down.pull()
    assert await known_as(store, "77123") == []
    await go_up()
    assert len(central.cards) == 40
    await down.pull()
    assert await store.cards.count() == 40


async def test_a_create_whose_answer_was_lost_is_not_made_twice(central, store, down, writes, go_up):
    central.faults = Faults(paths="/v1/access", lost_answers=1)
    made = await writes.write(CARD_CREATE, {**NEW, "valid_until": "2031-01-01T00:00:00Z"})
    await down.pull()  # central has it already, the site does not know under which id
    assert await known_as(store, "77123") == [made.record_id]
    await go_up()
    assert [card["number"] for card in central.cards.values()].count("77123") == 1
    assert sum(request.method == "PUT" for request in central.requests) == 1
    (card_id,) = await known_as(store, "77123")
    assert await record(store, card_id) == central.cards[card_id]


async def test_a_device_made_twice_alike_is_two_devices(central, store, down, writes, go_up):
    central.faults = Faults(paths="/v1/device", lost_answers=2)
    twice = [await writes.write(DEVICE_CREATE, {"name": "Kiosk"}) for _ in range(2)]
    assert all(made.waits for made in twice)
    central.faults = Faults()
    await go_up()
    named = [device["id"] for device in central.tables.devices.values() if device["name"] == "Kiosk"]
    assert len(named) == 2
    assert {await store.pending_writes.site_id("device", made.record_id) for made in twice} == set(named)
    await down.pull()
    assert sorted(item.id for item in await store.devices.all()) == sorted(central.tables.devices)


async def test_a_device_is_configured_while_central_is_away(central, store, down, writes, go_up):
    await central.stop()
    await writes.write(DEVICE_CONFIG, {"id": 102, "description": "by the oak"})
    made = await writes.write(DEVICE_CREATE, {"name": "Kiosk"})
    await writes.write(DEVICE_CONFIG, {"id": made.record_id, "location": "Hall"})
    assert json.loads((await store.devices.get(made.record_id)).record)["location"] == "Hall"
    await central.start()
    await go_up()
    await down.pull()
    assert central.tables.devices[102]["description"] == "by the oak"
    device = await store.devices.get(await store.pending_writes.site_id("device", made.record_id))
    assert json.loads(device.record) == central.tables.devices[device.id]
    assert central.tables.devices[device.id]["location"] == "Hall"


async def test_a_change_of_what_central_has_deleted_is_dropped_and_told(central, store, down, writes, go_up):
    await central.stop()
    await writes.write(CARD_UPDATE, {"id": 4001, "note": "x"})
    await writes.write(CARD_DELETE, {"id": 4002})
    await central.start()
    central.tables.cards.remove(4001)
    central.tables.cards.remove(4002)
    await go_up()
    books = await store.outbox.books()
    assert books.balance()
    assert (books.dropped, books.delivered, books.parked) == (1, 1, 0)
    assert await store.cards.get(4001) is None
    (event,) = (await store.events.page(EventFilter(types=(int(EventKind.RECORD_PARKED),)))).events
    assert "central no longer has it" in event.description


async def test_a_refused_write_that_was_held_waits_for_a_person_and_is_shown(central, store, down, writes, sender):
    await central.stop()
    central.cards[4001]["number"] = TAKEN_UNHEARD
    made = await writes.write(CARD_CREATE, {**NEW, "number": TAKEN_UNHEARD})
    await central.start()

    async def refused():
        await sender.send_due()
        (waiting,) = await store.pending_writes.waiting("access_card", made.record_id)
        return waiting.refused

    assert "is already used" in await until(refused)
    await writes.write(CARD_DELETE, {"id": made.record_id})
    books = await store.outbox.books()
    assert books.balance()
    assert (books.parked, books.waiting, books.replaced) == (0, 0, 1)


@pytest.fixture
def refused(central, store, writes, settle):
    """A change of card 4001 that waited, and that central refused: its number is another card's."""

    async def make():
        await central.stop()
        taken = "55501"
        central.cards[4002]["number"] = taken  # as the site has not heard yet
        assert (await writes.write(CARD_UPDATE, {"id": 4001, "number": taken, "note": "n"})).waits
        await central.start()
        await settle()
        assert (await store.outbox.books()).parked == 1

    return make


@pytest.fixture
def settle(sender, store):
    """Send until every row is gone up or refused."""

    async def rests():
        return (await sender.send_due()).wait > 1

    async def send():
        await until(rests)

    return send


async def test_a_refused_change_holds_up_no_other(central, store, down, writes, refused, settle):
    await refused()
    assert not (await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})).waits
    assert central.cards[4001]["status"] == "lost"
    await central.stop()
    assert (await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "blocked"})).waits
    await central.start()
    await settle()
    assert central.cards[4001]["status"] == "blocked"
    (waiting,) = await store.pending_writes.waiting("access_card", 4001)
    assert waiting.body.keys() == {"id", "number", "note"}
    books = await store.outbox.books()
    assert books.balance()
    assert (books.parked, books.waiting) == (1, 0)
    assert (await store.cards.get(4001)).card.status is CardStatus.BLOCKED


@pytest.mark.parametrize("away", [True, False])
async def test_newer_content_replaces_what_central_refused(central, store, down, writes, refused, settle, away):
    await refused()
    if away:
        await central.stop()
    await writes.write(CARD_UPDATE, {"id": 4001, "number": "99887"})
    if away:
        await central.start()
        await settle()
    (waiting,) = await store.pending_writes.waiting("access_card", 4001)
    assert waiting.body == {"id": 4001, "note": "n"}
    assert central.cards[4001]["number"] == "99887" == (await record(store, 4001))["number"]
    await writes.write(CARD_UPDATE, {"id": 4001, "note": "m"})
    books = await store.outbox.books()
    assert books.balance()
    assert (books.parked, books.waiting, books.replaced) == (0, 0, 1)


async def test_a_change_behind_one_that_is_refused_takes_its_fields_from_it(central, store, down, writes, settle):
    await central.stop()
    central.cards[4002]["number"] = "55501"  # as the site has not heard yet
    await writes.write(CARD_UPDATE, {"id": 4001, "number": "55501"})
    await writes.write(CARD_UPDATE, {"id": 4001, "number": "99887"})
    await central.start()
    await settle()
    assert central.cards[4001]["number"] == "99887"
    books = await store.outbox.books()
    assert books.balance()
    assert (books.parked, books.waiting, books.replaced, books.delivered) == (0, 0, 1, 1)


async def test_a_card_with_a_refused_change_can_be_deleted(central, store, down, writes, refused):
    await refused()
    assert not (await writes.write(CARD_DELETE, {"id": 4001})).waits
    assert 4001 not in central.cards
    assert await store.cards.get(4001) is None
    books = await store.outbox.books()
    assert books.balance()
    assert (books.parked, books.waiting) == (0, 0)


async def test_a_refused_create_goes_up_with_what_the_record_is_now(central, store, down, writes, settle):
    await central.stop()
    central.cards[4001]["number"] = TAKEN_UNHEARD
    made = await writes.write(CARD_CREATE, {**NEW, "number": TAKEN_UNHEARD})
    await writes.write(CARD_LIFECYCLE, {"id": made.record_id, "status": "suspended"})
    await central.start()
    await settle()
    assert (await store.outbox.books()).parked == 1
    changed = await writes.write(CARD_UPDATE, {"id": made.record_id, "number": "99887"})
    assert changed.waits
    await settle()
    (card_id,) = await known_as(store, "99887")
    assert (central.cards[card_id]["number"], central.cards[card_id]["status"]) == ("99887", "suspended")
    assert await store.pending_writes.site_id("access_card", made.record_id) == card_id
    books = await store.outbox.books()
    assert books.balance()
    assert (books.parked, books.waiting, books.dropped) == (0, 0, 0)


async def test_a_refused_create_takes_what_was_changed_behind_it_while_central_was_away(
    central, store, down, writes, settle
):
    await central.stop()
    central.cards[4001]["number"] = TAKEN_UNHEARD
    made = await writes.write(CARD_CREATE, {**NEW, "number": TAKEN_UNHEARD})
    await writes.write(CARD_UPDATE, {"id": made.record_id, "number": "99887"})
    await writes.write(CARD_LIFECYCLE, {"id": made.record_id, "status": "lost", "reason": "at the gate"})
    await central.start()
    await settle()
    (card_id,) = await known_as(store, "99887")
    assert (central.cards[card_id]["number"], central.cards[card_id]["status"]) == ("99887", "lost")
    books = await store.outbox.books()
    assert books.balance()
    assert (books.parked, books.waiting) == (0, 0)
    assert not (await store.events.page(EventFilter(types=(int(EventKind.RECORD_PARKED),)))).events


async def test_central_never_shows_an_older_state_behind_an_amended_create(central, store, down, writes, sender):
    await central.stop()
    central.cards[4001]["number"] = TAKEN_UNHEARD
    card_id = (await writes.write(CARD_CREATE, {**NEW, "number": TAKEN_UNHEARD})).record_id
    await writes.write(CARD_LIFECYCLE, {"id": card_id, "status": "suspended", "reason": "lent"})
    await writes.write(CARD_LIFECYCLE, {"id": card_id, "status": "active"})
    await writes.write(CARD_UPDATE, {"id": card_id, "note": "older"})
    await central.start()
    while not (await store.outbox.books()).parked:
        await store.outbox.retry_now()
        await sender.send_due()
    await writes.write(CARD_LIFECYCLE, {"id": card_id, "status": "lost", "reason": "at the gate"})
    await writes.write(CARD_UPDATE, {"id": card_id, "number": "99887", "note": "newer"})
    central.requests.clear()
    while (await store.outbox.books()).waiting:
        await store.outbox.retry_now()
        await sender.send_due()
    writing = [(seen.method, seen.path) for seen in central.requests if seen.method in ("PUT", "PATCH")]
    create = ("PUT", "/v1/access")  # once with the number that is taken still
    assert writing == [create, create, ("PATCH", "/v1/access/lifecycle")]
    (shown,) = [card for card in central.cards.values() if card["number"] == "99887"]
    assert (shown["status"], shown["reason"], shown["note"]) == ("lost", "at the gate", "newer")
    books = await store.outbox.books()
    assert (books.balance(), books.parked, books.dropped) == (True, 0, 0)
    assert not (await store.events.page(EventFilter(types=(int(EventKind.CHANGED_ON_BOTH_SIDES),)))).events


async def test_a_refused_create_that_was_deleted_meanwhile_waits_for_nobody(central, store, down, writes, settle):
    central.faults = Faults(paths="/v1/access", chances=Chances(lost_requests=1))
    made = await writes.write(CARD_CREATE, {**NEW, "number": central.cards[4001]["number"]})  # it may have got there
    assert (await writes.write(CARD_DELETE, {"id": made.record_id})).waits
    central.faults = Faults()
    await settle()
    books = await store.outbox.books()
    assert books.balance()
    assert (books.parked, books.waiting, books.replaced) == (0, 0, 2)


async def test_what_takes_a_right_away_goes_up_before_all_others(central, store, down, writes, settle):
    await central.stop()
    await writes.write(CARD_UPDATE, {"id": 4002, "note": "x"})
    await writes.write(CARD_UPDATE, {"id": 4001, "note": "y"})
    await writes.write(CARD_LIFECYCLE, {"id": 4003, "status": "active"})
    await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})
    await central.start()
    central.requests.clear()
    await settle()
    sent = [request.path for request in central.requests if request.method == "PATCH"]
    assert sent == ["/v1/access/lifecycle", "/v1/access", "/v1/access/lifecycle", "/v1/access"]
    assert central.cards[4001]["status"] == "lost"


async def test_a_change_that_central_fails_with_does_not_hold_up_a_lost_card(central, store, down, writes, sender):
    await central.stop()
    await writes.write(CARD_UPDATE, {"id": 4001, "note": "y"})
    await central.start()
    (row,) = await store.outbox.due(now=2**62)
    await store.outbox.failed(row, error="something went wrong", next_at=2**61)
    await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})
    await sender.send_due()
    assert central.cards[4001]["status"] == "lost"
    books = await store.outbox.books()
    assert (books.balance(), books.waiting) == (True, 1)


async def test_a_page_that_is_older_than_a_write_does_not_take_it_back(central, store, down, writes):
    real = central.tables.cards.page

    pages = []

    def slow(*args, **kwargs):
        batch = real(*args, **kwargs)
        batch.records[:] = [dict(item) for item in batch.records]
        pages.append(batch)
        return batch

    central.tables.cards.page = slow
    central.faults = Faults(paths="/v1/access/list", slow_body_seconds=0.3)
    async with asyncio.TaskGroup() as group:
        pulling = group.create_task(down.pull())
        await until(lambda: any(request.path == "/v1/access/list" for request in central.requests))
        await until(lambda: pages)  # made, and on its way for a while
        await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})
        await writes.write(CARD_DELETE, {"id": 4002})
        await pulling
    assert (await store.cards.get(4001)).card.status is CardStatus.LOST
    assert await store.cards.get(4002) is None


async def test_a_site_that_stands_alone_keeps_its_records(store):
    writes = central_writes(client=None, store=store, clock=SystemClock())
    made = await writes.write(CARD_CREATE, NEW)
    assert not made.waits
    await writes.write(CARD_LIFECYCLE, {"id": made.record_id, "status": "lost"})
    assert (await store.cards.get(made.record_id)).card.status is CardStatus.LOST
    await writes.write(CARD_DELETE, {"id": made.record_id})
    assert await store.cards.count() == 0
    assert (await store.outbox.books()).accepted == 0


async def test_an_account_that_central_does_not_let_in_holds_nobody_up(central, store, down, connect):
    stranger = connect(password="wrong horse")
    writes = central_writes(client=stranger, store=store, clock=SystemClock())
    assert (await writes.write(CARD_CREATE, NEW)).waits
    assert (await store.outbox.books()).waiting == 1


@pytest.mark.parametrize(
    ("sent", "kept", "same"),
    [
        ({"number": "1"}, {"id": 5, "number": "1", "note": ""}, True),
        ({"number": "1"}, {"id": 5, "number": "2"}, False),
        ({"number": 1, "holder": None}, {"number": "1"}, True),
        ({"plate": "ab 12"}, {"plate": "AB 12"}, True),
        ({"date_at": "2026-01-31T12:00:00Z"}, {"date_at": "2026-01-31T12:00:00.000+00:00"}, True),
        ({"date_at": "2026-01-31T12:00:00Z"}, {"date_at": "2026-01-31T12:00:01Z"}, False),
        ({"customer": {"id": 4}}, {"customer": {"id": 4, "name": "x"}}, True),
        ({"zones": [1]}, {"zones": [1, 2]}, False),
        ({"note": ""}, {"note": ""}, False),
        ({}, {"id": 5}, False),
    ],
)
def test_a_record_of_centrals_is_known_by_what_was_sent(sent, kept, same):
    assert is_twin(sent, kept) is same
