"""Counts of answers and failures of a line's units, on a real serial line with faulty Modbus RTU units."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import tty
from contextlib import asynccontextmanager
from itertools import zip_longest

import pytest
from pymodbus.framer import FramerRTU
from waiting import until

from drivers.bus import unit_states
from drivers.bus.bus import Bus
from drivers.bus.line_quality import REPLY_BOUNDS, Failure, LineAnswers, LineFault, UnitFault
from drivers.contract import DriverError
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Table
from drivers.modbus.unit_requests import ModbusRequests

ALLOWED = 0.06
FIRST = Read(Table.HOLDING_REGISTER, 0, 1)


def frame(*content: int) -> bytes:
    return bytes(content) + FramerRTU.compute_CRC(bytes(content)).to_bytes(2, "big")


class Wires:
    """A line's far end: units 1 and 2 hold a register each, and whatever happens to a line may happen to them."""

    def __init__(self, path):
        self.path = path
        self.silent: set[int] = set()
        self.shared: set[int] = set()  # addresses that a second unit has, too
        self.delays: dict[int, float] = {}
        self.echoes = False
        self.spoils = False
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        path.symlink_to(os.ttyname(self._slave))
        asyncio.get_running_loop().add_reader(self._master, self._hear)

    def close(self):
        asyncio.get_running_loop().remove_reader(self._master)
        self.path.unlink()
        os.close(self._master)
        os.close(self._slave)

    def send(self, data):
        os.write(self._master, bytes(one ^ 0x55 for one in data) if self.spoils else data)

    def _hear(self):
        request = os.read(self._master, 256)
        unit = request[0]
        if self.echoes:
            self.send(request)
        if unit in self.silent:
            return
        answer = frame(unit, 3, 2, 0, unit)
        if unit in self.shared:  # both drive the line at once, the second a byte later
            other = b"\xff" + frame(unit, 3, 2, 0, 99)
            answer = bytes(one & two for one, two in zip_longest(answer, other, fillvalue=0xFF))
        asyncio.get_running_loop().call_later(self.delays.get(unit, 0.0), self.send, answer)


@pytest.fixture(autouse=True)
def _short_rests(monkeypatch):
    """Let a silent unit be asked again soon."""
    monkeypatch.setattr(unit_states, "REST_SHARE", 0.5)
    monkeypatch.setattr(unit_states, "REST_SHARE_BESIDE_LIVE", 0.5)


@pytest.fixture
async def wires(tmp_path):
    wires = Wires(tmp_path / "line")
    yield wires
    wires.close()


@pytest.fixture
def polled(wires, running):
    """A bus on the wires, whose units 1 and 2 are polled."""

    async def poll(bus, unit):
        requests = ModbusRequests(bus=bus, unit=unit, framing="rtu", timeout=ALLOWED)
        while True:
            with contextlib.suppress(DriverError):
                await requests.read(FIRST, deadline=time.monotonic() + 1.0)
            await asyncio.sleep(0.01)  # the pace of somebody who polls

    @asynccontextmanager
    async def make():
        bus = Bus(name="yard", spec=LinkSpec(f"serial:{wires.path}", baud=115_200))
        async with running(bus.run(), poll(bus, 1), poll(bus, 2)):
            yield bus

    return make


def faults(bus):
    return {unit.unit: unit.fault for unit in bus.quality().units}


def answers(bus):
    return sum(sum(unit.reply_times) for unit in bus.quality().units)


async def test_units_that_answer_have_no_fault(polled):
    async with polled() as bus:
        await until(lambda: answers(bus) > 100 and bus.quality().fault is None)
        assert faults(bus) == {1: None, 2: None}
        for unit in bus.quality().units:
            assert 0 < unit.reply_seconds < ALLOWED
            assert len(unit.reply_times) == len(REPLY_BOUNDS) + 1
            assert unit.allowed_seconds == ALLOWED


async def test_a_line_that_cannot_be_opened_is_down_and_says_why(running, tmp_path):
    bus = Bus(name="yard", spec=LinkSpec(f"serial:{tmp_path}/gone"))
    async with running(bus.run()):
        await until(lambda: "no such port" in bus.quality().down_reason)
        assert bus.quality().fault is LineFault.DOWN


async def test_one_silent_unit_is_the_units_fault_and_all_of_them_are_the_lines(wires, polled):
    async with polled() as bus:
        wires.silent = {2}
        await until(lambda: faults(bus) == {1: None, 2: UnitFault.SILENT} and bus.quality().fault is None)
        wires.silent = {1, 2}
        await until(lambda: bus.quality().fault is LineFault.SILENT)
        wires.silent = set()
        await until(lambda: bus.quality().fault is None and faults(bus) == {1: None, 2: None})


