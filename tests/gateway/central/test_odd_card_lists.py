"""Card lists of several pages, with odd records in them and with faults in the middle."""

from __future__ import annotations

import asyncio
from zoneinfo import ZoneInfo

import pytest
from waiting import until
from wired import down_sync

from gateway.domain.errors import CentralUnavailable
from gateway.domain.plates import skeleton
from gateway.runtime.clock import SystemClock
from simulation.far_ends.central import ErrorKind, Faults

PAGE = 30
ODD = (
    {"number": "Ünïcode ", "holder_name": "Zoë \u2028"},
    {"number": "aB3dq_Zw", "pin": "1234", "zones": [{"id": 3, "name": "P2"}, "P1"], "duress": "yes"},
    {"number": 17, "status": "who knows", "valid_until": "not a date", "deep": {"b": [1, {"a": None}], "a": 1.5e300}},
    {"plate": "AB-123 CD", "valid_until": "2031-05-05", "schedules": ["night"], "customer_id": 12345678901234567890},
    {"note": "no reading can match this one"},
)


@pytest.fixture(autouse=True)
def _small_pages(central):
    central.tables.page_cap = PAGE


def list_more(central, number=100):
    for place in range(number):
        fields = ODD[place % len(ODD)]
        central.tables.cards.put({"id": 10_000 + place, **fields})


def pull_of(client, store, **changed):
    return down_sync(client=client, store=store, clock=SystemClock(), **changed)


async def indexed(store, *aliases):
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        building = group.create_task(store.cards.run())
        await until(lambda: store.cards.is_indexed)
        building.cancel()
    return store.cards.at_once(aliases)


async def test_odd_records_are_cards_as_far_as_they_can_be_read(client, central, store):
    list_more(central)
    report = await pull_of(client, store, zone=ZoneInfo("America/Toronto")).pull()
    cards = report.cards
    assert (report.problems, cards.cards, cards.added, cards.unread, cards.without_credential) == ((), 140, 140, 20, 20)
    assert {await store.cards.get(10_000 + place) is not None for place in range(100)} == {True}
    assert (await store.cards.get(10_000)).card.holder == "Zoë"
    duress = (await store.cards.get(10_001)).card
    assert (duress.pin, duress.zones, duress.duress) == ("1234", ("3", "P2", "P1"), True)
    assert (await store.cards.get(10_002)).card.unread == "status, valid_until"


async def test_the_index_in_memory_has_them_too(client, central, store):
    assert await indexed(store, "text:00111572") == ()
    list_more(central)
    await pull_of(client, store).pull()
    (found,) = await indexed(store, "text:00111572")
    assert found.card_id == 4001
    assert len(await indexed(store, "plate:AB123CD", f"near:{skeleton('AB123CD')}")) == 8
    await store.cards.apply(remove=[4001], now=1)
    assert await indexed(store, "text:00111572") == ()


async def test_what_came_before_a_fault_of_central_stays(client, central, store):
    list_more(central)

    def told(received, count):
        if received >= 3 * PAGE:
            central.faults = Faults(paths="/v1/access/list", error=ErrorKind.TEXT)

    with pytest.raises(CentralUnavailable):
        await pull_of(client, store).card_pull.pull(told)
    assert await store.cards.count() >= 3 * PAGE


async def test_a_list_that_contradicts_itself_takes_nothing_away(client, central, store):
    central.tables.page_cap = 100
    await pull_of(client, store).pull()
    central.tables.page_cap = PAGE
    central.tables.cards.remove(4001)
    list_more(central)

    def told(received, count):
        central.faults = Faults(paths="/v1/access/list", truncate_to=7)

    report = await pull_of(client, store).card_pull.pull(told)
    assert report.problem
    assert await store.cards.get(4001) is not None
