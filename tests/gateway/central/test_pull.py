"""Down-sync against the simulated central and a real store."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from waiting import until
from wired import down_sync

from gateway.central.central_link import pulled_text
from gateway.central.field_map import CardFieldMap, map_card
from gateway.domain.credentials import CardStatus
from gateway.domain.errors import CentralUnavailable, StoreError
from gateway.domain.events import EventKind
from gateway.runtime.clock import SystemClock
from gateway.store import EventFilter, KnownRecord, StoredCard
from simulation.far_ends.central import CentralAccount, ErrorKind, Faults
from simulation.far_ends.central.answers import Refusal


@pytest.fixture
def down(client, store):
    return down_sync(client=client, store=store, clock=SystemClock())


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


@pytest.mark.parametrize(("cap", "limits"), [(1000, [500]), (200, [500, 200, 200]), (100, [500, 100, 100, 100])])
async def test_the_largest_page_that_central_gives_is_asked_for(central, store, down, cap, limits):
    central.tables.page_cap = cap
    for number in range(250):
        central.tables.cards.put({"id": 10_000 + number, "number": str(number)})
    assert (await down.pull()).cards.cards == 290
    asked = [json.loads(one.body)["page_limit"] for one in central.requests if one.path == "/v1/access/list"]
    assert asked[: len(limits)] == limits if cap < 290 else asked == [500, 500]
    assert await store.cards.count() == 290


async def test_a_page_that_central_refuses_is_asked_for_smaller(central, store, down):
    real, asked = central.tables.cards.page, []

    def refusing(*args, **kwargs):
        asked.append(kwargs["limit"])
        if kwargs["limit"] > 250:
            raise Refusal(400, "page_limit: at most 250")
        return real(*args, **kwargs)

    central.tables.page_cap = 5000
    central.tables.cards.page = refusing
    for _ in range(2):
        assert (await down.pull()).problems == ()
    assert asked == [500, 250, 250, 250, 250]


def limits_asked(central, path):
    return [json.loads(one.body)["page_limit"] for one in central.requests if one.path == path]


async def test_a_page_that_does_not_come_in_time_is_asked_for_smaller_and_larger_again_later(central, connect, store):
    down = down_sync(client=connect(timeout_seconds=0.4), store=store, clock=SystemClock())
    central.faults = Faults(paths="/v1/access/list", record_seconds=0.001)
    report = await down.pull()
    assert (report.cards.cards, report.problems) == (40, ())
    assert limits_asked(central, "/v1/access/list")[-1] <= 250
    central.faults = Faults()
    central.requests.clear()
    while 500 not in limits_asked(central, "/v1/access/list"):
        assert (await down.pull()).problems == ()
        assert len(central.requests) < 1000, "the size was never found again"


async def test_devices_that_do_not_come_in_time_are_asked_for_fewer_at_once(central, connect, store):
    down = down_sync(client=connect(timeout_seconds=0.4), store=store, clock=SystemClock())
    central.faults = Faults(paths="/v1/device/list", record_seconds=0.006)
    report = await down.pull()
    assert (report.devices, report.problems) == (3, ())
    assert limits_asked(central, "/v1/device/list")[-1] <= 50


async def test_the_size_of_pages_is_not_what_a_central_minds_that_is_away(central, connect, store):
    down = down_sync(client=connect(timeout_seconds=0.8), store=store, clock=SystemClock())
    await down.pull()
    central.requests.clear()
    central.faults = Faults(latency_seconds=30)
    with pytest.raises(CentralUnavailable):
        await down.pull()
    central.faults = Faults()
    await down.pull()
    assert limits_asked(central, "/v1/access/list")[-1] == 500


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


async def test_pages_that_are_as_they_were_are_not_read_again(central, store, down):
    await down.pull()
    await down.pull()
    compared = []
    real = store.cards.records_of

    async def records_of(card_ids):
        compared.append(1)
        return await real(card_ids)

    store.cards.records_of = records_of
    report = await down.pull()
    assert (report.cards.cards, report.problems, compared) == (40, (), [])
    central.tables.cards.change(4002, {"status": "suspended"})
    assert (await down.pull()).cards.changed == 1
    assert compared == [1]
    central.tables.cards.remove(4003)
    assert (await down.pull()).cards.removed == 1


async def test_a_page_is_read_again_when_somebody_else_changed_a_card(central, store, down):
    """The card that was changed here becomes central's once more, though central's page is as it was."""
    for _ in range(2):
        await down.pull()
    known = await store.cards.get(4002)
    await store.cards.apply(put=[replace(known, record='{"id":4002,"number":"ours"}')], now=1)
    assert (await down.pull()).cards.changed == 1
    assert (await store.cards.get(4002)).record == known.record


async def test_a_card_that_was_changed_while_its_list_was_read_is_looked_at_again(central, store, client, down):
    for _ in range(2):
        await down.pull()
    known = await store.cards.get(4002)
    real = client.call

    async def call(method, path, body, **more):
        if path == "/v1/access/list" and body["page"] == 2:
            async with store.cards.turn:  # the page with the card has been dealt with by then
                await store.cards.apply(put=[replace(known, record='{"id":4002,"number":"ours"}')], now=1)
        return await real(method, path, body, **more)

    client.call = call
    assert (await down.pull()).cards.changed == 0
    client.call = real
    assert (await down.pull()).cards.changed == 1
    assert (await store.cards.get(4002)).record == known.record


async def test_the_sites_own_devices_keep_their_names_and_kinds(central, store, down):
    await store.devices.declare([KnownRecord(101, "Gate A", "modbus-gate", at_site=True)], now=1)
    await down.pull()
    device = await store.devices.get(101)
    assert (device.name, device.kind, device.at_site) == ("Gate A", "modbus-gate", True)
    assert json.loads(device.record)["name"] == "Device 101"


def paths(central, path):
    return sum(request.path == path for request in central.requests)


async def test_cards_that_are_gone_are_asked_for_one_by_one_and_go(central, store, down, events_of):
    await down.pull()
    drop_cards(central, 4)
    central.requests.clear()
    report = await down.pull()
    assert report.cards.removed == 4
    assert await store.cards.count() == 36
    assert paths(central, "/v1/access/list") == 2
    assert paths(central, "/v1/access") == 6  # the four, and one before and after that central has
    assert not await events_of(EventKind.SWEEP_SUSPENDED)
    assert "4 removed" in (await events_of(EventKind.CARDS_CHANGED))[0].description


async def test_a_large_removal_waits_for_the_next_pull_and_is_told_once(central, store, down, events_of):
    await down.pull()
    drop_cards(central, 20)
    report = await down.pull()
    assert (report.cards.removed, report.cards.held_back) == (0, 20)
    assert await store.cards.count() == 40
    drop_cards(central, 1)
    report = await down.pull()
    assert (report.cards.removed, report.cards.held_back) == (20, 1)
    report = await down.pull()
    assert (report.cards.removed, report.cards.held_back) == (1, 0)
    assert await store.cards.count() == 19
    assert len(await events_of(EventKind.SWEEP_SUSPENDED)) == 1


async def test_a_large_removal_waits_across_a_restart(central, store, client, down):
    await down.pull()
    drop_cards(central, 20)
    await down.pull()
    again = down_sync(client=client, store=store, clock=SystemClock())
    assert (await again.pull()).cards.removed == 20


@pytest.mark.parametrize(
    "fault",
    [{"count_off_by": 3}, {"count_off_by": -3}, {"truncate_to": 5}, {"truncate_to": 0}],
)
async def test_a_list_that_contradicts_itself_takes_no_card_that_central_still_has(
    central, store, down, events_of, fault
):
    await down.pull()
    drop_cards(central, 2)
    central.faults = Faults(paths="/v1/access", **fault)
    for _ in range(3):
        assert "count" in (await down.pull()).problems[0].text
        assert set(await store.cards.central_ids()) >= set(central.cards)
    assert [event for event in await events_of(EventKind.SWEEP_SUSPENDED) if "count" in event.description]
    central.faults = Faults()
    await down.pull()
    assert set(await store.cards.central_ids()) == set(central.cards)


@pytest.mark.parametrize("off_by", [3, -3])
async def test_a_card_goes_by_its_own_404_though_the_count_is_always_odd(central, store, down, off_by):
    central.faults = Faults(paths="/v1/access", count_off_by=off_by)
    await down.pull()
    for removed in (2, 8, 20):
        drop_cards(central, removed)
        central.requests.clear()
        for _ in range(2):  # a large removal needs a second list
            assert "the count says" in (await down.pull()).problems[0].text
        assert set(await store.cards.central_ids()) == set(central.cards)
        assert paths(central, "/v1/access") <= 2 * removed + 2


async def test_an_empty_list_is_told_and_costs_a_few_single_requests(central, store, down, events_of):
    made_in_bulk(central, "card", 600)
    await down.pull()
    real = central.tables.cards.page
    central.tables.cards.page = lambda matches, **more: real(lambda record: False, **more)
    asked = []
    for _ in range(4):
        central.requests.clear()
        assert (await down.pull()).cards.removed == 0
        asked.append(paths(central, "/v1/access"))
    assert asked[0] == 0
    assert max(asked) < 20
    assert "640 cards fewer" in (await events_of(EventKind.SWEEP_SUSPENDED))[-1].description
    assert await store.cards.count() == 640
    central.tables.cards.page = real
    assert (await down.pull()).problems == ()


@pytest.mark.parametrize("kept", [0, 300])
async def test_many_cards_go_with_the_second_list_and_a_bounded_sample(central, store, down, kept):
    made_in_bulk(central, "card", 560)
    await down.pull()
    drop_cards(central, 600 - kept)
    await down.pull()
    assert await store.cards.count() == 600
    central.requests.clear()
    assert (await down.pull()).cards.removed == 600 - kept
    assert paths(central, "/v1/access") < 150
    assert set(await store.cards.central_ids()) == set(central.cards)


async def test_of_many_cards_that_a_list_lacks_those_stay_that_central_still_has(central, store, down):
    """The list lacks half of the cards; central has deleted some of these, and still has most."""
    made_in_bulk(central, "card", 560)
    await down.pull()
    hidden = {number for number in central.cards if number % 2}
    for number in sorted(hidden)[:60]:
        central.tables.cards.remove(number)
    real = central.tables.cards.page
    central.tables.cards.page = lambda matches, **more: real(lambda record: not record["id"] % 2, **more)
    for _ in range(8):
        central.requests.clear()
        report = await down.pull()
        assert set(await store.cards.central_ids()) >= set(central.cards)
        assert paths(central, "/v1/access") < 150
    assert "still has" in report.problems[0].text


async def test_deletions_in_every_page_count_as_the_page_is_read(central, store, down):
    """Of a list by falling ids, and of one by rising ids, also where pages are as they were."""
    central.tables.page_cap = 50
    made_in_bulk(central, "card", 560)
    for rising in (False, True):
        real = central.tables.cards.page
        if rising:
            ordered = sorted(central.cards)

            def page(matches, *, page, limit, shift=0, ordered=ordered, real=real):
                chosen = [number for number in ordered[(page - 1) * limit : page * limit] if number in central.cards]
                return replace(
                    real(matches, page=page, limit=limit), records=[dict(central.cards[number]) for number in chosen]
                )

            central.tables.cards.page = page
        for _ in range(2):
            await down.pull()
        number = sorted(central.cards, reverse=not rising)[70]
        central.tables.cards.remove(number)
        async with asyncio.TaskGroup() as group:
            pulling = group.create_task(down.pull())
            seen = 0
            while await store.cards.get(number) is not None:
                assert not pulling.done()
                seen = down.progress.received if down.progress else 0
                await asyncio.sleep(0)
        assert seen < 250
        central.tables.cards.page = real


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


async def test_the_next_page_is_fetched_while_one_is_taken_over(central, store, down):
    """And no page beyond that one: what came waits in memory."""
    central.tables.page_cap = 25

    def pages():
        return [json.loads(one.body)["page"] for one in central.requests if one.path == "/v1/access/list"]

    async with asyncio.TaskGroup() as group:
        async with store.cards.turn:
            pulling = group.create_task(down.pull())
            await until(lambda: pages() == [1, 2])
            assert await store.cards.count() == 0
        report = await pulling
    assert (report.cards.added, pages()) == (40, [1, 2, 3])


async def test_a_page_that_the_disk_refuses_ends_the_walk(central, store, down):
    central.tables.page_cap = 25
    real = store.cards.apply

    async def refusing(**changes):
        raise StoreError("the disk is full")

    store.cards.apply = refusing
    with pytest.raises(StoreError, match="full"):
        await down.pull()
    store.cards.apply = real
    assert (await down.pull()).cards.added == 40


def without_single_cards(central):
    """As a server that has no such operation."""

    table = central.tables.cards
    real = table.remove

    def find(_number):
        raise Refusal(404, "no such operation")

    def remove(number):
        del table.find
        real(number)
        table.find = find

    table.find, table.remove = find, remove


async def test_a_card_that_is_there_but_not_listed_stays_and_is_told(central, store, down):
    await down.pull()
    real = central.tables.cards.page

    def hiding(*args, **kwargs):
        batch = real(*args, **kwargs)
        records = [record for record in batch.records if record["id"] not in (4001, 4002)]
        return replace(batch, records=records, count=batch.count - 2)

    central.tables.cards.page = hiding
    central.tables.cards.change(4001, {"status": "lost"})
    central.tables.cards.remove(4003)
    report = await down.pull()
    assert report.cards.removed == 1
    assert "2 that central still has" in report.problems[0].text
    assert (await store.cards.get(4001)).card.status is CardStatus.LOST


async def test_without_an_answer_for_single_cards_two_looks_must_agree(central, store, down):
    await down.pull()
    drop_cards(central, 4)
    without_single_cards(central)
    central.requests.clear()
    report = await down.pull()
    assert report.cards.removed == 4
    assert paths(central, "/v1/access/list") == 4


async def test_what_central_says_of_single_cards_counts_only_while_it_finds_others(central, store, down):
    """It breaks while they are asked for: from then on it has none, which proves nothing."""
    await down.pull()
    drop_cards(central, 2)
    real, asked = central.tables.cards.find, []

    def failing(number):
        asked.append(number)
        if len(asked) > 1:
            raise Refusal(404, "access card not found")
        return real(number)

    central.tables.cards.find = failing
    central.requests.clear()
    assert (await down.pull()).cards.removed == 2
    assert paths(central, "/v1/access/list") == 4


async def test_a_list_that_is_empty_takes_no_card_that_central_still_has(central, store, down):
    """As an account is answered that may see single cards and, by a fault of central's, none in a list."""
    await down.pull()
    real = central.tables.cards.page

    central.tables.cards.page = lambda matches, **more: real(lambda record: False, **more)
    for _ in range(4):
        report = await down.pull()
        assert report.cards.removed == 0
    assert "still has" in report.problems[0].text
    assert await store.cards.count() == 40
    central.tables.cards.page = real
    assert (await down.pull()).problems == ()


