"""The calls and the processor time of a card inside the gateway, until the open command is written and after it.

Beside wall time, these figures depend little on what else the machine does. The site is that of `test_card_to_open`.
With TRACE=FILE, the calls of one card are written there in their order, each with the microseconds since its line came.

Run: pytest tests/benchmarks/test_card_path.py -m benchmark -s
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from figures import show
from large_store import fill_cards

from simulation.demo.devices import CardReaderFarEnd
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module
from tests.benchmarks.test_card_to_open import CARDS, LANES, one_passage, site_text, start_field, start_gateway

ROUNDS = 30
MOST_SHOWN = 20
PROGRAM = Path(__file__).with_name("watched_gateway.py")
CLOCKS = {"loop": "processor of the loop", "process": "processor of all threads", "wall": "wall time"}

Note = dict[str, Any]


@pytest.mark.benchmark
@pytest.mark.timeout(600)
async def test_card_path(tmp_path):
    barriers = {unit: Barrier(travel_seconds=0.05) for unit in (1, 2)}
    far_end = ModbusFarEnd(units={unit: relay_module(barrier) for unit, barrier in barriers.items()})
    notes = tmp_path / "notes"
    async with AsyncExitStack() as stack:
        modbus = await stack.enter_async_context(far_end.tcp())
        readers = [CardReaderFarEnd(path=tmp_path / name) for name in LANES]
        for reader in readers:
            reader.plug_in()
            stack.callback(reader.unplug)
        await fill_cards(tmp_path / "data", cards=CARDS)
        field = await start_field(stack, tmp_path)
        text = site_text(tmp_path, modbus, field)
        await start_gateway(stack, tmp_path, text, program=(str(PROGRAM), str(notes)))
        for _ in range(ROUNDS):
            await asyncio.gather(*(one_passage(far_end, barriers[unit], readers[unit - 1], unit) for unit in (1, 2)))
    report([json.loads(line) for line in notes.read_text().splitlines()])


def report(notes: list[Note]) -> None:
    """Print both parts of a card's way, and the functions that are called most before the open.

    Of times the median is told, and of calls the fewest: those of a card during which nothing else was due.
    """
    counted = sorted((note for note in notes if "calls" in note), key=lambda note: note["before"])
    timed = [note for note in notes if "calls" not in note]
    print(f"\na card in the gateway, load average {os.getloadavg()[0]:.1f}, {len(timed)} timed, {len(counted)} counted")
    for part, name in (("before", "until the open is written"), ("after", "after the open")):
        show(f"calls {name}", min(note[part] for note in counted), "")
        for clock, kind in CLOCKS.items():
            show(f"{kind} {name}", statistics.median(note[part][clock] for note in timed), "µs")
    shortest = counted[0]
    for called, times in Counter(name for _, name in shortest["calls"][: shortest["before"]]).most_common(MOST_SHOWN):
        print(f"{times:6}  {called}")
    if path := os.environ.get("TRACE"):
        lines = [f"{at:7}  {name}" for at, name in shortest["calls"]]
        lines.insert(shortest["before"], "-" * 20 + " the open command is written")
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
