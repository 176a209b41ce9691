"""Long lists are made ready in a process of their own: the same cards come of it, whatever becomes of that process."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from datetime import UTC, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from waiting import until
from wired import down_sync

from gateway.central.pull import card_pages
from gateway.central.pull.card_pages import CardPages
from gateway.central.pull.cards import listed_elsewhere
from gateway.central.pull.field_map import CardFieldMap
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


@pytest.fixture
def apart(monkeypatch, central):
    """Every list of more than a page is long; gives the processes that were started."""
    central.tables.page_cap = PAGE
    monkeypatch.setattr(card_pages, "WORTH_A_PROCESS", 1)
    started, start = [], card_pages.start_child

    async def noted(*args, **kwargs):
        started.append(await start(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(card_pages, "start_child", noted)
    return started


def list_more(central, number=100):
    for place in range(number):
        fields = ODD[place % len(ODD)]
        central.tables.cards.put({"id": 10_000 + place, **fields})


def rows(store):
    with closing(sqlite3.connect(store.database.path.with_name("cards.db"))) as connection:
        return [
            list(connection.execute(sql))
            for sql in (
                "SELECT id, number, status, valid_from, valid_until, holder, facts, record FROM card ORDER BY id",
                "SELECT alias, card_id FROM card_alias ORDER BY alias, card_id",
            )
        ]


def pull_of(client, store, **changed):
    return down_sync(client=client, store=store, clock=SystemClock(), **changed)


async def indexed(store, *aliases):
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        building = group.create_task(store.cards.run())
        await until(lambda: store.cards.is_indexed)
        building.cancel()
    return store.cards.at_once(aliases)


async def test_the_same_cards_come_of_it(client, central, store, apart, monkeypatch):
    list_more(central)
    zone = ZoneInfo("America/Toronto")
    first = await pull_of(client, store, zone=zone).pull()
    assert (len(apart), first.problems, first.cards.cards, first.cards.added) == (1, (), 140, 140)
    assert apart[0].returncode == -signal.SIGKILL
    there = rows(store)
    asked = [one for one in central.requests if one.path == "/v1/access/list"]
    central.requests.clear()
    monkeypatch.setattr(card_pages, "WORTH_A_PROCESS", 10_000)
    again = pull_of(client, store, zone=zone)
    await again.anew.ask()
    here = await again.pull()
    assert len(apart) == 1
    assert rows(store) == there
    assert (here.cards.unread, here.cards.without_credential) == (first.cards.unread, first.cards.without_credential)
    assert first.cards.unread == first.cards.without_credential == 20
    again = [one for one in central.requests if one.path == "/v1/access/list"]
    assert [one.body for one in asked] == [one.body for one in again]


@pytest.mark.long("a child process for each list")
async def test_the_index_in_memory_has_them_too(client, central, store, apart):
    assert await indexed(store, "text:00111572") == ()
    list_more(central)
    await pull_of(client, store).pull()
    assert apart
    (found,) = await indexed(store, "text:00111572")
    assert found.card_id == 4001
    assert len(await indexed(store, "plate:AB123CD", f"near:{skeleton('AB123CD')}")) == 8
    await store.cards.apply(remove=[4001], now=1)
    assert await indexed(store, "text:00111572") == ()


async def test_a_process_that_ends_in_the_middle_is_not_missed(client, central, store, apart):
    list_more(central)

    def told(received, count):
        if apart:
            apart[0].kill()

    report = await pull_of(client, store).card_pull.pull(told)
    assert (len(apart), report.problem, report.cards) == (1, "", 140)
    assert apart[0].returncode == -signal.SIGKILL
    assert {row[0] for row in rows(store)[0]} == set(central.cards)


@pytest.mark.long("a child process for each list")
async def test_a_process_that_hangs_is_not_waited_for_long(client, central, store, apart, monkeypatch):
    list_more(central)

    def told(received, count):
        if apart and apart[0].returncode is None:
            apart[0].send_signal(signal.SIGSTOP)
            monkeypatch.setattr(card_pages, "PAGE_SECONDS", 0.1)

    report = await pull_of(client, store).card_pull.pull(told)
    assert (len(apart), report.problem, report.cards) == (1, "", 140)
    assert apart[0].returncode == -signal.SIGKILL


async def test_a_machine_that_starts_no_process_makes_them_here(client, central, store, apart, monkeypatch):
    async def refused(*args, **kwargs):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(card_pages, "start_child", refused)
    report = await pull_of(client, store).pull()
    assert (report.problems, report.cards.cards) == ((), 40)


async def test_another_process_would_not_know_this_zone(client, central, store, apart):
    report = await pull_of(client, store, zone=timezone(timedelta(hours=3))).pull()
    assert (apart, report.problems, report.cards.cards) == ([], (), 40)


@pytest.mark.long("a child process for each list")
async def test_what_came_before_a_fault_of_central_stays(client, central, store, apart):
    list_more(central)

    def told(received, count):
        if received >= 3 * PAGE:
            central.faults = Faults(paths="/v1/access/list", error=ErrorKind.TEXT)

    with pytest.raises(CentralUnavailable):
        await pull_of(client, store).card_pull.pull(told)
    assert await store.cards.count() >= 3 * PAGE
    assert apart[0].returncode == -signal.SIGKILL


@pytest.mark.long("a child process for each list")
async def test_a_list_that_contradicts_itself_takes_nothing_away(client, central, store, apart):
    central.tables.page_cap = 100
    await pull_of(client, store).pull()
    central.tables.page_cap = PAGE
    assert not apart
    central.tables.cards.remove(4001)
    list_more(central)

    def told(received, count):
        central.faults = Faults(paths="/v1/access/list", truncate_to=7)

    report = await pull_of(client, store).card_pull.pull(told)
    assert apart
    assert report.problem
    assert await store.cards.get(4001) is not None


async def test_a_page_that_is_none_is_no_page(apart):
    pages = CardPages(fields=CardFieldMap(), zone=UTC, make=listed_elsewhere)
    pages.send(b"{}")
    assert await pages.read() is None
    await pages.expect(1)
    try:
        for raw in (
            b"",
            b"[1]",
            b"\xff",
            b'{"success": true, "access_cards": {}}',
            b'{"access_cards": [], "error": "no"}',
            b'{"access_cards": [], "success": false}',
            b'{"success": true, "access_cards": [nan]}',
            b'{"success": true, "access_cards": ' + b"[" * 200 + b"]" * 200 + b"}",
        ):
            pages.send(raw)
            assert await pages.read() is None
        assert pages.is_up
        whole = {
            "success": True,
            "count": 9,
            "access_cards": [{"id": 7, "number": "1"}, 3, {"id": 7, "number": "2"}, {"id": "8"}],
        }
        pages.send(b"[]")
        pages.send(json.dumps(whole).encode())
        assert await pages.read() is None
        page = await pages.read()
        assert (page.ids, page.count) == ((7, None, 7, 8), 9)
        assert [(number, listed.record) for number, listed in page.made.items()] == [
            (7, {"id": 7, "number": "1"}),
            (8, {"id": "8"}),
        ]
    finally:
        await pages.close()
    assert not pages.is_up
