"""Records that both sides changed while they were apart: whose value counts, and that it is told."""

from __future__ import annotations

import asyncio
import json

import pytest
from fresh_ids import fresh_ids
from waiting import until
from wired import down_sync, outbox_sender

from gateway.domain.credentials import CardStatus
from gateway.domain.errors import CentralRefused
from gateway.domain.events import EventKind
from gateway.domain.writes import CAMERA_UPDATE, CARD_DELETE, CARD_LIFECYCLE, CARD_UPDATE
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import EventFilter
from simulation.far_ends.central import Faults

SOON = Backoff(first=0.001, longest=0.005)


@pytest.fixture
def pull(client, store):
    return down_sync(client=client, store=store, clock=SystemClock()).pull


@pytest.fixture
async def apart(central, sender, store, writes, pull):
    """Both sides have the same records, and the line is down. Gives what brings them together again."""
    await pull()
    await central.stop()

    async def sent():
        await sender.send_due()
        return not (await store.outbox.books()).waiting

    async def together():
        await central.start()
        await until(sent)

    return together


async def told(store):
    page = await store.events.page(EventFilter(types=(int(EventKind.CHANGED_ON_BOTH_SIDES),)))
    return [event.description for event in page.events]


async def record(store, card_id):
    return json.loads((await store.cards.get(card_id)).record)


async def test_what_one_side_alone_changed_is_no_conflict(central, store, writes, apart):
    await writes.write(CARD_UPDATE, {"id": 4001, "note": "here"})
    await writes.write(CARD_UPDATE, {"id": 4001, "note": "here again"})
    central.tables.cards.change(4001, {"holder_name": "Nora"})
    await apart()
    assert (central.cards[4001]["note"], central.cards[4001]["holder_name"]) == ("here again", "Nora")
    assert await told(store) == []


async def test_the_sites_value_counts_and_an_event_has_both(central, store, writes, apart):
    await writes.write(CARD_UPDATE, {"id": 4001, "note": "here"})
    central.tables.cards.change(4001, {"note": "there"})
    await apart()
    assert central.cards[4001]["note"] == "here"
    (said,) = await told(store)
    assert (
        said
        == "access card 4001 was changed here and at central: note: 'here' here, 'there' at central; the site's counts"
    )
    assert (await store.outbox.books()).balance()


async def test_a_card_that_central_blocked_meanwhile_stays_blocked(central, store, writes, apart):
    """The site has suspended the card meanwhile, and set it free again. That changes nothing."""
    await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "suspended"})
    await writes.write(CARD_UPDATE, {"id": 4001, "status": "active", "note": "here"})
    central.tables.cards.change(4001, {"status": "blocked"})
    await apart()
    assert central.cards[4001]["status"] != "active"
    assert central.cards[4001]["note"] == "here"
    assert (await record(store, 4001)) == central.cards[4001]
    assert (await store.cards.get(4001)).card.status is not CardStatus.ACTIVE
    books = await store.outbox.books()
    assert books.balance()
    assert (books.waiting, books.parked) == (0, 0)


async def test_a_right_is_not_given_back_over_centrals_own_word(central, store, writes, apart, pull):
    central.tables.cards.change(4001, {"status": "suspended"})
    await central.start()
    await pull()
    await central.stop()
    await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "active", "reason": "paid"})
    central.tables.cards.change(4001, {"status": "lost"})
    await apart()
    assert central.cards[4001]["status"] == "lost"
    assert (await store.cards.get(4001)).card.status is CardStatus.LOST
    books = await store.outbox.books()
    assert books.balance()
    assert (books.dropped, books.delivered) == (1, 0)


async def test_a_card_that_the_site_blocked_is_blocked_whatever_central_made_of_it(central, store, writes, apart):
    await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "blocked"})
    central.tables.cards.change(4001, {"status": "suspended"})
    await apart()
    assert central.cards[4001]["status"] == "blocked"
    assert len(await told(store)) == 1


async def test_not_found_by_what_stands_before_central_loses_no_change(central, client, store, writes, apart):
    await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})
    await writes.write(CARD_DELETE, {"id": 4002})
    real = client.call

    async def call(method, path, body=None, **more):
        raise CentralRefused(f"{method} {path}: no route matched", status=404)

    client.call = call
    sender = outbox_sender(
        client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), row_backoff=SOON, away_backoff=SOON
    )
    for _ in range(6):
        await sender.send_due()
        await asyncio.sleep(0.01)  # the next try is due
    assert (await store.outbox.books()).waiting == 2
    assert (await store.cards.get(4001)).card.status is CardStatus.LOST
    client.call = real
    await apart()
    assert central.cards[4001]["status"] == "lost"
    assert 4002 not in central.cards


async def test_a_conflict_is_told_once_however_often_the_change_is_sent(central, store, writes, apart):
    await writes.write(CAMERA_UPDATE, {"id": 201, "description": "here"})
    central.tables.cameras[201]["description"] = "there"
    central.faults = Faults(paths="/v1/camera", lost_answers=3)
    await apart()
    assert central.tables.cameras[201]["description"] == "here"
    assert len(await told(store)) == 1


async def test_a_record_that_is_sent_back_whole_takes_nothing_of_centrals_back(central, store, writes, apart):
    shown = await record(store, 4001)
    whole = {name: shown[name] for name in ("number", "holder_name", "status")}
    await writes.write(CARD_UPDATE, {"id": 4001, **whole, "note": "here"})
    central.tables.cards.change(4001, {"holder_name": "Nora", "status": "lost"})
    await apart()
    card = central.cards[4001]
    assert (card["note"], card["holder_name"], card["status"]) == ("here", "Nora", "lost")
    assert await record(store, 4001) == card
    assert await told(store) == []
