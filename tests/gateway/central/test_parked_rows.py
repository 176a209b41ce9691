"""A person's ways with changes that central refused, against the simulated central and a real store."""

from __future__ import annotations

import json

import pytest
from fresh_ids import fresh_ids
from waiting import until
from wired import central_writes, down_sync, outbox_sender, parked_rows

from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.events import EventKind
from gateway.domain.writes import CARD_CREATE, CARD_LIFECYCLE, CARD_UPDATE, ENTRY_CREATE
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import EventFilter
from simulation.far_ends.central import Faults

SOON = Backoff(first=0.001, longest=0.005)


@pytest.fixture
def parked(store):
    return parked_rows(store=store, clock=SystemClock())


@pytest.fixture
def settle(client, store):
    """Send until every row is gone up or refused; return the books."""
    sender = outbox_sender(
        client=client,
        newest=fresh_ids(client),
        store=store,
        clock=SystemClock(),
        row_backoff=SOON,
        away_backoff=SOON,
        may_take=0,
        ask_after=0,
    )

    async def rests():
        return (await sender.send_due()).wait > 1

    async def send():
        await until(rests)
        books = await store.outbox.books()
        assert books.balance()
        return books

    return send


@pytest.fixture
async def refused(central, client, store, settle):
    """Rows that central refused: a change of card 4001, and a new card. At central other cards have their numbers."""
    await down_sync(client=client, store=store, clock=SystemClock()).pull()
    writes = central_writes(client=client, store=store, clock=SystemClock())
    await central.stop()
    central.cards[4002]["number"] = "55501"  # as the site has not heard yet
    central.cards[4003]["number"] = "55502"
    await writes.write(CARD_UPDATE, {"id": 4001, "number": "55501", "note": "n"})
    made = await writes.write(CARD_CREATE, {"number": "55502", "status": "active", "holder_name": "Nora"})
    behind = {"status": "active", "reason": "behind"}  # a create cannot say the reason
    await writes.write(CARD_LIFECYCLE, {"id": made.record_id, **behind})
    await central.start()
    assert (await settle()).parked == 2
    return await store.refused.page()


async def told(store, kind):
    return (await store.events.page(EventFilter(types=(int(kind),)))).events


async def test_it_is_sent_again_as_it_is_once_central_takes_it(central, store, parked, refused, settle):
    change, _ = refused
    central.cards[4002]["number"] = "elsewhere"
    assert not (await parked.retry(change.id, by="tess")).parked
    books = await settle()
    assert (books.parked, books.waiting) == (1, 1)
    assert central.cards[4001]["note"] == "n"
    (event,) = await told(store, EventKind.RECORD_RELEASED)
    assert "sent again by tess" in event.description
    assert "is already used" in json.loads(event.data)["refused_because"]
    with pytest.raises(NotFoundError):
        await parked.retry(change.id, by="tess")


async def test_it_is_edited_and_counts_at_the_site_too(central, store, parked, refused, settle):
    change, create = refused
    await parked.edit(change.id, {"number": "5551", "note": None}, by="tess")
    await parked.edit(create.id, {"number": "5552"}, by="tess")
    assert json.loads((await store.cards.get(4001)).record)["number"] == "5551"
    books = await settle()
    assert (books.parked, books.waiting, books.dropped) == (0, 0, 0)
    assert central.cards[4001]["number"] == "5551"
    assert central.cards[4001].get("note") != "n"
    (made,) = [card for card in central.cards.values() if card["number"] == "5552"]
    assert (made["holder_name"], made["reason"]) == ("Nora", "behind")
    with pytest.raises(NotFoundError):
        await parked.edit(change.id, {"number": "1"}, by="tess")


async def test_an_edit_that_leaves_nothing_is_refused(parked, store, refused):
    change, _ = refused
    with pytest.raises(CommandRefused, match="drop it"):
        await parked.edit(change.id, {"number": None, "note": None}, by="tess")
    assert (await store.refused.get(change.id)).parked


async def test_what_is_let_go_of_is_counted_and_told_and_central_counts_again(
    central, client, store, parked, refused, settle
):
    change, create = refused
    await parked.drop(change.id, by="tess")
    await parked.drop(create.id, by="tess")
    books = await settle()
    assert (books.parked, books.waiting, books.dropped, books.accepted) == (0, 0, 3, 3)
    assert await store.cards.get(create.record_id) is None
    assert {event.description.partition(",")[0] for event in await told(store, EventKind.RECORD_DROPPED)} == {
        "access card 4001 (update)",
        f"access card {create.record_id} (create)",
    }
    await down_sync(client=client, store=store, clock=SystemClock()).pull()
    assert json.loads((await store.cards.get(4001)).record)["number"] == central.cards[4001]["number"]


