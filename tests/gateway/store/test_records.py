from __future__ import annotations

import pytest

from gateway.store import KnownRecord
from gateway.store.outbox.record_kinds import record_text

CENTRALS = {"name": "Central's", "x": 1}


@pytest.fixture(params=["devices", "cameras"])
def records(store, request):
    return getattr(store, request.param)


def at_site(number, name="Gate", record="{}"):
    return KnownRecord(id=number, name=name, kind="", at_site=True, record=record)


def of_central(number):
    return KnownRecord(id=number, name="Central's", kind="", at_site=False, record=record_text(CENTRALS))


async def test_what_the_site_declares_is_there_and_goes_with_it(records):
    await records.declare([at_site(1), at_site(2)], now=1)
    assert [item.id for item in await records.all()] == [1, 2]
    await records.declare([at_site(2, "Renamed")], now=2)
    assert await records.all() == (at_site(2, "Renamed"),)


async def test_centrals_record_is_kept_beside_the_sites_name(records):
    await records.declare([at_site(1)], now=1)
    await records.pulled({1: CENTRALS, 5: CENTRALS}, removed=(), now=2)
    assert await records.get(1) == at_site(1, record=record_text(CENTRALS))
    assert await records.get(5) == of_central(5)
    await records.declare([at_site(1, "New")], now=3)
    assert await records.get(1) == at_site(1, "New", record=record_text(CENTRALS))
    assert await records.get(5) == of_central(5)


async def test_what_leaves_the_site_stays_when_central_has_it(records):
    await records.pulled({1: CENTRALS}, removed=(), now=1)
    await records.declare([at_site(1)], now=2)
    await records.declare([], now=3)
    assert (await records.get(1)).at_site is False
    await records.pulled({}, removed=[1], now=4)
    assert await records.get(1) is None


async def test_what_central_removes_stays_at_the_site_without_its_record(records):
    await records.declare([at_site(1)], now=1)
    await records.pulled({1: CENTRALS, 2: CENTRALS}, removed=(), now=2)
    await records.pulled({}, removed=[1, 2, 3], now=3)
    assert await records.all() == (at_site(1),)


async def test_whose_record_it_is_does_not_depend_on_the_flag_handed_in(records):
    await records.pulled({1: CENTRALS}, removed=(), now=1)
    await records.declare([of_central(2)], now=2)
    assert [(item.id, item.at_site) for item in await records.all()] == [(1, False), (2, True)]


async def test_pages_by_cursor_and_by_offset(records):
    await records.declare([at_site(n, f"Gate {n}") for n in range(1, 8)], now=1)
    page, count, cursor = await records.page(limit=3)
    assert ([item.id for item in page], count, cursor) == ([7, 6, 5], 7, 5)
    page, count, cursor = await records.page(before=5, limit=4)
    assert ([item.id for item in page], count, cursor) == ([4, 3, 2, 1], 7, None)
    page, _, _ = await records.page(offset=5, limit=3)
    assert [item.id for item in page] == [2, 1]
    assert await records.page(limit=0) == ((), 7, None)
    page, count, _ = await records.page(search="gate 3")
    assert ([item.id for item in page], count) == ([3], 1)


@pytest.mark.parametrize("search", ["50 %", "a_b", "back\\slash", "'"])
async def test_a_search_means_its_characters(records, search):
    await records.declare([at_site(1, f"x{search}y"), at_site(2, "x50 y axb")], now=1)
    page, count, _ = await records.page(search=search)
    assert ([item.id for item in page], count) == ([1], 1)
