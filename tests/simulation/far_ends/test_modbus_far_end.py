"""The simulated devices, asked by somebody else's client where there is one."""

from __future__ import annotations

import asyncio
import time

import pytest
from pyModbusTCP.client import ModbusClient
from waiting import until

from drivers.modbus.frames import Read, Refusal, Table, Values, Write, Written, encode_request, parse_reply
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring, relay_module


@pytest.fixture
def barrier():
    return Barrier(travel_seconds=0.2)


@pytest.fixture
def far_end(barrier):
    return ModbusFarEnd(units={1: relay_module(barrier)})


async def test_pymodbustcps_client_opens_the_barrier(far_end):
    async with far_end.tcp() as port:
        client = ModbusClient(host="127.0.0.1", port=port, unit_id=1, timeout=30)
        try:
            assert await asyncio.to_thread(client.read_discrete_inputs, 0, 6) == [True] + [False] * 5
            assert await asyncio.to_thread(client.write_single_coil, 0, True)

            async def is_open():
                return (await asyncio.to_thread(client.read_discrete_inputs, 1, 1))[0]

            await until(is_open)
            assert await asyncio.to_thread(client.read_holding_registers, 0, 1) is None
            assert client.last_except == 2
        finally:
            client.close()
        (command,) = far_end.commands
        assert command.wish is Wish.OPEN
        assert command.at <= time.monotonic()


async def ask(port, request, *, framing="tcp", unit=1, within=30.0):
    """The answer, or None when none comes; the bytes of a hang-up are empty."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(encode_request(framing, unit=unit, tag=5, request=request))
        received = b""
        async with asyncio.timeout(within):
            while data := await reader.read(1):
                received += data
                reply = parse_reply(framing, unit=unit, tag=5, request=request, received=received)
                if reply is not None:
                    return reply
            return "hung up"
    except TimeoutError:
        return None
    finally:
        writer.transport.abort()


OPEN = Write(Table.COIL, 0, 0xFF00)


async def test_commands_stay_noted_however_many_polls_follow(barrier, monkeypatch):
    monkeypatch.setattr("simulation.far_ends.line_devices.MOST_REQUESTS", 3)
    far_end = ModbusFarEnd(units={1: relay_module(barrier)})
    async with far_end.tcp() as port:
        assert await ask(port, OPEN) == Written()
        for _ in range(4):
            assert isinstance(await ask(port, Read(Table.DISCRETE_INPUT, 0, 6)), Values)
    assert [command.wish for command in far_end.commands] == [Wish.OPEN]
    assert len(far_end.received) == 3


async def test_a_unit_that_is_not_there_is_silent(far_end):
    async with far_end.tcp() as port:
        assert await ask(port, OPEN, unit=9, within=0.1) is None


async def test_noise_on_an_rtu_line_is_forgotten(barrier):
    far_end = ModbusFarEnd(units={1: ProfileWiring.shipped("came-gard-ptx", barrier=barrier)}, framing="rtu")
    async with far_end.tcp() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x01\x06noise!")
        await asyncio.sleep(0.05)  # the device hears them as two
        read = Read(Table.HOLDING_REGISTER, 100, 2)
        writer.write(encode_request("rtu", unit=1, tag=0, request=read))
        received = await asyncio.wait_for(reader.readexactly(9), 30)
        assert parse_reply("rtu", unit=1, tag=0, request=read, received=received) == Values((17, 0))
        writer.transport.abort()


def test_came_tells_every_state(barrier):
    wiring = ProfileWiring.shipped("came-gard-ptx", barrier=barrier)

    def state(now):
        return wiring.read(Read(Table.HOLDING_REGISTER, 100, 1), now=now)

    def write(address, now):
        return wiring.write(Write(Table.COIL, address, 0xFF00), now=now)

    assert state(1.0) == Values((17,))
    assert write(1, 1.0) == Written()
    assert state(1.1) == Values((32,))
    assert write(0, 1.1) == Written()
    assert state(1.2) == Values((18,))
    assert write(1, 1.2) == Written()
    assert state(2.0) == Values((16,))
    assert write(3, 2.0) == Written()
    assert state(2.1) == Values((33,))
    assert write(2, 2.1) == Refusal(2)
    assert wiring.read(Read(Table.COIL, 100, 2), now=2.1) == Refusal(2)


def test_the_relay_refuses_what_it_does_not_have(barrier):
    wiring = relay_module(barrier)
    assert wiring.write(Write(Table.COIL, 3, 0xFF00), now=0) == Refusal(2)
    assert wiring.write(Write(Table.COIL, 0, 7), now=0) == Refusal(3)
    assert wiring.write(Write(Table.COIL, 0, 0), now=0) == Written()
    assert wiring.read(Read(Table.DISCRETE_INPUT, 0, 7), now=0) == Refusal(2)
    assert wiring.read(Read(Table.COIL, 0, 3), now=0) == Values((0, 0, 0))
    assert barrier.state(now=9).closed_limit