async def test_a_later_page_that_is_too_large_is_asked_for_smaller(central, store, down, monkeypatch):
    for number in range(300):
        note = "x" * (4_000 if number < 100 else 100)
        central.tables.cards.put({"id": 10_000 + number, "number": str(number), "note": note})
    central.tables.page_cap = 200
    monkeypatch.setattr("gateway.central.client.connections.BODY_LIMIT", 300_000)
    assert "larger than" in (await down.pull()).problems[0].text
    while (report := await down.pull()).problems:
        assert "larger than" in report.problems[0].text
        assert paths(central, "/v1/access/list") < 60
    assert await store.cards.count() == 340


async def test_a_failing_central_does_not_make_pages_small_for_good(central, store, down):
    central.faults = Faults(paths="/v1/access/list", error=ErrorKind.JSON)
    assert (await down.pull()).problems
    central.faults = Faults()
    central.requests.clear()
    assert (await down.pull()).problems == ()
    first = next(request for request in central.requests if request.path == "/v1/access/list")
    assert '"page_limit": 500' in first.body


async def test_looks_that_disagree_remove_nothing(central, store, down):
    await down.pull()
    drop_cards(central, 2)
    without_single_cards(central)
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
    assert "disagree" in report.problems[0].text
    assert (await down.pull()).cards.removed == 3


