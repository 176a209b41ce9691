"""Changes that central refuses or does not permit may wait for long: they hide nothing that it took away since."""

from __future__ import annotations

import asyncio
import json

import pytest
from waiting import until
from wired import central_writes, down_sync

from gateway.central.client.answers import CentralDenied
from gateway.domain.credentials import CardStatus
from gateway.domain.errors import CentralRefused
from gateway.domain.events import EventKind
from gateway.domain.writes import CARD_DELETE, CARD_LIFECYCLE, CARD_UPDATE, ENTRY_CREATE, ENTRY_UPDATE
from gateway.runtime.clock import SystemClock
from gateway.store import EventFilter

TOO_LONG = CentralRefused("note: too long", status=400)
DENIED = CentralDenied("permission denied: can_edit_access_cards", status=403)
DAY = "2026-11-01T10:00:00Z"
NO_SUCH_PATH = CentralRefused("404 page not found", status=404)


@pytest.fixture
def pull(client, store):
    return down_sync(client=client, store=store, clock=SystemClock()).pull


@pytest.fixture
def refusing(client):
    """Lets central's answer to these operations be a refusal."""
    usual = client.call

    def refuse(refusal, *operations):
        paths = {(operation.method, operation.path) for operation in operations}

        async def call(method, path, body=None, **more):
            if (method, path) in paths:
                raise refusal
            return await usual(method, path, body, **more)

        client.call = call

    return refuse


async def card(store, card_id):
    found = await store.cards.get(card_id)
    return None if found is None else found.card


async def whole(store, card_id):
    return json.loads((await store.cards.get(card_id)).record)


@pytest.fixture
async def waiting(central, store, writes, sender, pull, refusing):
    """A change of a whole card, sent back as it was but for its note, that central does not take."""

    async def make(card_id, refusal):
        await central.stop()
        await writes.write(CARD_UPDATE, {**await whole(store, card_id), "note": "a long note"})
        refusing(refusal, CARD_UPDATE)
        await central.start()

        async def judged():
            await sender.send_due()
            return refusal is DENIED or (await store.outbox.books()).parked

        await until(judged)
        books = await store.outbox.books()
        assert books.waiting + books.parked == 1

    await pull()
    return make


@pytest.mark.parametrize("refusal", [TOO_LONG, DENIED], ids=["refused", "denied"])
@pytest.mark.parametrize(
    ("change", "shows"),
    [
        ({"status": "suspended"}, lambda card: card.status is CardStatus.SUSPENDED),
        ({"valid_until": "2020-01-01T00:00:00Z"}, lambda card: card.valid_until < 1_600_000_000_000_000),
        ({"zones": ["elsewhere"]}, lambda card: card.zones == ("elsewhere",)),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_what_central_changes_later_counts_at_once(central, store, pull, waiting, refusal, change, shows):
    await waiting(4001, refusal)
    central.tables.cards.change(4001, change)
    await pull()
    assert shows(await card(store, 4001))
    assert (await whole(store, 4001))["note"] == "a long note"


@pytest.mark.parametrize("refusal", [TOO_LONG, DENIED], ids=["refused", "denied"])
async def test_a_card_that_central_deletes_is_gone(central, store, pull, waiting, refusal):
    await waiting(4001, refusal)
    central.tables.cards.remove(4001)
    await pull()
    assert await card(store, 4001) is None


async def test_it_stays_so_over_a_restart_and_over_other_answers(central, client, store, writes, pull, waiting):
    await waiting(4001, TOO_LONG)
    central.tables.cards.change(4001, {"status": "suspended"})
    await pull()
    await central_writes(client=client, store=store, clock=SystemClock()).recall()
    assert (await card(store, 4001)).status is CardStatus.SUSPENDED
    await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})
    assert (await card(store, 4001)).status is CardStatus.LOST
    await pull()
    assert (await card(store, 4001)).status is CardStatus.LOST


async def test_the_sites_own_later_state_outlasts_a_restart(central, client, store, writes, pull):
    await pull()
    await central.stop()
    for status in ("suspended", "active", "suspended"):
        await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": status})
        await central_writes(client=client, store=store, clock=SystemClock()).recall()
        assert (await whole(store, 4001))["status"] == status


@pytest.mark.parametrize("operation", [CARD_LIFECYCLE, CARD_DELETE], ids=["lifecycle", "delete"])
async def test_an_operation_that_central_does_not_have_is_no_word_on_the_record(
    central, store, writes, sender, pull, refusing, operation
):
    """A central of another version answers 404 to the path; it has the card all the same."""
    await pull()
    refusing(NO_SUCH_PATH, operation)
    written = await writes.write(operation, {"id": 4001, "status": "lost"})
    assert written.waits
    await pull()
    for _ in range(5):
        await sender.send_due()
        await asyncio.sleep(0.01)  # the next try is due
    found = await card(store, 4001)
    assert found is None if operation is CARD_DELETE else found.status is CardStatus.LOST
    assert (await store.outbox.books()).waiting == 1


async def test_an_entry_of_the_site_stays_though_central_does_not_have_it(
    central, client, store, writes, sender, pull, refusing
):
    """Central lists newer entries, so it was not set back: the change comes to nothing, and is told."""
    await pull()
    first, *_ = [
        await writes.write(ENTRY_CREATE, {"device_id": 101, "type": "entry", "plate": f"AB {number}", "date_at": DAY})
        for number in range(4)
    ]
    central.tables.entries.remove(first.record_id)
    await central.stop()
    written = await writes.write(ENTRY_UPDATE, {"id": first.record_id, "exit_at": DAY})
    await central.start()
    for _ in range(5):
        await sender.send_due()
    (told,) = (await store.events.page(EventFilter(types=(int(EventKind.RECORD_PARKED),)))).events
    assert "entry" in told.description
    kept = await store.pending_writes.record("entry", written.record_id)
    assert (kept["plate"], kept["exit_at"][:10]) == ("AB0", DAY[:10])


async def test_a_change_of_an_entry_waits_while_central_lists_the_entry_but_does_not_know_the_operation(
    central, store, writes, sender, pull, refusing
):
    await pull()
    entry = await writes.write(ENTRY_CREATE, {"device_id": 101, "type": "entry", "plate": "AB 1", "date_at": DAY})
    refusing(NO_SUCH_PATH, ENTRY_UPDATE)
    assert (await writes.write(ENTRY_UPDATE, {"id": entry.record_id, "exit_at": DAY})).waits
    for _ in range(5):
        await sender.send_due()
    assert (await store.outbox.books()).waiting == 1
