"""Scans of lines at work: what they find, and when they are refused or end early."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

import pytest
from waiting import until

from drivers.bus.bus import Bus
from drivers.contract import DriverError
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Table
from drivers.modbus.unit_requests import ModbusRequests
from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.lines.frames import PolledLine
from gateway.lines.scans import DONE, LineScans
from gateway.runtime.clock import SystemClock
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

USED, NEW = 1, 5


async def keep_polling(bus):
    requests = ModbusRequests(bus=bus, unit=USED, framing="rtu", timeout=0.2)
    while True:
        due = time.monotonic() + 0.2
        with suppress(DriverError):
            await requests.read(Read(Table.DISCRETE_INPUT, 0, 6), deadline=due + 1)
        await asyncio.sleep(max(0.0, due - time.monotonic()))  # the pace of somebody who polls


@pytest.fixture
async def yard(tmp_path):
    """A line with a unit that is polled and one that nobody knows of."""
    far_end = ModbusFarEnd(units={unit: relay_module(Barrier()) for unit in (USED, NEW)}, framing="rtu")
    async with far_end.serial(path=tmp_path / "port") as terminal, asyncio.TaskGroup() as group:
        bus = Bus(name="yard", spec=LinkSpec(f"serial:{terminal.path}", baud=115_200))
        moving = []
        line = PolledLine(
            bus=bus, framing="rtu", names={USED: ("Barrier",)}, card_units=frozenset(), is_moving=lambda: bool(moving)
        )
        scans = LineScans(lines={"yard": line}, clock=SystemClock())
        tasks = [group.create_task(body) for body in (bus.run(), keep_polling(bus), scans.run())]
        await until(lambda: bus.quality().units and bus.quality().units[0].reply_seconds)
        yield SimpleNamespace(scans=scans, far_end=far_end, terminal=terminal, moving=moving, bus=bus)
        for task in tasks:
            task.cancel()


async def test_new_units_are_found_beside_those_in_use(yard):
    assert yard.scans.of("yard") is None
    yard.scans.start("yard", range(1, 8))
    await until(lambda: yard.scans.of("yard").ended)
    scan = yard.scans.of("yard")
    assert (scan.ended, scan.asked, scan.total, scan.unasked) == (DONE, 7, 7, ())
    used, new = scan.units
    assert (used.unit, used.devices) == (USED, ("Barrier",))
    assert used.answer.startswith("answers its polls after ")
    assert (new.unit, new.devices, new.answer, new.identity) == (NEW, (), "illegal data address", "")
    asked = [received.request for received in yard.far_end.received if received.unit == USED]
    assert set(asked) == {Read(Table.DISCRETE_INPUT, 0, 6)}


async def test_one_scan_at_a_time_and_it_can_be_stopped(yard):
    yard.scans.start("yard", range(10, 200))
    with pytest.raises(CommandRefused, match="scanned already"):
        yard.scans.start("yard", [1])
    await until(lambda: yard.scans.of("yard").asked > 1)
    assert yard.scans.stop("yard").ended == "it was stopped"
    asked = yard.scans.of("yard").asked
    yard.scans.start("yard", [NEW])
    await until(lambda: yard.scans.of("yard").ended == DONE)
    assert asked < 190


async def test_nothing_is_asked_while_a_gate_moves(yard):
    yard.moving.append(True)
    yard.scans.start("yard", [NEW])
    polls = len(yard.far_end.received)
    await until(lambda: len(yard.far_end.received) > polls + 3)
    assert NEW not in {received.unit for received in yard.far_end.received}
    yard.moving.clear()
    await until(lambda: yard.scans.of("yard").ended == DONE)
    assert NEW in {received.unit for received in yard.far_end.received}


async def test_it_ends_when_units_of_the_site_answer_worse(yard):
    yard.scans.start("yard", range(10, 200))
    await until(lambda: yard.scans.of("yard").asked > 1)
    yard.far_end.misbehave(USED, Misbehaviour(deaf=True))
    await until(lambda: yard.scans.of("yard").ended)
    assert "answered worse" in yard.scans.of("yard").ended


async def test_it_ends_when_the_line_is_lost(yard):
    yard.scans.start("yard", range(10, 200))
    await until(lambda: yard.scans.of("yard").asked > 1)
    yard.terminal.unplug()
    await until(lambda: yard.scans.of("yard").ended)
    assert "the line was lost" in yard.scans.of("yard").ended
    with pytest.raises(CommandRefused, match="is down"):
        yard.scans.start("yard", [1])


@asynccontextmanager
async def scans_of(framing):
    bus = Bus(name="yard", spec=LinkSpec("tcp://127.0.0.1:9"))
    line = PolledLine(bus=bus, framing=framing, names={}, card_units=frozenset(), is_moving=lambda: False)
    yield LineScans(lines={"yard": line}, clock=SystemClock())


@pytest.mark.parametrize(("framing", "why"), [(None, "no Modbus devices"), ("tcp", "waits by itself")])
async def test_lines_that_are_not_scanned(framing, why):
    async with scans_of(framing) as scans:
        with pytest.raises(CommandRefused, match=why):
            scans.start("yard", [1])
        with pytest.raises(NotFoundError):
            scans.start("garage", [1])
        with pytest.raises(NotFoundError):
            scans.stop("yard")


async def test_a_unit_that_was_silent_before_does_not_end_the_search_for_it(yard):
    yard.far_end.misbehave(USED, Misbehaviour(deaf=True))
    await until(lambda: yard.bus.quality().units[0].failing)
    failed = sum(yard.bus.quality().units[0].failed.values())
    yard.scans.start("yard", [*range(10, 200), NEW])
    await until(lambda: sum(yard.bus.quality().units[0].failed.values()) > failed)
    assert yard.scans.of("yard").ended == ""
    yard.scans.stop("yard")
    yard.scans.start("yard", [USED, NEW])
    await until(lambda: yard.scans.of("yard").ended)
    assert yard.scans.of("yard").ended == DONE
    assert [unit.unit for unit in yard.scans.of("yard").units] == [USED, NEW]
