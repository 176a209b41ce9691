"""A till's backlog: many small writes are taken and go up in order, as fast at the end as at the beginning."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from at_work import opened_store
from wired import outbox_sender

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.domain.writes import ENTRY_CREATE
from gateway.runtime.clock import SystemClock

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

WRITES = int(os.environ.get("BACKLOG", "200000"))
TOGETHER = 200
PASSWORD = "demo"
ENTRY = {"device_id": 101, "type": "entry", "date_at": "2026-03-01T08:00:00.000Z"}


@pytest.fixture
def central():
    """The simulated central in a process of its own."""
    words = [sys.executable, "-m", "simulation.far_ends.central", "--port", "0", "--cards", "10"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, "CENTRAL_PASSWORD": PASSWORD})
    assert process.stdout is not None
    yield process.stdout.readline().decode().split()[2].rstrip(",")
    process.terminate()
    process.wait(timeout=20)
    process.stdout.close()


@pytest.fixture
async def store(tmp_path):
    async with opened_store(tmp_path, sends=True) as opened:
        yield opened


def memory() -> float:
    """Read the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2


def rates(marks: list[tuple[int, float]]) -> tuple[float, float]:
    """Compute writes a second in the first and the last tenth."""
    tenth = max(len(marks) // 10, 1)
    (first, began), (until, ended) = marks[0], marks[tenth]
    (last, late), (end, over) = marks[-1 - tenth], marks[-1]
    return (until - first) / (ended - began), (end - last) / (over - late)


async def test_many_small_writes_wait_and_go_up_in_order(central, store, tmp_path):
    resident = [memory()]
    taken = [(0, time.perf_counter())]
    for first in range(0, WRITES, TOGETHER):
        bodies = ({**ENTRY, "plate": f"T {first + n}"} for n in range(TOGETHER))
        await asyncio.gather(
            *(store.pending_writes.hold(ENTRY_CREATE, None, body, now=1, sends=True) for body in bodies)
        )
        taken.append((first + TOGETHER, time.perf_counter()))
    resident.append(memory())
    size, counted = (tmp_path / "site.db").stat().st_size, (await store.backlog.usage()).bytes
    client = CentralClient(url=central, account=GatewayAccount("gateway", PASSWORD), clock=SystemClock())
    sender = outbox_sender(client=client, store=store, clock=SystemClock())
    await client.look()
    gone = [(0, time.perf_counter())]
    while not (await sender.send_due()).wait:
        books = await store.outbox.books()
        gone.append((books.delivered, time.perf_counter()))
    await client.close()
    resident.append(memory())
    given = await store.database.read(
        lambda connection: connection.execute(
            "SELECT central_id FROM parking_entry WHERE central_id IS NOT NULL ORDER BY id"
        ).fetchall()
    )
    behind = max((before - after for (before,), (after,) in pairwise(given)), default=0)
    print(
        f"\n{WRITES:,} writes taken at {rates(taken)[0]:,.0f}/s first, {rates(taken)[1]:,.0f}/s last;"
        f" gone up at {rates(gone)[0]:,.0f}/s first, {rates(gone)[1]:,.0f}/s last"
        f"\nthe file has {size / 1e6:.0f} MB, the backlog counts {counted / 1e6:.0f} MB"
        f"\nresident at the start, with all waiting, at the end: {', '.join(f'{one:.0f}' for one in resident)} MiB"
        f"\nat most {behind} ids out of order"
    )
    books = await store.outbox.books()
    assert (books.delivered, books.waiting, books.parked) == (WRITES, 0, 0)
    assert len(given) == WRITES
    assert behind <= 3  # so many requests are under way at once
    assert (await store.backlog.usage()).bytes == 0
