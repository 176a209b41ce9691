"""Changes that central refuses or does not permit may wait for long: they hide nothing that it took away since."""

from __future__ import annotations

import asyncio
import json

import pytest
from wired import central_writes, down_sync

from gateway.central.client.answers import CentralDenied
from gateway.domain.credentials import CardStatus
from gateway.domain.errors import CentralRefused
from gateway.domain.writes import CARD_DELETE, CARD_LIFECYCLE, CARD_UPDATE
from gateway.runtime.clock import SystemClock

TOO_LONG = CentralRefused("note: too long", status=400)
DENIED = CentralDenied("permission denied: can_edit_access_cards", status=403)
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
        for _ in range(200):
            await sender.send_due()
            books = await store.outbox.books()
            if books.parked or refusal is DENIED:
                break
            await asyncio.sleep(0.005)
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
        await asyncio.sleep(0.01)
    found = await card(store, 4001)
    assert found is None if operation is CARD_DELETE else found.status is CardStatus.LOST
    assert (await store.outbox.books()).waiting == 1
