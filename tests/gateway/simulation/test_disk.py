"""Power cuts: what survives is what SQLite had synced, with or without the commit that was under way."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.domain.events import Event, EventKind
from gateway.simulation.disk import CutAt, Disk
from gateway.simulation.virtual_time import VirtualLoop
from gateway.store import Entry, EventFilter, Store


@pytest.fixture
def loop():
    loop = VirtualLoop()
    yield loop
    loop.close()


def entry(text):
    return Entry(events=(Event(EventKind.GATE_OPENED, 1, clock_trusted=True, description=text),))


async def texts(folder):
    store = Store(folder=folder, site_name="", sends=False)
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
        store = Store(folder=disk.folder, site_name="", sends=False)
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
        return await texts(disk.folder)

    found = loop.run_until_complete(live())
    assert found[:5] == [f"event {number}" for number in range(5)]
    assert found[5:] == (["in the cut"] if kind is CutAt.AFTER else [])


def test_a_hanging_disk_holds_writes_and_not_reads(loop, tmp_path):
    disk = Disk(base=tmp_path, dice=random.Random(1), monotonic=loop.time)
    disk.hangs_until = 10.0
    writing, reading = ThreadPoolExecutor(1), ThreadPoolExecutor(2)
    _, seconds = disk.do(lambda: None, writing)
    assert seconds >= 10
    _, after = disk.do(lambda: None, writing)
    assert after >= seconds
    _, seconds = disk.do(lambda: None, reading)
    assert seconds < 0.1