async def test_cards_made_at_the_site_are_not_swept(store, down):
    record = {"id": 2_000_000_001, "number": "local"}
    card = map_card(2_000_000_001, record, CardFieldMap(), SystemClock().wall().as_datetime().tzinfo)
    await store.cards.apply(put=[StoredCard(card, json.dumps(record))], now=1)
    await down.pull()
    assert await store.cards.get(2_000_000_001) is not None


async def test_cards_without_a_credential_are_counted_also_after_a_restart(central, store, client, down):
    central.tables.cards.put({"id": 10_000, "holder_name": "No card yet"})
    central.tables.cards.put({"id": 10_001, "number": "5", "status": "sparkling"})
    report = await down.pull()
    assert (report.cards.without_credential, report.cards.unread) == (1, 1)
    again = down_sync(client=client, store=store, clock=SystemClock())
    assert (await again.pull()).cards.without_credential == 1
    central.tables.cards.change(10_000, {"number": "77"})
    assert (await again.pull()).cards.without_credential == 0


async def test_a_card_with_what_is_no_number_or_letter_keeps_no_other_from_coming(central, store, down):
    central.tables.cards.change(4001, {"valid_until": float("nan"), "status": "active"})
    central.tables.cards.change(4002, {"credit": float("inf"), "holder_name": "Zo\ud83d", "status": "active"})
    central.tables.cards.change(4003, {"status": "blocked"})
    report = await down.pull()
    assert (report.cards.cards, report.cards.unread, report.problems) == (40, 1, ())
    cards = [(await store.cards.get(number)).card for number in (4001, 4002, 4003)]
    assert [card.status for card in cards] == [CardStatus.SUSPENDED, CardStatus.ACTIVE, CardStatus.BLOCKED]
    assert cards[1].holder == "Zo\ufffd"
    assert (await down.pull()).cards.changed == 0


