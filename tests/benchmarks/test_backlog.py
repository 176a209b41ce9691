"""A backlog of camera events on its way up, beside the bare requests that it is made of."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import aiohttp
import pytest
from wired import outbox_sender

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.runtime.clock import SystemClock
from gateway.runtime.process_settings import set_aside
from gateway.store import Entry, Store

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

ROWS = int(os.environ.get("BACKLOG", "100000"))
BARE = max(1000, ROWS // 10)
PASSWORD = "demo"
TICK = 0.001
AT = 1_767_268_800_000_000


def body(number: int) -> dict[str, object]:
    return {
        "camera_id": 201,
        "name": "Vehicle passed",
        "description": "",
        "date_at": "2026-03-01T08:00:00.000000Z",
        "start_date": "2026-03-01T07:59:50.000000Z",
        "end_date": "2026-03-01T08:00:10.000000Z",
        "clock_trusted": True,
        "lane": "entry",
        "source_event_id": number,
        "source_id": number,
        "source_name": "North car park",
    }


@pytest.fixture
def central(tmp_path):
    """The simulated central in a process of its own, so that its work is not counted as the gateway's."""
    words = [sys.executable, "-m", "simulation.far_ends.central", "--port", "0", "--cards", "10"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, "CENTRAL_PASSWORD": PASSWORD})
    assert process.stdout is not None
    url = process.stdout.readline().decode().split()[2].rstrip(",")
    yield url
    process.terminate()
    process.wait(timeout=20)
    process.stdout.close()


@pytest.fixture
def aside():
    """Set this process's objects aside, as the gateway does at its start."""
    set_aside()
    yield
    gc.unfreeze()


@pytest.fixture
async def store(tmp_path):
    """A store whose outbox holds the backlog, as passages leave it."""
    opened = Store(folder=tmp_path, site_name="North car park", sends=True)
    await opened.open()
    event = Event(kind=EventKind.VEHICLE_PASSED, date_at=AT, clock_trusted=True, text="", lane_id="entry")
    moment = Moment(201, "Vehicle passed", "", AT - 10_000_000, AT + 10_000_000, clock_trusted=True)
    entry = Entry(events=(event,), moments=(moment,))
    for first in range(0, ROWS, 200):
        await asyncio.gather(*(opened.journal.record(entry) for _ in range(min(200, ROWS - first))))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(opened.run())
        yield opened
        running.cancel()
    await opened.close()


@asynccontextmanager
async def lag():
    """Return how late callbacks come meanwhile, in seconds."""
    lags: list[float] = []

    async def tick():
        while True:
            start = time.perf_counter()
            await asyncio.sleep(TICK)
            lags.append(time.perf_counter() - start - TICK)

    async with asyncio.TaskGroup() as group:
        ticking = group.create_task(tick())
        yield lags
        ticking.cancel()


async def bare_seconds(url: str) -> tuple[float, float]:
    """Seconds a request, and CPU seconds of this side: one after the other, the same bodies, and nothing kept."""
    async with aiohttp.ClientSession() as http:
        login = {"username": "gateway", "password": PASSWORD}
        async with http.post(url + "/v1/auth/login", json=login) as answer:
            session = (await answer.json())["session"]
        headers = {"SessionID": session, "Content-Type": "application/json"}
        began, cpu = time.perf_counter(), time.process_time()
        for number in range(BARE):
            data = json.dumps(body(number)).encode()
            async with http.put(url + "/v1/camera/event", data=data, headers=headers) as answer:
                assert (await answer.json())["success"]
        return (time.perf_counter() - began) / BARE, (time.process_time() - cpu) / BARE


async def test_a_backlog_goes_up_beside_the_same_bare_requests(central, store, aside):
    async with lag() as bare_lags:
        bare = [await bare_seconds(central)]
    client = CentralClient(url=central, account=GatewayAccount("gateway", PASSWORD), clock=SystemClock())
    sender = outbox_sender(client=client, store=store, clock=SystemClock())
    await client.look()
    began, cpu_before, commits = time.perf_counter(), time.process_time(), store.database.commits
    async with lag() as lags:
        while not (await sender.send_due()).wait:
            pass
    took = time.perf_counter() - began
    cpu, commits = time.process_time() - cpu_before, store.database.commits - commits
    await client.close()
    bare.append(await bare_seconds(central))
    books = await store.outbox.books()
    lags.sort()
    bare_lags.sort()
    alone, bare_cpu = (sum(column) / len(bare) for column in zip(*bare, strict=True))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    p99, bare_p99 = (some[int(len(some) * 0.99)] * 1000 for some in (lags, bare_lags))
    worst = lags[-1] * 1000
    print(
        f"\n{ROWS:,} camera events: {took:.1f} s, {ROWS / took:,.0f}/s, {took / ROWS * 1000:.2f} ms each"
        f"\nbare requests, before and after: {', '.join(f'{one * 1000:.2f}' for one, _ in bare)} ms each"
        f" (of {BARE:,}); {took / ROWS / alone:.2f} times as long (aim 1.3)"
        f"\nCPU {cpu:.1f} s ({cpu / ROWS * 1000:.2f} ms each, of a bare request {bare_cpu * 1000:.2f} ms),"
        f" {commits / ROWS:.2f} commits each, memory at most {memory / 1024:.0f} MiB"
        f"\nlag of the loop: p99 {p99:.2f} ms (aim 5), worst {worst:.1f} ms; p99 during bare requests {bare_p99:.2f} ms"
    )
    assert (books.delivered, books.waiting, books.parked) == (ROWS, 0, 0)
    assert books.balance()
