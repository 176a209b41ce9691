"""Down-sync against the simulated central and a real store."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway.clock import SystemClock
from gateway.demo.central import ErrorKind, Faults
from gateway.domain.credentials import CardStatus
from gateway.domain.errors import CentralUnavailable
from gateway.domain.events import EventKind
from gateway.store import CardRecord, EventFilter, KnownRecord
from gateway.sync.down import DownSync
from gateway.sync.field_map import CardFieldMap, map_card


@pytest.fixture
def down(client, store):
    return DownSync(client=client, store=store, clock=SystemClock())


@pytest.fixture
def events_of(store):
    async def find(kind):
        return (await store.events.page(EventFilter(types=(int(kind),)))).events

    return find


def drop_cards(central, how_many):
    for card_id in list(central.cards)[-how_many:]:
        central.tables.cards.remove(card_id)


async def test_everything_comes_down_and_unknown_fields_are_kept(central, store, down):
    report = await down.pull()
    assert (report.devices, report.cameras, report.cards.cards, report.problems) == (3, 1, 40, ())
    assert await store.cards.count() == 40
    (card,) = await store.cards.matching(["text:00111572"])
    assert card.card_id == 4001
    assert (await store.cards.matching(["h10301:1:11572"]))[0].card_id == 4001
    assert json.loads((await store.cards.get(4001)).record) == central.cards[4001]
    assert json.loads((await store.devices.get(101)).record)["firmware"] == "4.2.1"
    assert (await store.cameras.get(201)).name == "Entry camera"


async def test_many_pages_and_batches(central, store, down):
    for number in range(250):
        central.tables.cards.put({"id": 10_000 + number, "number": str(number)})
        central.tables.devices.put({"id": 10_000 + number, "name": f"D{number}"})
    report = await down.pull()
    assert (report.devices, report.cards.cards, report.problems) == (253, 290, ())
    assert await store.cards.count() == 290


async def test_only_what_changed_is_written(central, store, down):
    await down.pull()
    before = store.commits
    report = await down.pull()
    assert (report.cards.added, report.cards.changed, report.cards.removed) == (0, 0, 0)
    assert store.commits == before
    central.tables.cards.change(4002, {"status": "suspended"})
    report = await down.pull()
    assert (report.cards.added, report.cards.changed) == (0, 1)
    assert (await store.cards.get(4002)).card.status is CardStatus.SUSPENDED


async def test_the_sites_own_devices_keep_their_names_and_kinds(central, store, down):
    await store.devices.declare([KnownRecord(101, "Gate A", "modbus-gate", at_site=True)], now=1)
    await down.pull()
    device = await store.devices.get(101)
    assert (device.name, device.kind, device.at_site) == ("Gate A", "modbus-gate", True)
    assert json.loads(device.record)["name"] == "Device 101"


async def test_a_small_removal_is_looked_at_twice_and_then_done(central, store, down, events_of):
    await down.pull()
    drop_cards(central, 4)
    central.requests.clear()
    report = await down.pull()
    assert report.cards.removed == 4
    assert await store.cards.count() == 36
    assert sum(request.path == "/v1/access/list" for request in central.requests) == 4
    assert not await events_of(EventKind.SWEEP_SUSPENDED)
    assert "4 removed" in (await events_of(EventKind.CARDS_CHANGED))[0].description


async def test_a_large_removal_waits_for_the_next_pull_and_is_told_once(central, store, down, events_of):
    await down.pull()
    drop_cards(central, 20)
    report = await down.pull()
    assert (report.cards.removed, report.cards.held_back) == (0, 20)
    assert await store.cards.count() == 40
    drop_cards(central, 1)
    assert (await down.pull()).cards.held_back == 21
    report = await down.pull()
    assert (report.cards.removed, report.cards.held_back) == (21, 0)
    assert await store.cards.count() == 19
    assert len(await events_of(EventKind.SWEEP_SUSPENDED)) == 1


async def test_a_large_removal_waits_across_a_restart(central, store, client, down):
    await down.pull()
    drop_cards(central, 20)
    await down.pull()
    again = DownSync(client=client, store=store, clock=SystemClock())
    assert (await again.pull()).cards.removed == 20


@pytest.mark.parametrize(
    "fault",
    [{"count_off_by": 3}, {"count_off_by": -3}, {"truncate_to": 5}, {"truncate_to": 0}],
)
async def test_a_list_that_contradicts_itself_never_shrinks_the_card_list(central, store, down, events_of, fault):
    await down.pull()
    drop_cards(central, 2)
    central.faults = Faults(paths="/v1/access", **fault)
    for _ in range(3):
        report = await down.pull()
        assert report.cards.removed == 0
        assert "count" in report.problems[0]
    assert await store.cards.count() == 40
    assert len(await events_of(EventKind.SWEEP_SUSPENDED)) == 1
    central.faults = Faults()
    assert (await down.pull()).cards.removed == 2


async def test_a_walk_that_breaks_off_keeps_what_came_and_removes_nothing(central, store, down):
    for number in range(150):
        central.tables.cards.put({"id": 10_000 + number, "number": str(number)})
    await down.pull()
    central.tables.cards.change(10_149, {"note": "new"})
    drop = list(central.cards)[:3]
    for card_id in drop:
        central.tables.cards.remove(card_id)
    real, asked = central.tables.cards.page, []

    def fail_second(*args, **kwargs):
        asked.append(kwargs["page"])
        if kwargs["page"] > 1:
            central.faults = Faults(error=ErrorKind.TEXT)
            raise RuntimeError("central broke")
        return real(*args, **kwargs)

    central.tables.cards.page = fail_second
    with pytest.raises(CentralUnavailable):
        await down.pull()
    assert asked == [1, 2]
    assert await store.cards.count() == 190
    assert '"note":"new"' in (await store.cards.get(10_149)).record


async def test_looks_that_disagree_remove_nothing(central, store, down):
    await down.pull()
    drop_cards(central, 2)
    real, looks = central.tables.cards.page, []

    def changing(*args, **kwargs):
        if kwargs["page"] == 1:
            looks.append(1)
            if len(looks) == 2:
                drop_cards(central, 1)
        return real(*args, **kwargs)

    central.tables.cards.page = changing
    report = await down.pull()
    assert report.cards.removed == 0
    assert "disagree" in report.problems[0]
    assert (await down.pull()).cards.removed == 3


async def test_cards_made_at_the_site_are_not_swept(store, down):
    record = {"id": 2_000_000_001, "number": "local"}
    card = map_card(2_000_000_001, record, CardFieldMap(), SystemClock().wall().as_datetime().tzinfo).card
    await store.cards.apply(put=[CardRecord(card, json.dumps(record))], now=1)
    await down.pull()
    assert await store.cards.get(2_000_000_001) is not None


async def test_cards_without_a_credential_are_counted_also_after_a_restart(central, store, client, down):
    central.tables.cards.put({"id": 10_000, "holder_name": "No card yet"})
    central.tables.cards.put({"id": 10_001, "number": "5", "status": "sparkling"})
    report = await down.pull()
    assert (report.cards.without_credential, report.cards.unread) == (1, 1)
    again = DownSync(client=client, store=store, clock=SystemClock())
    assert (await again.pull()).cards.without_credential == 1
    central.tables.cards.change(10_000, {"number": "77"})
    assert (await again.pull()).cards.without_credential == 0


async def test_another_field_map_reads_every_card_anew(central, store, client, down):
    await down.pull()
    again = DownSync(client=client, store=store, clock=SystemClock(), fields=CardFieldMap(printed=("uuid",)))
    assert (await again.pull()).cards.changed == 40
    assert (await again.pull()).cards.changed == 0
    assert await store.cards.matching(["text:00000000-0000-4000-8000-000000000000"])


async def test_a_refused_part_does_not_stop_the_others(central, store, down):
    central.faults = Faults(deny="can_view_devices")
    report = await down.pull()
    assert await store.cards.count() == 40
    assert "can_view_devices" in report.problems[0]


async def test_a_device_goes_after_two_pulls_without_it(central, store, down):
    await down.pull()
    central.tables.devices.remove(103)
    await down.pull()
    assert await store.devices.get(103) is not None
    await down.pull()
    assert await store.devices.get(103) is None


async def test_a_cursor_that_turns_back_ends_the_walk(central, store, down):
    for number in range(150):
        central.tables.devices.put({"id": 10_000 + number, "name": f"D{number}"})
    real = central.tables.devices.older_than
    central.tables.devices.older_than = lambda *args, **kwargs: replace(real(*args, **kwargs), next_cursor=20_000)
    report = await down.pull()
    assert report.problems == ("devices: the cursor does not go to older records",)
    assert await store.devices.get(101) is not None
