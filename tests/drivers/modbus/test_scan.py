"""A scan beside running polls: a line of real speed, units of pymodbus and of the demo, and the ages of the polls."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from statistics import median

import pytest
from paced_cable import PacedCable
from pymodbus import ModbusDeviceIdentification
from pymodbus.server import ModbusSerialServer
from pymodbus.simulator import DataType, SimData, SimDevice
from waiting import until

from drivers.bus import transactions
from drivers.bus.bus import Bus
from drivers.contract import DeadlinePassed, DriverError, ProtocolViolation
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Table
from drivers.modbus.scan import identification_words, server_id_words, sight
from drivers.modbus.unit_requests import ModbusRequests
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

POLL_SECONDS = 0.1
ANSWER_SECONDS = 0.005
NEW, PLAIN, TWICE = 40, 41, 42
"""Addresses that nobody polls: a pymodbus server, a unit that cannot say what it is, and one that answers garbled."""
IDENTITY = {"VendorName": "Yard Works", "ProductCode": "IO-8", "MajorMinorRevision": "2.1"}
TOLD = {"Yard Works IO-8 2.1", "Yard Works-IO-8-2.1"}
"""What the unit answers to the question what it is, and to the one for its server id, which follows a lost answer."""
BETWEEN_POLLS = Read(Table.DISCRETE_INPUT, 0, 6)


class Polls:
    """The polls of units, each every 100 ms: how old the newest answer was whenever the next one came."""

    def __init__(self, bus, units):
        self.ages = []
        self.failed = 0
        self._bus = bus
        self.bodies = [self._keep_polling(unit) for unit in units]

    async def _keep_polling(self, unit):
        requests = ModbusRequests(bus=self._bus, unit=unit, framing="rtu", timeout=0.3)
        asked_at = None
        while True:
            due = time.monotonic() + POLL_SECONDS
            try:
                _, at = await requests.read(BETWEEN_POLLS, deadline=time.monotonic() + 1)
            except DriverError:
                self.failed += asked_at is not None
            else:
                if asked_at is not None:
                    self.ages.append(time.monotonic() - asked_at)
                asked_at = at
            await asyncio.sleep(max(0.0, due - time.monotonic()))  # the pace of somebody who polls


@asynccontextmanager
async def line(folder, running, *, baud, units):
    """A line with units that are polled every 100 ms, and the three that nobody polls."""
    cable = PacedCable(folder=folder, baud=baud)
    wirings = {unit: relay_module(Barrier()) for unit in (*units, PLAIN, TWICE)}
    far_end = ModbusFarEnd(units=wirings, framing="rtu")
    for unit in wirings:
        far_end.misbehave(unit, Misbehaviour(late=ANSWER_SECONDS, corrupt=unit == TWICE))
    registers = SimData(0, values=[7] * 4, datatype=DataType.REGISTERS)
    with cable.port("master") as ours, cable.port("server", unit=NEW) as theirs:
        server = ModbusSerialServer(
            SimDevice(NEW, simdata=[registers]),
            port=str(theirs),
            baudrate=baud,
            identity=ModbusDeviceIdentification(info_name=IDENTITY),
        )
        await server.serve_forever(background=True)
        try:
            async with far_end.serial(path=folder / "units", make=cable.end):
                bus = Bus(name="line", spec=LinkSpec(f"serial:{ours}", baud=baud))
                polls = Polls(bus, units)
                async with running(bus.run(), *polls.bodies):
                    yield bus, polls, far_end, cable
        finally:
            await server.shutdown()


async def settled(polls):
    await until(lambda: len(polls.ages) > 5)
    polls.ages.clear()


async def sight_twice(bus, unit):
    """Ask a silent address once more, as scans of a line do."""
    seen = await sight(bus, unit, framing="rtu", within=10)
    return seen or await sight(bus, unit, framing="rtu", within=10)


async def test_a_scan_finds_new_units_and_what_they_are(tmp_path, running, monkeypatch):
    monkeypatch.setattr(transactions, "LONGEST_SCAN_WAIT", 0.4)
    async with line(tmp_path, running, baud=19_200, units=[1]) as (bus, polls, far_end, _):
        await settled(polls)
        seen = {unit: await sight_twice(bus, unit) for unit in range(39, 43)}
        assert [unit.unit for unit in bus.quality().units] == [1]
        assert bus.silent_units == frozenset()
    assert [unit for unit, found in seen.items() if found is None] == [39]
    assert seen[NEW].identity in TOLD
    assert seen[NEW].answer == "register 0 holds 7"
    assert (seen[PLAIN].answer, seen[PLAIN].identity, seen[PLAIN].is_clear) == ("illegal data address", "", True)
    assert seen[TWICE].is_clear is False
    assert not far_end.commands


async def test_a_line_without_a_turn_to_spare_is_not_scanned(tmp_path, running):
    units = range(1, 6)
    async with line(tmp_path, running, baud=9600, units=units) as (bus, polls, far_end, _):
        await settled(polls)
        with pytest.raises(DeadlinePassed):
            await sight(bus, NEW, framing="rtu", within=1.5)
        assert {received.unit for received in far_end.received} == set(units)


@pytest.mark.benchmark
@pytest.mark.parametrize("baud", [9600, 19_200])
async def test_a_scan_leaves_the_polls_their_time(tmp_path, running, baud):
    """Two units at 100 ms leave 9600 baud no pause for a whole answer: polls may then wait for one request a second."""
    async with line(tmp_path, running, baud=baud, units=[1, 2]) as (bus, polls, _, cable):
        await settled(polls)
        await until(lambda: len(polls.ages) > 60)
        before = sorted(polls.ages)
        polls.ages.clear()
        for unit in range(100, 106):
            assert await sight(bus, unit, framing="rtu", within=10) is None
        during = sorted(polls.ages)
        for name, ages in (("without", before), ("with a scan", during)):
            print(
                f"{baud} baud, age of polls {name}: p50 {median(ages) * 1000:.0f} ms, longest {ages[-1] * 1000:.0f} ms"
            )
        waited = 2 * bus.spec.seconds_for(15) + 2 * 0.03 + 0.05
        assert during[-1] < before[-1] + waited
        assert during[len(during) // 2] < before[len(before) // 2] + 0.01
        assert polls.failed == 0
        assert cable.collisions == 0


def test_identification_is_read_as_text():
    told = bytes.fromhex("2b0e01810000 02 00 03 414243 01 02 5859".replace(" ", ""))
    assert identification_words(told) == "ABC XY"
    for cut in range(2, len(told)):
        with pytest.raises(ProtocolViolation):
            identification_words(told[:cut])
    assert server_id_words(bytes((17, 5)) + b"IO-8\xff") == "IO-8"
    assert server_id_words(bytes((17, 2, 1, 0xFF))) == "server id 01 ff"
    with pytest.raises(ProtocolViolation):
        server_id_words(bytes((17, 9, 1)))
