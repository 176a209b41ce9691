"""Seven of eight units on one RTU line dead: what the eighth notices of it, beside the same line with all alive.

The line is a pseudo-terminal with answers as slow as at 38,400 baud. Each unit is polled every 200 ms, which is what
eight units leave time for. A poll's time is from its asking to its answer, so it holds what it waited for the line.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time

import pytest

from drivers.bus.bus import Bus
from drivers.contract import DriverError
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Table, Write
from drivers.modbus.unit_requests import ModbusRequests
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

UNITS = range(1, 9)
LIVE = 1
POLL_SECONDS = 0.2
ANSWER_SECONDS = 0.012
REPLY_SECONDS = 0.3
WARM_UP_SECONDS = 8.0
MEASURED_SECONDS = 60.0
AIM_RISE = 0.10


@pytest.mark.benchmark
@pytest.mark.timeout(300)
async def test_dead_units(tmp_path):
    alive = await measure(tmp_path / "alive", dead=())
    dead = await measure(tmp_path / "dead", dead=UNITS[1:])
    print()
    print(f"one RTU line, 8 units, polled every {POLL_SECONDS * 1000:g} ms, answers after {ANSWER_SECONDS * 1000:g} ms")
    for name, figures in (("all alive", alive), ("7 of 8 dead", dead)):
        for what, values in zip(("live unit's poll", "open command"), figures, strict=True):
            print(f"{name:12} {what:18} {row(values)}")
    rise = p99(dead[0]) / p99(alive[0]) - 1
    print(f"live unit's poll, p99 with 7 dead beside all alive: {rise:+.1%} (aim below {AIM_RISE:+.0%})")
    longest = REPLY_SECONDS + ANSWER_SECONDS + 0.05
    print(f"open command, longest with 7 dead: {max(dead[1]) * 1000:.0f} ms (one transaction: {longest * 1000:.0f} ms)")
    assert rise < AIM_RISE
    assert max(dead[1]) < longest


async def measure(path, *, dead) -> tuple[list[float], list[float]]:
    far_end = ModbusFarEnd(units={u: relay_module(Barrier()) for u in UNITS}, framing="rtu")
    for unit in UNITS:
        far_end.misbehave(unit, Misbehaviour(deaf=True) if unit in dead else Misbehaviour(late=ANSWER_SECONDS))
    polls: list[float] = []
    commands: list[float] = []
    async with far_end.serial(path=path) as terminal, asyncio.TaskGroup() as group:
        bus = Bus(name="gates", spec=LinkSpec(f"serial:{terminal.path}", baud=38_400))
        tasks = [group.create_task(bus.run())]
        of_units = {unit: ModbusRequests(bus=bus, unit=unit, framing="rtu", timeout=REPLY_SECONDS) for unit in UNITS}
        tasks += [
            group.create_task(keep_polling(requests, polls if u == LIVE else [])) for u, requests in of_units.items()
        ]
        await asyncio.sleep(WARM_UP_SECONDS)
        polls.clear()
        until = time.monotonic() + MEASURED_SECONDS
        while time.monotonic() < until:
            await asyncio.sleep(0.5 + random.random())
            asked = time.monotonic()
            await of_units[LIVE].write(Write(Table.COIL, 0, 0xFF00), deadline=asked + 2)
            commands.append(time.monotonic() - asked)
        for task in tasks:
            task.cancel()
    return polls, commands


async def keep_polling(requests: ModbusRequests, took: list[float]) -> None:
    due = time.monotonic() + random.random() * POLL_SECONDS
    while True:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        asked = time.monotonic()
        due = asked + POLL_SECONDS
        try:
            await requests.read(Read(Table.DISCRETE_INPUT, 0, 6), deadline=asked + 1)
        except DriverError:
            continue
        took.append(time.monotonic() - asked)


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def row(values: list[float]) -> str:
    return (
        f"n={len(values):4}  p50 {statistics.median(values) * 1000:6.1f} ms  p99 {p99(values) * 1000:6.1f} ms"
        f"  longest {max(values) * 1000:6.1f} ms"
    )
