"""Writes whose callers wait for central's answer, in the outbox from the beginning."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from waiting import until

from gateway.domain.credentials import CardStatus
from gateway.domain.errors import CentralRefused
from gateway.domain.writes import (
    CAMERA_CREATE,
    CAMERA_DELETE,
    CARD_CREATE,
    CARD_LIFECYCLE,
    CARD_UPDATE,
    DEVICE_CONFIG,
    DEVICE_CREATE,
    ENTRY_CREATE,
)
from simulation.far_ends.central import Faults

ENTRY = {"device_id": 101, "type": "entry", "date_at": "2026-01-01T12:00:00Z", "plate": "ALONE1"}


def sent(central, path):
    return [seen for seen in central.requests if seen.path == path and seen.method in ("PUT", "PATCH", "DELETE")]


async def all_is_well(store):
    books = await store.outbox.books()
    assert (books.balance(), books.waiting, books.parked) == (True, 0, 0)


async def leave(central, writes, operation, body, *, done):
    """Write, and leave when central has carried it out (`done`) but its answer is still on the way."""
    central.faults = Faults(paths=operation.path, slow_body_seconds=5)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(writes.write(operation, body))
        await until(done)
        writing.cancel()
    central.faults = Faults()


@pytest.mark.parametrize(
    ("operation", "body", "kind"),
    [(CARD_CREATE, {"number": "77123"}, "access_card"), (DEVICE_CREATE, {"name": "Kiosk"}, "device"),
     (ENTRY_CREATE, ENTRY, "entry")],
    ids=["card", "device", "entry"],
)  # fmt: skip
async def test_a_record_whose_caller_left_is_at_central_once_and_known_here(
    central, store, down, writes, go_up, operation, body, kind
):
    mark = next(name for name in ("plate", "number", "name") if name in body)
    table = {"access_card": central.cards, "device": central.tables.devices, "entry": central.tables.entries}[kind]

    def those():
        return [record for record in table.values() if record.get(mark) == body[mark]]

    await writes.write(operation, {**body, mark: "99999"})  # then central is not asked for its newest id
    await leave(central, writes, operation, body, done=those)
    await go_up()
    await all_is_well(store)
    (there,) = those()
    if kind == "access_card":
        assert json.loads((await store.cards.get(there["id"])).record)["number"] == "77123"
    else:
        assert (await store.pending_writes.record(kind, there["id"]))[mark] == body[mark]
    await down.pull()
    assert await store.cards.count() == len(central.cards)


async def test_a_change_whose_caller_left_is_made_on_both_sides(central, store, down, writes, go_up):
    lost, oak = {"id": 4001, "status": "lost"}, {"id": 102, "description": "by the oak"}

    def at_central():
        return central.tables.devices[102]["description"]

    await leave(central, writes, CARD_LIFECYCLE, lost, done=lambda: central.cards[4001]["status"] == "lost")
    await leave(central, writes, DEVICE_CONFIG, oak, done=lambda: at_central() == oak["description"])
    await go_up()
    await all_is_well(store)
    assert (central.cards[4001]["status"], central.tables.devices[102]["description"]) == ("lost", "by the oak")
    assert (await store.cards.get(4001)).card.status is CardStatus.LOST
    assert json.loads((await store.devices.get(102)).record)["description"] == "by the oak"


async def test_a_write_whose_caller_left_before_it_was_queued_goes_up(central, store, down, writes, go_up):
    disk = threading.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(store.database.write(lambda _: disk.wait(30)))
        await until(lambda: store.waiting == 1)
        writing = group.create_task(writes.write(CARD_CREATE, {"number": "77123"}))
        await until(lambda: store.waiting == 2)
        writing.cancel()
        await asyncio.wait([writing])
        disk.set()
    await until(lambda: store.waiting == 0)
    await go_up()
    assert [card["number"] for card in central.cards.values()].count("77123") == 1
    await all_is_well(store)


async def test_a_card_is_lost_here_though_the_caller_left_and_central_is_gone(central, store, down, writes, sender):
    lost = {"id": 4001, "status": "lost"}
    await leave(central, writes, CARD_LIFECYCLE, lost, done=lambda: central.cards[4001]["status"] == "lost")
    await central.stop()
    await sender.send_due()
    assert (await store.cards.get(4001)).card.status is CardStatus.LOST


async def test_the_sender_leaves_a_row_to_the_caller_who_waits(central, store, down, writes, sender):
    central.faults = Faults(paths="/v1/access", latency_seconds=0.2)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(writes.write(CARD_CREATE, {"number": "77123"}))
        await until(lambda: sent(central, "/v1/access"))
        assert (await sender.send_due()).wait > 1, "nothing is due meanwhile"
        made = await writing
    assert len(sent(central, "/v1/access")) == 1
    assert central.cards[made.record_id]["number"] == "77123"
    await all_is_well(store)


async def test_a_lane_never_sees_what_central_refuses(central, store, down, writes):
    """Not even if a pull comes while the caller waits."""
    central.tables.cards.change(4001, {"status": "suspended"})
    await down.pull()
    central.faults = Faults(paths="/v1/access/lifecycle", latency_seconds=0.3, deny="can_edit_access_cards")
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(refused(writes, CARD_LIFECYCLE, {"id": 4001, "status": "active"}))
        await until(lambda: sent(central, "/v1/access/lifecycle"))
        central.tables.cards.change(4001, {"note": "pulled meanwhile"})
        await down.pull()
        card = await store.cards.get(4001)
        assert json.loads(card.record)["note"] == "pulled meanwhile"
        assert card.card.status is CardStatus.SUSPENDED
        await writing
    assert (await store.cards.get(4001)).card.status is CardStatus.SUSPENDED
    await refused(writes, CARD_CREATE, {"number": central.cards[4002]["number"]})
    assert await store.cards.count() == len(central.cards)
    await all_is_well(store)


async def refused(writes, operation, body):
    with pytest.raises(CentralRefused):
        await writes.write(operation, body)


async def test_a_refused_device_leaves_nothing_behind(central, store, down, writes):
    before = await store.devices.all()
    central.faults = Faults(deny="can_add_devices")
    await refused(writes, DEVICE_CREATE, {"name": "Kiosk"})
    central.faults = Faults(deny="can_edit_devices")
    await refused(writes, DEVICE_CONFIG, {"id": 102, "description": "by the oak"})
    assert await store.devices.all() == before
    await all_is_well(store)


async def test_a_camera_is_deleted_on_both_sides(central, store, down, writes, go_up):
    made = await writes.write(CAMERA_CREATE, {"name": "Yard"})
    assert (await writes.write(CAMERA_DELETE, {"id": made.record_id})).record["name"] == "Yard"
    assert [item.id for item in await store.cameras.all()] == [201] == [*central.tables.cameras]
    await leave(central, writes, CAMERA_DELETE, {"id": 201}, done=lambda: 201 not in central.tables.cameras)
    await go_up()
    assert await store.cameras.all() == ()
    await all_is_well(store)


async def test_writes_of_one_card_go_in_the_order_in_which_they_came(central, store, down, writes, go_up):
    central.faults = Faults(paths="/v1/access", latency_seconds=0.1)
    async with asyncio.TaskGroup() as group:
        group.create_task(writes.write(CARD_UPDATE, {"id": 4001, "note": "first"}))
        await until(lambda: sent(central, "/v1/access"))
        group.create_task(writes.write(CARD_UPDATE, {"id": 4001, "note": "second"}))
    await go_up()
    assert central.cards[4001]["note"] == json.loads((await store.cards.get(4001)).record)["note"] == "second"
    await all_is_well(store)
