"""Records that go up name others by central's ids, whatever ids the site gave them."""

from __future__ import annotations

import pytest
from fresh_ids import fresh_ids
from waiting import until
from wired import outbox_sender, parked_rows

from gateway.domain.errors import CentralRefused
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Passage, PassageOutcome
from gateway.domain.writes import CARD_CREATE, CARD_DELETE, DEVICE_CREATE, ENTRY_CREATE, ENTRY_UPDATE
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import Entry
from simulation.far_ends.central import CentralAccount, ErrorKind, Faults

AT = 1_767_268_800_000_000
DATE = "2026-01-01T12:00:00.000Z"
PASSED = Event(EventKind.VEHICLE_PASSED, AT, clock_trusted=True, text="A vehicle passed.", device_id=101)
SLOWER = Backoff(first=0.001, longest=300.0)
PROVISIONAL = 2_000_000_000
CARD = {"number": "77123", "status": "active"}


def passage(card_id: int) -> Passage:
    return Passage(
        lane_id="entry",
        direction="entry",
        outcome=PassageOutcome.PASSED,
        started_at=AT,
        ended_at=AT + 9,
        clock_trusted=True,
        card_id=card_id,
        credential="77123",
    )


async def hold(store, operation, body):
    held = await store.pending_writes.hold(operation, None, body, now=AT, sends=True)
    assert held.record_id >= PROVISIONAL
    return held.record_id


async def send(store, sender, turns=4):
    for _ in range(turns):
        await store.outbox.retry_now()
        await sender.send_due()
    return await store.outbox.books()


def sent_to(central, path, method="PUT"):
    return [seen for seen in central.requests if (seen.method, seen.path) == (method, path)]


def card_of(central, number="77123"):
    return next(card["id"] for card in central.cards.values() if card["number"] == number)


def nothing_provisional_went_up(central):
    assert [seen.body for seen in central.requests if "20000000" in seen.body.replace('"source_id"', "")] == []


async def test_an_entry_and_a_passage_of_a_card_made_here_go_up_with_its_id_at_central(store, sender, central):
    card = await hold(store, CARD_CREATE, CARD)
    await store.journal.record(Entry(events=(PASSED,), passage=passage(card)))
    await hold(store, ENTRY_CREATE, {"device_id": 101, "type": "entry", "date_at": DATE, "access_id": card})
    books = await send(store, sender)
    assert (books.waiting, books.parked, books.delivered) == (0, 0, 3)
    assert [entry["access_id"] for entry in central.entries] == [card_of(central)] * 2
    nothing_provisional_went_up(central)


async def test_a_row_waits_for_the_record_that_it_names_and_says_so(store, sender, central):
    central.put_account(CentralAccount("gateway", "right horse", permissions=frozenset({"can_add_entries"})))
    card = await hold(store, CARD_CREATE, CARD)
    await hold(store, ENTRY_CREATE, {"device_id": 101, "type": "entry", "date_at": DATE, "access_id": card})
    assert (await send(store, sender)).waiting == 2
    (row,) = [row for row in await store.refused.page(refused=False) if row.kind == "entry"]
    assert row.error == f"it waits for access card {card}, which central does not have yet"
    assert row.tries == 0
    central.put_account(CentralAccount("gateway", "right horse"))


async def test_the_card_s_arrival_frees_what_waits_for_it_at_once(store, client, central):
    sender = outbox_sender(
        client=client,
        newest=fresh_ids(client),
        store=store,
        clock=SystemClock(),
        row_backoff=SLOWER,
        away_backoff=SLOWER,
        may_take=0,
    )
    central.faults = Faults(paths="/v1/access", error=ErrorKind.JSON, error_times=1)
    card = await hold(store, CARD_CREATE, CARD)
    await hold(store, ENTRY_CREATE, {"device_id": 101, "type": "entry", "date_at": DATE, "access_id": card})
    await sender.send_due()
    rows = {row.kind: row for row in await store.refused.page(refused=False)}
    assert rows["entry"].next_at > SystemClock().wall().micros + 200_000_000
    await store.unknown_outcomes.look_later(rows["access_card"], reason="", next_at=0)

    async def sent():
        await sender.send_due()
        return not (await store.outbox.books()).waiting

    await until(sent)
    assert (await store.outbox.books()).delivered == 2
    assert [made["access_id"] for made in central.entries] == [card_of(central)]


async def test_a_row_says_that_the_record_it_names_was_refused_and_goes_without_a_card_let_go_of(
    store, sender, central
):
    card = await hold(store, CARD_CREATE, {**CARD, "number": central.cards[4001]["number"]})
    await store.journal.record(Entry(events=(PASSED,), passage=passage(card)))
    books = await send(store, sender)
    assert (books.waiting, books.parked) == (1, 1)
    (row,) = [row for row in await store.refused.page(refused=False) if row.kind == "entry"]
    assert row.error.startswith(f"it waits for access card {card}, which central refused: PUT /v1/access: ")
    (refused,) = await store.refused.page()
    await parked_rows(store=store, clock=SystemClock()).drop(refused.id, by="tess")
    books = await send(store, sender)
    assert (books.waiting, books.parked) == (0, 0)
    assert [entry["access_id"] for entry in central.entries] == [None]
    nothing_provisional_went_up(central)


