"""100,000 cards fetched cold, and with nothing changed, beside a bare loop that only fetches the same pages.

The second peer is that loop and the bare writing of the rows that the cold fetch left, one after the other: what is
kept on disk has to be written by whoever fetches it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest
from figures import show
from loop_watch import watch_callbacks
from wired import down_sync

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.runtime.clock import SystemClock
from gateway.runtime.process_settings import set_aside
from gateway.store import Store
from gateway.store.engine.migrations import migrate, migrations

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

CARDS = 100_000
PAGE = 500
AIM_SECONDS = 40.0
AIM_SHARE = 1.5  # with nothing changed, of the bare pages
AIM_LAG = 0.01
WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def resident():
    """Resident MiB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def spent():
    """Seconds of processor that this process has had, its threads included, and those that it has waited for."""
    return [used.ru_utime + used.ru_stime for used in map(resource.getrusage, WHO)]


async def watched(act):
    """Seconds, CPU seconds here and in processes beside this one, p99 and most of the loop's lag, the longest callback,
    the most MiB beyond before, and p99 of the loop's own computing between two looks: others' use of the processors is
    not in it.
    """
    lags, computed, before = [], [], resident()
    most = before

    async def look():
        nonlocal most
        looked = 0.0
        while True:
            began, used = time.monotonic(), time.thread_time()
            await asyncio.sleep(0.001)
            lags.append(time.monotonic() - began - 0.001)
            computed.append(time.thread_time() - used)
            if began - looked > 0.05:
                looked = began
                most = max(most, resident())

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look())
        began, cpu = time.monotonic(), spent()
        with watch_callbacks(limit=AIM_LAG) as callbacks:
            given = await act()
        seconds, cpu = time.monotonic() - began, [now - then for now, then in zip(spent(), cpu, strict=True)]
        looking.cancel()
    held = callbacks.worst()
    own = p99(computed)
    return given, seconds, cpu, p99(lags), max(lags), held.seconds if held else 0.0, most - before, own


def p99(values):
    """The 99th percentile of these values."""
    return sorted(values)[int(len(values) * 0.99)]


async def bare(url):
    """Only the pages: asked for, read, and parsed."""
    async with aiohttp.ClientSession(url) as http:
        async with http.post("/v1/auth/login", json={"username": "gateway", "password": "demo"}) as answer:
            token = (await answer.json())["session"]
        page, records, requests = 0, 1, 0
        while records:
            page += 1
            asked = {"page": page, "page_limit": PAGE}
            async with http.post("/v1/access/list", json=asked, headers={"SessionID": token}) as answer:
                records = len(json.loads(await answer.read())["access_cards"])
            requests += 1
        return requests


def rows_of(path):
    """Return the contents of a file of cards, card by card: its row and those of its aliases."""
    with closing(sqlite3.connect(path)) as connection:
        aliases = {}
        for alias, number in connection.execute("SELECT alias, card_id FROM card_alias"):
            aliases.setdefault(number, []).append((alias, number))
        return [(row, aliases.get(row[0], [])) for row in connection.execute("SELECT * FROM card ORDER BY id")]


def bare_insert(path, rows):
    """Only the rows: as many to a commit as a page holds, each commit safe on disk."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        migrate(connection, migrations("cards"))
        places = ", ".join("?" * len(rows[0][0]))
        for start in range(0, len(rows), PAGE):
            page = rows[start : start + PAGE]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(f"INSERT INTO card VALUES ({places})", (row for row, _ in page))
            connection.executemany(
                "INSERT INTO card_alias VALUES (?, ?)", (pair for _, aliases in page for pair in aliases)
            )
            connection.execute("COMMIT")


async def test_a_sweep_of_100_000_cards(tmp_path):
    central = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "simulation.far_ends.central", "--port", "0", "--cards", str(CARDS)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        url = (await central.stdout.readline()).decode().split()[2].rstrip(",")
        clock = SystemClock()
        store = Store(folder=tmp_path, site_name="North", sends=True)
        await store.open()
        client = CentralClient(url=url, account=GatewayAccount("gateway", "demo"), clock=clock)
        down = down_sync(client=client, store=store, clock=clock)
        rows = []
        set_aside()  # as the gateway does when it starts

        async def insert():
            rows.extend(await asyncio.to_thread(rows_of, tmp_path / "cards.db"))
            return await watched(lambda: asyncio.to_thread(bare_insert, tmp_path / "bare.db", rows))

        async with asyncio.TaskGroup() as group:
            running = group.create_task(store.run())
            shown = [(name, await watched(act)) for name, act in (
                ("bare pages", lambda: bare(url)),
                ("cold", down.pull),
                ("nothing changed", down.pull),
                ("bare pages again", lambda: bare(url)),
            )]  # fmt: skip
            shown.append(("bare rows", await insert()))
            running.cancel()
        assert await store.cards.count() == CARDS
        await client.close()
        await store.close()
    finally:
        gc.unfreeze()
        central.terminate()
        await central.wait()
    print()
    alone, rows_alone = min(shown[0][1][1], shown[3][1][1]), shown[4][1][1]
    for name, (_, seconds, cpu, lag, most, held, memory, own) in shown:
        print(
            f"{name:18} {seconds:6.2f} s ({seconds / alone:4.2f} of bare), CPU {cpu[0]:5.2f} + {cpu[1]:4.2f} s,"
            f" +{memory:4.0f} MiB, loop lag p99 {lag * 1000:5.2f}, most {most * 1000:6.2f},"
            f" by a callback {held * 1000:6.2f}, own computing p99 {own * 1000:5.2f} ms"
        )
    cold = shown[1][1][1]
    print(f"cold: {cold / (alone + rows_alone):4.2f} of the bare pages and the bare rows one after the other")
    print(f"{shown[0][1][0]} requests each; the bare pages {alone:.2f} s")
    show("100,000 cards cold", cold, "s", aim=AIM_SECONDS)
    show("100,000 cards unchanged", shown[2][1][1], "s", peer=alone, beside="the bare pages", aim=0.9)
    for name, row in (("cold", shown[1]), ("unchanged", shown[2])):
        show(f"100,000 cards {name}, loop lag p99", row[1][3] * 1000, "ms", aim=AIM_LAG * 1000)
    assert [report.cards.cards for _, (report, *_) in shown[1:3]] == [CARDS, CARDS]
    assert shown[2][1][0].cards.changed == 0
    assert cold < AIM_SECONDS
    assert shown[2][1][1] < AIM_SHARE * alone
    assert max(shown[1][1][3], shown[2][1][3]) < AIM_LAG
