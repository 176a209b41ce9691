"""An Excel sheet of 100,000 cards over HTTP: how long, how much memory at most, and how long the loop is held up."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from aiohttp import ClientSession, web
from loop_watch import watch_callbacks
from processes import children_of

from gateway.domain.credentials import Card
from gateway.store import Store, StoredCard
from gateway.web.operations.cards import COLUMNS, card_rows
from gateway.web.spreadsheets import Spreadsheets

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

CARDS = 100_000
NOW = 1_769_774_400_000_000
AIM_LAG = 0.005
AIM_CHILD_MIB = 100
AIM_OWN_MIB = 40


def card(index):
    record = {
        "id": 4001 + index,
        "number": f"{index:08d}",
        "facility_code": 1 + index // 50_000,
        "card_number": index % 65_536,
        "card_format": "H10301",
        "plate": f"DM{index:05d}",
        "username": f"user{index}",
        "holder_name": f"Holder Number {index}",
        "customer_id": 9000 + index // 3,
        "company_id": 3,
        "note": "=1+1 is no formula",
    }
    shown = Card(4001 + index, record["number"], valid_from=NOW, valid_until=NOW + index, holder=record["holder_name"])
    return StoredCard(shown, json.dumps(record))


def rss(pid):
    """Resident MiB of a process, 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


async def watched(act):
    """Return the result of `act`, seconds, the longest lag of the loop, and the most MiB of all processes."""
    lags = []
    most = {"own": rss(os.getpid()), "child": 0.0}
    before = most["own"]

    async def look():
        last = 0.0
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.001)
            lags.append(time.monotonic() - began - 0.001)
            if began - last > 0.02:
                last = began
                most["own"] = max(most["own"], rss(os.getpid()))
                most["child"] = max(most["child"], sum(map(rss, children_of(os.getpid()))))

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look())
        began = time.monotonic()
        with watch_callbacks(limit=AIM_LAG) as callbacks:
            given = await act()
        seconds = time.monotonic() - began
        looking.cancel()
    lags.sort()
    held = callbacks.worst()
    most["lag"] = (lags[int(len(lags) * 0.99)], lags[-1], held.seconds if held else 0.0)
    return given, seconds, most["lag"], most["own"] - before, most["child"]


async def test_a_sheet_of_100_000_cards(tmp_path):
    store = Store(folder=tmp_path, site_name="North", sends=False)
    await store.open()
    spreadsheets, zone = Spreadsheets(folder=tmp_path / "sheets"), ZoneInfo("America/Toronto")

    async def answered(request):
        return await spreadsheets.answer(
            request, name="cards", sheet="Cards", columns=COLUMNS, rows=card_rows(store.cards, ""), zone=zone
        )

    app = web.Application()
    app.router.add_post("/sheet", answered)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:

        async def sheet():
            size = 0
            async with client.post("/sheet", json={}) as answer:
                assert answer.status == 200
                async for chunk in answer.content.iter_any():
                    size += len(chunk)
            return size

        async def idle():
            await asyncio.sleep(2)
            return 0

        print()
        shown = [("nothing at all", await watched(idle)), ("a sheet without cards", await watched(sheet))]
        for start in range(0, CARDS, 5_000):
            await store.cards.apply(put=[card(index) for index in range(start, start + 5_000)], now=NOW)
        shown.append((f"a sheet of {CARDS} cards", await watched(sheet)))
    for name, (size, seconds, lag, own, child) in shown:
        print(
            f"{name:26} {size / 2**20:6.1f} MiB  {seconds:6.2f} s  loop lag p99 {lag[0] * 1000:5.2f}, most"
            f" {lag[1] * 1000:6.2f}, by a callback {lag[2] * 1000:5.2f} ms"
            f"  gateway +{own:5.1f} MiB  process {child:6.1f} MiB"
        )
    print(f"aims: lag {AIM_LAG * 1000:.0f} ms, gateway +{AIM_OWN_MIB} MiB, process {AIM_CHILD_MIB} MiB")
    await runner.cleanup()
    await store.close()
    _, _, lag, own, child = shown[-1][1]
    assert own < AIM_OWN_MIB
    assert child < AIM_CHILD_MIB
    assert lag[2] < AIM_LAG, "a callback held the loop up"