async def test_a_refused_card_that_is_mended_takes_its_passages_along(store, sender, central):
    card = await hold(store, CARD_CREATE, {**CARD, "number": central.cards[4001]["number"]})
    await store.journal.record(Entry(events=(PASSED,), passage=passage(card)))
    await send(store, sender)
    (refused,) = await store.refused.page()
    await parked_rows(store=store, clock=SystemClock()).edit(refused.id, {"number": "77123"}, by="tess")
    books = await send(store, sender)
    assert (books.waiting, books.parked) == (0, 0)
    assert [entry["access_id"] for entry in central.entries] == [card_of(central)]


async def test_a_card_that_was_taken_back_is_left_out(store, sender, central):
    card = await hold(store, CARD_CREATE, CARD)
    await store.journal.record(Entry(events=(PASSED,), passage=passage(card)))
    held = await store.pending_writes.hold(CARD_DELETE, card, {}, now=AT, sends=True)
    assert held.taken_back
    books = await send(store, sender)
    assert (books.waiting, books.parked) == (0, 0)
    assert [entry["access_id"] for entry in central.entries] == [None]


async def test_a_change_of_an_entry_names_a_device_made_here_by_central_s_id(store, sender, central):
    device = await hold(store, DEVICE_CREATE, {"name": "New exit", "type": "barrier"})
    entry = await hold(store, ENTRY_CREATE, {"device_id": 101, "type": "entry", "date_at": DATE})
    body = {"exit_at": "2026-01-01T13:00:00.000Z", "exit_device_id": device}
    await store.pending_writes.hold(ENTRY_UPDATE, entry, body, now=AT, sends=True)
    books = await send(store, sender)
    assert (books.waiting, books.parked) == (0, 0)
    (made,) = central.entries
    assert made["exit_device_id"] == next(
        one["id"] for one in central.tables.devices.values() if one["name"] == "New exit"
    )
    nothing_provisional_went_up(central)


async def test_a_device_that_central_will_never_have_parks_the_row_with_its_name(store, sender, central):
    await hold(store, ENTRY_CREATE, {"device_id": PROVISIONAL + 99, "type": "entry", "date_at": DATE})
    assert (await send(store, sender)).parked == 1
    (row,) = await store.refused.page()
    assert row.error == f"device_id: central will never have device {PROVISIONAL + 99}"
    assert sent_to(central, "/v1/entry") == []


@pytest.mark.parametrize(("card", "sent"), [(4999, [None]), (4001, [])], ids=["gone", "there"])
async def test_a_refused_entry_goes_without_a_card_that_central_no_longer_has(store, sender, central, card, sent):
    gate = central.tables.devices.find(101)
    central.tables.devices.remove(101)  # which refuses the entry, as a central does that knows no such card
    await hold(store, ENTRY_CREATE, {"device_id": 101, "type": "entry", "date_at": DATE, "access_id": card})
    await sender.send_due()
    central.tables.devices.put(gate)
    books = await send(store, sender)
    assert (books.waiting, books.parked, books.delivered) == (0, 1 - len(sent), len(sent))
    assert [made["access_id"] for made in central.entries] == sent


async def test_sent_again_by_a_person_it_names_the_record_by_central_s_id(store, sender, central):
    card = await hold(store, CARD_CREATE, CARD)
    gate = central.tables.devices.find(101)
    central.tables.devices.remove(101)
    await hold(store, ENTRY_CREATE, {"device_id": 101, "type": "entry", "date_at": DATE, "access_id": card})
    assert (await send(store, sender)).parked == 1
    central.tables.devices.put(gate)
    (row,) = await store.refused.page()
    await parked_rows(store=store, clock=SystemClock()).retry(row.id, by="tess")
    assert (await send(store, sender)).parked == 0
    assert [made["access_id"] for made in central.entries] == [card_of(central)]
    nothing_provisional_went_up(central)


async def test_a_write_that_goes_straight_through_names_the_record_by_central_s_id(store, sender, writes, central):
    card = await hold(store, CARD_CREATE, CARD)
    body = {"device_id": 101, "type": "entry", "date_at": DATE, "access_id": card}
    assert (await writes.write(ENTRY_CREATE, body)).waits  # behind its card
    assert (await send(store, sender)).waiting == 0
    assert not (await writes.write(ENTRY_CREATE, body)).waits
    assert [made["access_id"] for made in central.entries] == [card_of(central)] * 2
    nothing_provisional_went_up(central)
    with pytest.raises(CentralRefused, match="central will never have device 2000000099"):
        await writes.write(ENTRY_CREATE, {**body, "device_id": PROVISIONAL + 99})


async def test_entries_of_lost_answers_that_name_a_card_made_here_are_found_by_its_id_at_central(
    store, sender, central
):
    card = await hold(store, CARD_CREATE, CARD)
    await send(store, sender)
    for minute in range(2):
        body = {"device_id": 101, "type": "entry", "date_at": f"2026-01-01T12:0{minute}:00.000Z", "access_id": card}
        await hold(store, ENTRY_CREATE, body)
    central.faults = Faults(paths="/v1/entry", lost_answers=2)
    books = await send(store, sender, turns=8)
    assert (books.waiting, books.parked, books.delivered) == (0, 0, 3)
    assert [entry["access_id"] for entry in central.entries] == [card_of(central)] * 2
