"""Growth of a gateway's work with its lanes and its cameras, at sizes from 1 to 32.

Exponents are in the table of `make bench`: 0 says that each lane or camera takes the same at any size. Below 0, a
fixed share is divided among more of them; above 0, each takes more the more there are.

Run: pytest tests/benchmarks/test_growth.py -m benchmark -s
"""

from __future__ import annotations

import asyncio
import os
import time

import pytest
from figures import show
from site_of_size import site_of_size, steady_cameras, used

SIZES = tuple(int(word) for word in os.environ.get("BENCH_SIZES", "1,2,4,8,16,32").split(","))
SECONDS = float(os.environ.get("BENCH_SECONDS", "10"))
SETTLE_SECONDS = 5.0
LEAST_CARDS = 12

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]


async def test_lanes(tmp_path):
    for size in SIZES:
        async with site_of_size(tmp_path / str(size), lanes=size) as (gateway, lanes):
            await asyncio.sleep(SETTLE_SECONDS)
            before, began = gateway.processor(), time.monotonic()
            await asyncio.sleep(SECONDS / 2)
            idle = used(before, gateway.processor()) / (time.monotonic() - began)

            before, events, began = gateway.processor(), gateway.events(), time.monotonic()
            passages = [lane.passages(max(4, LEAST_CARDS // size)) for lane in lanes]
            took = [one for some in await asyncio.gather(*passages) for one in some]
            seconds = time.monotonic() - began
            busy = used(before, gateway.processor()) / seconds
            events = gateway.events() - events
        opened = sorted(one for one in took if one is not None)
        assert opened, "no card opened a gate"
        print(f"{size} lanes: {len(took) - len(opened)} of {len(took)} cards opened no gate")
        show("card to open by lanes, p50", opened[len(opened) // 2] * 1000, "ms", at=size)
        show("card to open by lanes, p90", opened[len(opened) * 9 // 10] * 1000, "ms", at=size)
        show("an idle lane", idle * 100 / size, "% of a core", at=size)
        show("a busy lane's passage", (busy - idle) * seconds / len(opened) * 1000, "CPU ms", at=size)
        show("events on the disk by lanes", events / seconds, "events/s", at=size)


async def test_cameras(tmp_path):
    with steady_cameras(max(SIZES)) as port:
        for size in SIZES:
            async with site_of_size(tmp_path / str(size), cameras=size, cameras_port=port) as (gateway, _):
                await asyncio.sleep(SETTLE_SECONDS)
                before, began = gateway.processor(), time.monotonic()
                await asyncio.sleep(SECONDS)
                share = used(before, gateway.processor()) / (time.monotonic() - began)
                memory = gateway.memory()
            show("a recorded camera", share * 100 / size, "% of a core", at=size)
            show("memory of all processes by cameras", memory, "MB", at=size)