async def test_two_units_at_one_address_are_told_from_a_line_that_nobody_understands(wires, polled):
    async with polled() as bus:
        wires.shared = {2}
        await until(lambda: faults(bus) == {1: None, 2: UnitFault.GARBLED} and bus.quality().fault is None)
        wires.shared = set()
        wires.spoils = True
        await until(lambda: bus.quality().fault is LineFault.GARBLED)
        wires.spoils = False
        await until(lambda: bus.quality().fault is None)


async def test_an_echo_without_answers_is_the_lines_fault(wires, polled):
    async with polled() as bus:
        wires.echoes = True
        wires.silent = {1, 2}
        await until(lambda: bus.quality().fault is LineFault.ECHOES)
        wires.silent = set()  # behind the echo, an answer is found
        await until(lambda: faults(bus) == {1: None, 2: None})
        assert bus.quality().fault is LineFault.ECHOES, "the settings of the line do not say so"
        wires.echoes = False
        await until(lambda: bus.quality().fault is None)


async def test_a_slow_unit_is_slow_by_what_it_is_allowed(wires, polled):
    async with polled() as bus:
        wires.delays[1] = 0.7 * ALLOWED
        await until(lambda: faults(bus).get(1) is UnitFault.SLOW)
        assert faults(bus)[2] is None


async def test_another_master_on_the_line_disturbs_it(wires, polled):
    async with polled() as bus:
        await until(lambda: answers(bus) > 10)
        async with asyncio.timeout(20.0):
            while bus.quality().fault is not LineFault.DISTURBED:
                wires.send(frame(7, 3, 0, 0, 0, 1))
                await asyncio.sleep(0.013)  # the pace of the other master


def test_a_unit_that_often_falls_silent_is_unreliable_and_one_long_silence_is_not():
    def fault(outcomes):
        told = LineAnswers(line="yard")
        told.polled(1, allowed=0.3)
        for is_answered in outcomes:
            if is_answered:
                told.answered(1, took=0.01, now=0.0)
            else:
                told.failed(1, Failure.SILENT, now=0.0)
        (unit,) = told.quality(down_reason="", now=0.0).units
        return unit.fault

    assert fault([True, False] * 10 + [True]) is UnitFault.UNRELIABLE
    assert fault([True] + [False] * 40 + [True]) is None
    assert fault([True] + [False] * 3) is UnitFault.SILENT
    assert fault([True] + [False] * 2) is None
    assert fault([True, False] * 10 + [True] * 96) is None


def test_an_hour_forgets_what_was_before_it():
    told = LineAnswers(line="yard")
    told.answered(1, took=0.001, now=100.0)
    told.failed(1, Failure.GARBLED, now=110.0)
    told.answered(1, took=0.03, now=3_000.0)

    def hour(now):
        (unit,) = told.quality(down_reason="", now=now).units
        assert sum(unit.reply_times) == 2
        return unit.hour

    assert (hour(3_000.0).reply_times[0], hour(3_000.0).reply_times[4]) == (1, 1)
    assert hour(3_000.0).failed == {Failure.GARBLED: 1}
    assert hour(3_000.0).lost_share == 1 / 3
    assert (sum(hour(4_000.0).reply_times), hour(4_000.0).failed) == (1, {})
    assert (sum(hour(9_000.0).reply_times), hour(9_000.0).lost_share) == (0, 0.0)


async def test_unit_whose_numbered_answers_come_too_late_is_slow_and_not_silent():
    """A Modbus TCP module behind a slow converter; each answer comes after its request was given up."""

    async def serve(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readexactly(6)
                await reader.readexactly(int.from_bytes(head[4:], "big"))
                asyncio.get_running_loop().call_later(
                    0.15, writer.write, head[:4] + bytes.fromhex("0005 01 03 02 0007")
                )

    server = await asyncio.start_server(serve, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.TaskGroup() as group:
        bus = Bus(name="gates", spec=LinkSpec(f"tcp://127.0.0.1:{port}"))
        serving = group.create_task(bus.run())
        requests = ModbusRequests(bus=bus, unit=1, framing="tcp", timeout=0.1)

        async def ask():
            while True:
                with contextlib.suppress(DriverError):
                    await requests.read(FIRST, deadline=time.monotonic() + 1)
                await asyncio.sleep(0.2)  # its late answer comes while nobody asks

        asking = group.create_task(ask())
        await until(lambda: faults(bus) == {1: UnitFault.SLOW} and bus.quality().fault is None)
        quality = bus.quality()
        asking.cancel()
        assert quality.strays == 0
        assert 0.1 < quality.units[0].reply_seconds < 5
        serving.cancel()


def test_late_answer_is_counted_in_place_of_the_silence():
    told = LineAnswers(line="gates")
    for _ in range(5):
        told.failed(1, Failure.SILENT, now=0.0)
        told.came_late(1, took=0.45, now=0.0)
    (unit,) = told.quality(down_reason="", now=1.0).units
    assert (unit.failing, unit.failures, unit.reply_seconds) == (Failure.LATE, 5, 0.45)
    assert {kind: count for kind, count in unit.failed.items() if count} == {Failure.LATE: 5}