async def test_another_field_map_reads_every_card_anew(central, store, client, down):
    await down.pull()
    again = down_sync(client=client, store=store, clock=SystemClock(), fields=CardFieldMap(printed=("uuid",)))
    assert (await again.pull()).cards.changed == 40
    assert (await again.pull()).cards.changed == 0
    assert await store.cards.matching(["text:00000000-0000-4000-8000-000000000000"])


async def test_a_refused_part_does_not_stop_the_others(central, store, down):
    central.faults = Faults(deny="can_view_devices")
    report = await down.pull()
    assert await store.cards.count() == 40
    assert "can_view_devices" in report.problems[0].text
    assert pulled_text(report) == "40 access cards, devices not yet, 1 cameras"


@pytest.mark.parametrize("fault", [{"deny": "can_view_access_cards"}, {"paths": "/v1/access", "error": "json"}])
async def test_what_a_list_brought_before_is_told_while_central_does_not_give_it(central, down, fault):
    assert pulled_text(await down.pull()) == "40 access cards, 3 devices, 1 cameras"
    central.faults = Faults(**fault)
    central.tables.devices.remove(103)
    report = await down.pull()
    assert pulled_text(report) == "40 access cards (not this time), 2 devices, 1 cameras"
    assert (report.cards.added, report.cards.changed, len(report.problems)) == (0, 0, 1)
    central.faults = Faults()
    assert pulled_text(await down.pull()) == "40 access cards, 2 devices, 1 cameras"


