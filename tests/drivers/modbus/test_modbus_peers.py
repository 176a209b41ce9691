"""Other people's Modbus: a pymodbus server on a serial port, and mbpoll as a second master on ours."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import asynccontextmanager

import pytest
from lacks import lacks
from pymodbus.server import ModbusSerialServer
from pymodbus.simulator import DataType, SimData, SimDevice
from waiting import soon

from drivers.bus.bus import Bus
from drivers.contract import DeviceConnected, DeviceLost, GateMoved, GatePosition, PointChanged, PointState
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Table, Write, coil_word, encode_request
from drivers.modbus.gate import ModbusGate
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring
from simulation.far_ends.pseudo_terminal import PseudoTerminal


@asynccontextmanager
async def joined_ports(folder):
    """Two serial ports with a cable between them."""
    ours = PseudoTerminal(path=folder / "gateway-port", on_bytes=lambda data: theirs.write(data))  # noqa: PLW0108 (each knows the other)
    theirs = PseudoTerminal(path=folder / "server-port", on_bytes=ours.write)
    ports = (ours, theirs)
    for port in ports:
        port.plug_in()
    try:
        yield [port.path for port in ports]
    finally:
        for port in ports:
            port.unplug()


async def test_a_came_barrier_in_pymodbuss_rtu_server(tmp_path, running, listener, came_profile):
    """Registers 40101 on and outputs 1 to 16, as CAME has them; a pseudo-terminal knows no parity."""
    bits = SimData(0, values=[False] * 16, datatype=DataType.BITS)
    registers = SimData(100, values=[17, 0, 0, 0, 0, 0, 0, 0, 0, 21], datatype=DataType.REGISTERS)
    device = SimDevice(1, simdata=([bits], [bits], [registers], [registers]))
    async with joined_ports(tmp_path) as (ours, theirs):
        server = ModbusSerialServer(device, port=str(theirs), baudrate=38_400)
        await server.serve_forever(background=True)
        try:
            bus = Bus(name="line", spec=LinkSpec(f"serial:{ours}", baud=38_400))
            gate = ModbusGate(device_id=101, bus=bus, profile=came_profile, unit=1, framing="rtu")
            async with running(bus.run(), gate.run(listener)):
                await listener.until(lambda: listener.of(GateMoved))
                assert listener.of(GateMoved)[0].position is GatePosition.CLOSED
                await gate.open(deadline=soon())
                assert await server.async_getValues(1, 1, 0, 4) == [False, True, False, False]
                await server.async_setValues(1, 6, 100, [32])
                await listener.until(lambda: listener.of(GateMoved)[-1].position is GatePosition.OPENING)
                await server.async_setValues(1, 6, 100, [16])
                await listener.until(lambda: listener.of(GateMoved)[-1].position is GatePosition.OPEN)
                assert not listener.of(DeviceLost)
        finally:
            await server.shutdown()


@pytest.fixture
def mbpoll():
    program = shutil.which("mbpoll")
    if program is None:
        lacks("mbpoll is missing: apt-get install mbpoll")

    async def run(*words):
        process = await asyncio.create_subprocess_exec(
            program, "-m", "rtu", "-a", "1", "-b", "38400", "-P", "none", "-1", "-q", *words,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        async with asyncio.timeout(30):
            told, _ = await process.communicate()
        return process.returncode, told.decode()

    return run


class Tapped(ModbusFarEnd):
    """A far end that keeps what crosses its line."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.heard = bytearray()
        self.crossed = bytearray()

    def take(self, buffer, outlet):
        self.heard += buffer
        self.crossed += buffer
        send = outlet.send

        class Tap:
            hang_up = outlet.hang_up

            @staticmethod
            def send(data):
                self.crossed.extend(data)
                send(data)

        super().take(buffer, Tap)


@pytest.fixture
async def relay_line(tmp_path, relay_profile):
    barrier = Barrier(travel_seconds=0.2)
    far_end = Tapped(units={1: ProfileWiring(profile=relay_profile, barrier=barrier)}, framing="rtu")
    async with far_end.serial(path=tmp_path / "line") as terminal:
        yield far_end, terminal, barrier


@pytest.mark.long("another maker's Modbus master")
async def test_mbpoll_and_we_send_the_same_bytes(mbpoll, relay_line):
    far_end, terminal, _ = relay_line
    status, told = await mbpoll("-t", "1", "-r", "1", "-c", "6", str(terminal.path))
    assert status == 0, told
    assert "[1]: \t1" in told
    read = encode_request("rtu", unit=1, tag=0, request=Read(Table.DISCRETE_INPUT, 0, 6))
    assert bytes(far_end.heard) == read
    far_end.heard.clear()
    status, told = await mbpoll("-t", "0", "-r", "1", str(terminal.path), "1")
    assert status == 0, told
    assert bytes(far_end.heard) == encode_request(
        "rtu", unit=1, tag=0, request=Write(Table.COIL, 0, coil_word(on=True))
    )
    assert [command.wish for command in far_end.commands] == [Wish.OPEN]


@pytest.mark.long("another maker's Modbus master")
async def test_a_second_masters_traffic_is_never_ours(mbpoll, relay_line, running, listener, relay_profile):
    """Somebody else polls the same line: what he asked while the beam was cut must not be heard as our answer."""
    far_end, terminal, barrier = relay_line
    barrier.set_photocell(interrupted=True, now=time.monotonic())
    for words in (("-t", "1", "-r", "5", "-c", "2"), ("-t", "0", "-r", "1", "-c", "3")):
        status, told = await mbpoll(*words, str(terminal.path))
        assert status == 0, told
    barrier.set_photocell(interrupted=False, now=time.monotonic())
    trace = bytes(far_end.crossed)
    assert len(trace) > 20
    bus = Bus(name="line", spec=LinkSpec(f"serial:{terminal.path}", baud=38_400))
    gate = ModbusGate(device_id=101, bus=bus, profile=relay_profile, unit=1, framing="rtu")
    async with running(bus.run(), gate.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        for _ in range(10):
            terminal.write(trace)
            await asyncio.sleep(0.04)  # the pace of the other master
        await gate.open(deadline=soon())
        await listener.until(lambda: listener.of(GateMoved)[-1].position is GatePosition.OPEN)
    assert {r.point for r in listener.of(PointChanged) if r.state is PointState.ON} <= {"closed_limit", "open_limit"}
