"""Commits and acknowledged events per second, beside bare sqlite3 with the same promise (WAL, FULL) in the same run."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import time
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from figures import show

from gateway.domain.credentials import Card
from gateway.domain.events import Event, EventKind
from gateway.store import Entry, EventFilter, Store, StoredCard
from gateway.store.outbox.rows import insert_outbox

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

SECONDS = 3.0
ENTRY = Entry(events=(Event(EventKind.VEHICLE_PASSED, 1, clock_trusted=True, text="A vehicle passed the lane."),))


@pytest.fixture
async def store(tmp_path):
    store = Store(folder=tmp_path, site_name="North", sends=True)
    await store.open()
    yield store
    await store.close()


def bare_commits(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE event (id INTEGER PRIMARY KEY AUTOINCREMENT, date_at INTEGER, text TEXT)")
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < SECONDS:
            connection.execute("INSERT INTO event (date_at, text) VALUES (?, ?)", (done, "A vehicle passed the lane."))
            done += 1
        return done / SECONDS


def written_bytes():
    """Bytes that this process has sent to the disk."""
    lines = Path("/proc/self/io").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("write_bytes")).split()[1])


async def events_per_second(store, writers):
    """Acknowledged events and commits per second, with the slowest acknowledgement of a hundred in ms."""
    waits: list[float] = []
    before, end = store.commits, time.perf_counter() + SECONDS

    async def write():
        while (start := time.perf_counter()) < end:
            await store.journal.record(ENTRY)
            waits.append(time.perf_counter() - start)

    await asyncio.gather(*(write() for _ in range(writers)))
    waits.sort()
    return len(waits) / SECONDS, (store.commits - before) / SECONDS, waits[int(len(waits) * 0.99)] * 1000


async def test_commits_and_events_per_second(store, tmp_path):
    bare = await asyncio.to_thread(bare_commits, tmp_path / "bare.db")
    print(f"\nbare sqlite3, WAL and FULL, one row each: {bare:,.0f} commits/s")
    for writers in (1, 2, 4, 8, 16, 32, 64, 256):
        written = written_bytes()
        events, commits, slow = await events_per_second(store, writers)
        written = (written_bytes() - written) / (events * SECONDS)
        print(f"{writers:4} writers: {events:8,.0f} events/s in {commits:6,.0f} commits/s, p99 {slow:.1f} ms")
        if writers <= 32:
            show("an event on the disk, by writers", 1000 / events, "ms", at=writers)
        if writers == 1:
            show("a commit alone", 1000 / events, "ms", peer=1000 / bare, beside="a bare commit", aim=1.3)
            show("written for an event, alone", written / 1000, "kB", aim=12)
    show("durable events under load", events, "events/s", peer=bare, beside="single commits", aim=5, more=True)
    show("written for an event under load", written / 1000, "kB", aim=12)
    assert events > bare


async def test_lag_of_the_loop_while_the_store_is_busy(store):
    """Measure the lag of callbacks while events, 100,000 cards, card look-ups and pages are asked for at once."""
    lags: list[float] = []
    ended = asyncio.Event()

    async def tick():
        while not ended.is_set():
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - start - 0.001)

    async def keep(act):
        while not ended.is_set():
            await act()

    looks: list[float] = []
    numbers = count(1)

    async def look():
        start = time.perf_counter()
        await store.cards.matching([f"text:{next(numbers) % 100_000}", "raw:26:1"])
        looks.append(time.perf_counter() - start)
        await asyncio.sleep(0.005)

    async def record():
        await store.journal.record(ENTRY)
        await asyncio.sleep(0.01)

    async def compare():
        await store.cards.records()
        await asyncio.sleep(0.5)

    cards = [StoredCard(Card(n, str(n), aliases=(f"text:{n}", f"raw:26:{n:X}")), "{}" * 50) for n in range(1, 100_001)]
    tasks = [asyncio.get_running_loop().create_task(task) for task in (tick(), keep(record), keep(look), keep(compare))]
    gc.freeze()  # the list itself is this test's; walking it is not the store's delay
    start = time.perf_counter()
    await store.cards.apply(put=cards, now=1)
    applied = time.perf_counter() - start
    await asyncio.sleep(2)
    ended.set()
    await asyncio.gather(*tasks)
    gc.unfreeze()
    for name, values in (("loop lag", lags), ("card look-up", looks)):
        values.sort()
        at = [values[int(len(values) * share)] * 1000 for share in (0.5, 0.99)]
        print(f"\n{name}: p50 {at[0]:.2f} ms, p99 {at[1]:.2f} ms, most {values[-1] * 1000:.2f} ms of {len(values)}")
    print(f"100,000 cards applied in one commit in {applied:.2f} s")


async def test_large_tables(store):
    """Pages, the outbox and deletions with 300,000 events and 100,000 outbox rows."""

    def fill(connection):
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) INSERT INTO event"
            " (device_id, type, category, subcategory, name, description, date_at, clock_trusted, lane_id, data)"
            " SELECT i % 20, 101, 1, 0, 'Vehicle arrived', 'A vehicle came to the lane.', i, 1, 'in', '{}' FROM n"
        )
        for number in range(100_000):
            insert_outbox(connection, kind="camera_event", record_id=number % 50_000, body="{}" * 100, now=number)

    await store.database.write(fill)

    async def timed(name, act):
        await act()
        start = time.perf_counter()
        result = await act()
        show(name, (time.perf_counter() - start) * 1000, "ms")
        return result

    await timed("newest page of all events", lambda: store.events.page(EventFilter()))
    await timed("newest page of one device", lambda: store.events.page(EventFilter(device_ids=(3,))))
    await timed("search that finds nothing", lambda: store.events.page(EventFilter(search="zzz")))
    rows = await timed("50 rows due of 100,000", lambda: store.outbox.due(now=1))
    await timed("books", store.outbox.books)

    async def drain():
        nonlocal rows
        for row in rows:
            await store.outbox.delivered(row, central_id=None)
        rows = await store.outbox.due(now=1)

    await timed("50 rows delivered one by one, and the next 50", drain)
    await store.database.write(lambda connection: connection.execute("UPDATE outbox SET parked = 1 WHERE id <= 50000"))
    await timed("50 rows due behind 50,000 parked", lambda: store.outbox.due(now=1))
    await timed("next due behind 50,000 parked", store.outbox.next_due)

    def delete(connection):
        connection.execute("DELETE FROM event WHERE id IN (SELECT id FROM event ORDER BY id LIMIT 1000)")

    await timed("1,000 events deleted", lambda: store.database.write(delete))
    assert (await store.events.page(EventFilter())).count == 298_000
    print()