async def test_one_cause_is_told_once(central, connect, store):
    central.put_account(CentralAccount("gateway", "another password"))
    down = down_sync(client=connect(), store=store, clock=SystemClock())
    report = await down.pull()
    assert len(report.problems) == 1
    assert pulled_text(report) == "access cards not yet, devices not yet, cameras not yet"


async def test_a_device_goes_after_two_pulls_without_it(central, store, down):
    await down.pull()
    central.tables.devices.remove(103)
    await down.pull()
    assert await store.devices.get(103) is not None
    await down.pull()
    assert await store.devices.get(103) is None


def made_in_bulk(central, noun, how_many):
    for number in range(10_001, 10_001 + how_many):
        getattr(central.tables, f"{noun}s").put({"id": number, "name": f"{noun} {number}"})


@pytest.mark.parametrize("noun", ["device", "camera"])
async def test_a_list_that_shrinks_much_is_told_and_waits_across_a_restart(
    central, store, client, down, events_of, noun
):
    table, kept = getattr(central.tables, f"{noun}s"), getattr(store, f"{noun}s")
    made_in_bulk(central, noun, 8)
    await down.pull()
    for number in range(10_001, 10_006):
        table.remove(number)
    report = await down.pull()
    assert (report.devices_held_back + report.cameras_held_back, report.problems) == (5, ())
    (event,) = await events_of(EventKind.SWEEP_SUSPENDED)
    assert f"5 {noun}s fewer" in event.description
    assert await kept.get(10_001) is not None
    again = down_sync(client=client, store=store, clock=SystemClock())
    report = await again.pull()
    assert report.devices_held_back + report.cameras_held_back == 0
    assert [await kept.get(number) is not None for number in (10_001, 10_005, 10_006)] == [False, False, True]
    assert len(await events_of(EventKind.SWEEP_SUSPENDED)) == 1


