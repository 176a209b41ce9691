"""A disk that refuses for a while amid writes and deliveries: nothing is there twice, nothing is lost."""

from __future__ import annotations

import json
import random

import pytest

from gateway.domain.credentials import CardStatus
from gateway.domain.errors import CentralUnavailable, StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.domain.writes import CARD_CREATE, CARD_LIFECYCLE, CARD_UPDATE, FIRST_PROVISIONAL_ID
from gateway.runtime.supervision import Backoff
from gateway.store import Entry
from simulation.far_ends.central import Chances, Faults

AT = 1_767_268_800_000_000
SOON = Backoff(first=0.001, longest=0.005)


@pytest.fixture
def away(central, client):
    """The line is down, and the client knows."""

    async def stop():
        await central.stop()
        with pytest.raises(CentralUnavailable):
            await client.look()

    return stop


def full(store):
    """The disk of the cards takes nothing, until what is given is called."""
    patch = pytest.MonkeyPatch()

    async def refuse(**_):
        raise StoreError("database or disk is full")

    patch.setattr(store.cards, "apply", refuse)
    return patch.undo


async def known_as(store, number):
    return [card.card_id for card in await store.cards.matching([f"text:{number}"])]


async def go_up(store, sender):
    for _ in range(300):
        if not (await store.outbox.books()).waiting:
            return
        await store.outbox.retry_now()
        await sender.send_due()
    raise AssertionError(await store.outbox.books())


async def test_a_card_whose_disk_is_full_is_held_once_and_follows_when_there_is_room(
    central, store, down, writes, sender, away
):
    await away()
    has_room = full(store)
    made = await writes.write(CARD_CREATE, {"number": "77123", "status": "active"})
    assert made.waits, "it is on disk and goes up: whoever wrote it does not write it again"
    await writes.write(CARD_LIFECYCLE, {"id": 4001, "status": "lost"})
    has_room()
    await sender.send_due()
    assert (await store.cards.get(4001)).card.status is CardStatus.LOST, "also while central is away"
    assert await known_as(store, "77123") == [made.record_id]
    await central.start()
    await go_up(store, sender)
    assert [card["number"] for card in central.cards.values()].count("77123") == 1
    assert len(await known_as(store, "77123")) == 1


@pytest.mark.parametrize("pulls", [True, False])
async def test_a_delivered_card_whose_disk_is_full_does_not_stay_beside_centrals(
    central, store, down, writes, sender, away, pulls
):
    await away()
    made = await writes.write(CARD_CREATE, {"number": "77123", "status": "active"})
    await central.start()
    has_room = full(store)
    with pytest.raises(StoreError):
        await sender.send_due()
    has_room()
    (central_id,) = [card["id"] for card in central.cards.values() if card["number"] == "77123"]
    if pulls:
        central.tables.cards.change(central_id, {"status": "lost"})
        await down.pull()
    await sender.send_due()
    assert await known_as(store, "77123") == [central_id]
    assert await store.cards.get(made.record_id) is None
    expected = CardStatus.LOST if pulls else CardStatus.ACTIVE
    assert (await store.cards.get(central_id)).card.status is expected
    assert made.record_id >= FIRST_PROVISIONAL_ID


@pytest.mark.parametrize("seed", range(3))
async def test_a_disk_and_a_line_that_refuse_now_and_then_leave_each_record_once(
    central, store, client, down, writes, sender, away, seed
):
    chance = random.Random(seed)
    await away()
    event = Event(EventKind.VEHICLE_PASSED, AT, clock_trusted=True, text="A vehicle passed.", device_id=101)
    for number in range(24):
        moment = Moment(
            201, f"Vehicle {number}", "", AT + number * 1_000_000, AT + number * 1_000_000 + 9, clock_trusted=True
        )
        await store.journal.record(Entry(events=(event,), moments=(moment,)))
    for number in range(4):
        made = await writes.write(CARD_CREATE, {"number": f"77{number}", "status": "active"})
        await writes.write(CARD_UPDATE, {"id": made.record_id, "note": "behind"})
    await central.start()
    real = store.database.write

    async def refusing(job, **more):
        if chance.random() < 0.3:
            raise StoreError("database or disk is full")
        return await real(job, **more)

    central.faults = Faults(chances=Chances(lost_answers=0.2, lost_requests=0.1), seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.database, "write", refusing)
        for _ in range(40):
            try:
                await sender.start_afresh()
                await sender.send_due()
            except StoreError:
                continue
            assert (await store.outbox.books()).balance()
    central.faults = Faults()
    await go_up(store, sender)
    books = await store.outbox.books()
    assert (books.parked, books.balance()) == (0, True)
    assert central.record_counts().doubles() == ()
    assert len(central.camera_events) == 24
    notes = [card["note"] for card in central.cards.values() if str(card.get("number", "")).startswith("77")]
    assert notes == ["behind"] * 4
    await down.pull()
    assert {card_id: json.loads((await store.cards.get(card_id)).record) for card_id in central.cards} == dict(
        central.cards.items()
    )
