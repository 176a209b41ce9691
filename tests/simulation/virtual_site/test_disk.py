"""Power cuts: what survives is what SQLite had synced, with or without the commit that was under way."""

from __future__ import annotations

import asyncio
import random

import pytest

from gateway.domain.events import Event, EventKind
from gateway.store import Entry, EventFilter, Store
from simulation.virtual_site.disk import CutAt, Disk
from simulation.virtual_site.virtual_time import VirtualLoop


@pytest.fixture
def loop():
    loop = VirtualLoop()
    yield loop
    loop.close()


def entry(text):
    return Entry(events=(Event(EventKind.GATE_OPENED, 1, clock_trusted=True, text=text),))


async def texts(folder, disk):
    store = Store(folder=folder, site_name="", sends=False, connect=disk.connect)
    await store.open()
    page = await store.events.page(EventFilter(), limit=100)
    salvaged = store.salvaged
    await store.close()
    assert not salvaged, salvaged
    return [event.description for event in reversed(page.events)]


@pytest.mark.parametrize("kind", list(CutAt))
@pytest.mark.parametrize("seed", range(3))
def test_acknowledged_survives_and_nothing_is_damaged(loop, tmp_path, kind, seed):
    disk = Disk(base=tmp_path, dice=random.Random(seed), monotonic=loop.time)
    loop.work = disk

    async def live():
        store = Store(folder=disk.folder, site_name="", sends=False, connect=disk.connect)
        await store.open()
        for number in range(5):
            await store.journal.record(entry(f"event {number}"))
        cut = []
        if kind is CutAt.REST:
            disk.cut_now()
        else:
            disk.cut_at_next_commit(kind, lambda: cut.append(loop.time()))
            await store.journal.record(entry("in the cut"))
            assert cut
        await store.journal.record(entry("a ghost's"))
        await store.close()
        disk.restarted()
        return await texts(disk.folder, disk)

    found = loop.run_until_complete(live())
    assert found[:5] == [f"event {number}" for number in range(5)]
    assert found[5:] == (["in the cut"] if kind is CutAt.AFTER else [])


def test_a_hanging_disk_holds_writes_and_not_reads(loop, tmp_path):
    disk = Disk(base=tmp_path, dice=random.Random(1), monotonic=loop.time)
    loop.work = disk

    async def live():
        store = Store(folder=disk.folder, site_name="", sends=False, connect=disk.connect)
        await store.open()
        began = loop.time()
        disk.hangs_until = began + 10.0
        first = loop.create_task(store.journal.record(entry("first")))
        await asyncio.sleep(0.01)
        second = loop.create_task(store.journal.record(entry("second")))
        await store.events.page(EventFilter())
        assert loop.time() - began < 0.1
        await first
        assert loop.time() - began >= 10
        await second
        assert 10 <= loop.time() - began < 10.1
        await store.close()

    loop.run_until_complete(live())