async def test_a_list_that_shrinks_little_is_no_alarm(central, store, down, events_of):
    made_in_bulk(central, "device", 8)
    await down.pull()
    central.tables.devices.remove(10_001)
    assert (await down.pull()).devices_held_back == 0
    await down.pull()
    assert await store.devices.get(10_001) is None
    assert not await events_of(EventKind.SWEEP_SUSPENDED)


async def test_a_list_that_shrinks_much_and_comes_back_loses_nothing(central, store, down, events_of):
    made_in_bulk(central, "device", 8)
    await down.pull()
    listed = [dict(record) for record in central.tables.devices.values()]
    for _ in range(2):
        for record in listed:
            central.tables.devices.remove(record["id"])
        assert (await down.pull()).devices_held_back == 11
        for record in listed:
            central.tables.devices.put(record)
        assert (await down.pull()).devices_held_back == 0
    assert await store.devices.get(10_001) is not None
    assert len(await events_of(EventKind.SWEEP_SUSPENDED)) == 2


async def test_a_cursor_that_turns_back_ends_the_walk(central, store, down):
    for number in range(150):
        central.tables.devices.put({"id": 10_000 + number, "name": f"D{number}"})
    real = central.tables.devices.older_than
    central.tables.devices.older_than = lambda *args, **kwargs: replace(real(*args, **kwargs), next_cursor=20_000)
    report = await down.pull()
    assert [problem.text for problem in report.problems] == ["devices: the cursor does not go to older records"]
    assert await store.devices.get(101) is not None
