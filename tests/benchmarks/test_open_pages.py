"""From a card to the open command while fifty pages are open, beside the same gateway without them, turn by turn.

The site is that of `test_card_to_open`. The pages are in a process of their own, as browsers are on other machines; on
the same machine they still take from the processor that the gateway has.

Run: pytest tests/benchmarks/test_open_pages.py -m benchmark -s
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from large_store import fill_cards

from simulation.demo.devices import CardReaderFarEnd
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module
from tests.benchmarks.test_card_to_open import (
    CARDS,
    LANES,
    end,
    one_passage,
    site_text,
    start_field,
    start_gateway,
)

PAGES = 50
CAMERA = "201"
TURNS = 4
ROUNDS = 12
PROGRAM = Path(__file__).with_name("open_pages.py")


@pytest.mark.benchmark
@pytest.mark.timeout(600)
async def test_card_to_open_with_fifty_open_pages(tmp_path):
    barriers = {unit: Barrier(travel_seconds=0.05) for unit in (1, 2)}
    far_end = ModbusFarEnd(units={unit: relay_module(barrier) for unit, barrier in barriers.items()})
    async with AsyncExitStack() as stack:
        modbus = await stack.enter_async_context(far_end.tcp())
        readers = [CardReaderFarEnd(path=tmp_path / name) for name in LANES]
        for reader in readers:
            reader.plug_in()
            stack.callback(reader.unplug)
        await fill_cards(tmp_path / "data", cards=CARDS)
        field = await start_field(stack, tmp_path)
        await start_gateway(stack, tmp_path, site_text(tmp_path, modbus, field))
        pages = start_pages(stack, tmp_path / "data" / "run")
        took: dict[str, list[float]] = {"off": [], "on": []}
        for turn in range(TURNS):
            for word in ("off", "on"):
                if turn or word == "on":
                    await turned(pages, word)
                for _ in range(ROUNDS):
                    took[word] += await asyncio.gather(
                        *(one_passage(far_end, barriers[unit], readers[unit - 1], unit) for unit in (1, 2))
                    )
    report(took)


def start_pages(stack: AsyncExitStack, run: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, str(PROGRAM), str(run), str(PAGES), CAMERA]
    pages = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stack.callback(end, pages)
    return pages


async def turned(pages: subprocess.Popen[bytes], word: str) -> None:
    """Open the pages, or close them, and wait until that is done."""
    assert pages.stdin
    pages.stdin.write(f"{word}\n".encode())
    pages.stdin.flush()
    assert await asyncio.to_thread(pages.stdout.readline) == (b"open\n" if word == "on" else b"closed\n")


def report(took: dict[str, list[float]]) -> None:
    print(f"\ncard to open with and without {PAGES} open pages, load average {os.getloadavg()[0]:.1f}")
    tails = {}
    for word, name in (("off", "no page open"), ("on", f"{PAGES} pages open")):
        cut = statistics.quantiles(took[word], n=100)
        tails[word] = cut[98]
        print(
            f"{name:16} n={len(took[word]):4}  p50 {cut[49] * 1000:7.3f} ms  p99 {cut[98] * 1000:7.3f} ms"
            f"  max {max(took[word]) * 1000:7.3f} ms"
        )
    print(f"difference at p99: {(tails['on'] - tails['off']) * 1000:+.3f} ms")