async def test_what_waits_for_its_turn_is_nobodys_to_touch(parked, store, refused):
    (behind,) = [row for row in await store.refused.page(after=0, limit=10, refused=False) if not row.parked]
    for deed in (
        parked.retry(behind.id, by="t"),
        parked.drop(behind.id, by="t"),
        parked.edit(behind.id, {"a": 1}, by="t"),
    ):
        with pytest.raises(CommandRefused, match="goes up by itself"):
            await deed
    assert (await store.outbox.books()).parked == 2


async def test_of_two_who_edit_one_at_once_the_later_one_looks_again(central, store, parked, refused, settle):
    change, _ = refused
    real = store.refused.get

    async def overtaken(row_id):
        row = await real(row_id)
        store.refused.get = real
        await parked.edit(row_id, {"note": "of the first"}, by="tess")
        assert (await settle()).parked == 2
        return row

    store.refused.get = overtaken
    with pytest.raises(CommandRefused, match="somebody else"):
        await parked.edit(change.id, {"number": "5551"}, by="tom")
    await parked.edit(change.id, {"number": "5551"}, by="tom")
    await settle()
    assert (central.cards[4001]["number"], central.cards[4001]["note"]) == ("5551", "of the first")


@pytest.fixture
async def unknown(central, client, store, settle):
    """The row of a new card of which nobody knows whether central has it; and the id that central gave it."""
    await down_sync(client=client, store=store, clock=SystemClock()).pull()
    writes = central_writes(client=client, store=store, clock=SystemClock())
    central.faults = Faults(paths="/v1/access", lost_answers=1)
    await writes.write(CARD_CREATE, {"number": "778899", "status": "active", "holder_name": "Nora"})
    central.faults = Faults(deny="can_view_access_cards")
    assert (await settle()).parked == 1
    central.faults = Faults()
    (row,) = await store.refused.page()
    (given,) = [number for number, card in central.cards.items() if card["number"] == "778899"]
    return row, given


async def test_an_id_that_a_person_mistypes_is_refused(central, client, store, settle, unknown):
    row, given = unknown
    parked = parked_rows(store=store, clock=SystemClock(), client=client)
    before = await store.cards.get(4001)
    with pytest.raises(CommandRefused, match="4001 is another record, which this site already knows"):
        await parked.settle(row.id, 4001, by="tess")
    with pytest.raises(CommandRefused, match="central has no access_card 999999"):
        await parked.settle(row.id, 999_999, by="tess")
    made = await client.call("PUT", "/v1/access", {"number": "112233", "status": "active", "holder_name": "Olaf"})
    theirs = made["access_card"]["id"]
    with pytest.raises(CommandRefused, match="is another record: its identifying"):
        await parked.settle(row.id, theirs, by="tess")
    await central.stop()
    with pytest.raises(CommandRefused, match="cannot be looked at now"):
        await parked.settle(row.id, given, by="tess")
    await central.start()
    assert (await store.refused.get(row.id)).parked
    await parked.settle(row.id, given, by="tess")
    assert (await settle()).waiting == 0
    assert await store.cards.get(4001) == before
    assert (await store.cards.get(given)).card.holder == "Nora"


async def test_who_sees_more_than_the_gateways_account_is_believed(central, client, store, settle, unknown):
    row, given = unknown
    central.faults = Faults(deny="can_view_access_cards")
    await parked_rows(store=store, clock=SystemClock(), client=client).settle(row.id, given, by="tess")
    (told,) = (await store.events.page(EventFilter(types=(int(EventKind.RECORD_RELEASED),)))).events
    assert told.description.endswith("by tess, unchecked: the gateway's account may not look at it there")
    assert (await settle()).waiting == 0


async def test_two_rows_cannot_both_be_settled_as_one_record(store, parked):
    await store.pending_writes.hold(ENTRY_CREATE, None, {"device_id": 101, "type": "entry"}, now=1, sends=True)
    await store.pending_writes.hold(ENTRY_CREATE, None, {"device_id": 101, "type": "entry"}, now=1, sends=True)
    one, other = await store.outbox.due(now=1)
    for row in (one, other):
        await store.outbox.begin(row)
        await store.unknown_outcomes.leave_to_a_person(row, reason="nobody knows")
    await parked.settle(one.id, 7001, by="tess")
    with pytest.raises(CommandRefused, match="7001 is another one of this site"):
        await parked.settle(other.id, 7001, by="tess")
    await parked.settle(other.id, 7002, by="tess")
    assert (await store.outbox.books()).parked == 0
