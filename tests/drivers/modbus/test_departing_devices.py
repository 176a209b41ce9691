"""Devices that depart from Modbus TCP: they hang up after each answer, number answers anew, or need pauses."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from waiting import soon, until

from drivers.bus.bus import Bus
from drivers.contract import (
    Cause,
    DeviceConnected,
    DeviceLost,
    DriverError,
    GateMoved,
    GatePosition,
    LineDown,
    PointChanged,
    PointState,
)
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Table
from drivers.modbus.gate import ModbusGate
from drivers.modbus.unit_requests import ModbusRequests
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module


@pytest.fixture
def gate(running, listener, relay_profile):
    quick = relay_profile.model_copy(update={"poll_ms": 20})

    @asynccontextmanager
    async def make(how, *, framing="tcp", profile=quick, **settings):
        barrier = Barrier(travel_seconds=0.2)
        far_end = ModbusFarEnd(units={1: relay_module(barrier)}, framing=framing)
        far_end.misbehave(1, how)
        async with contextlib.AsyncExitStack() as stack:
            port = await stack.enter_async_context(far_end.tcp())
            bus = Bus(name="yard", spec=LinkSpec(f"tcp://127.0.0.1:{port}", **settings))
            gate = ModbusGate(device_id=101, bus=bus, profile=profile, unit=1, framing=framing)
            await stack.enter_async_context(running(bus.run(), gate.run(listener)))
            yield far_end, bus, gate

    return make


def position(listener):
    moved = listener.of(GateMoved)
    return moved[-1].position if moved else None


async def opens_and_closes(listener, gate):
    await listener.until(lambda: position(listener) is GatePosition.CLOSED)
    await gate.open(deadline=soon(5.0))
    await listener.until(lambda: position(listener) is GatePosition.OPEN)
    await gate.close(deadline=soon(5.0), forbidden=lambda: "")
    await listener.until(lambda: position(listener) is GatePosition.CLOSED)


@pytest.mark.parametrize(("framing", "answers"), [("tcp", 1), ("rtu", 1), ("tcp", 2), ("tcp", 3), ("tcp", 10)])
async def test_a_device_that_hangs_up_after_a_few_answers_works_and_loses_no_point(gate, listener, framing, answers):
    async with gate(Misbehaviour(hangs_up_behind=answers), framing=framing) as (far_end, bus, it):
        await until(lambda: len(far_end.received) > 2 * answers + 3)  # two connections show its way
        await opens_and_closes(listener, it)
        before, polls = len(listener.reports), len(far_end.received)
        await until(lambda: len(far_end.received) > polls + 20)
        assert bus.down_reason is None
        later = listener.reports[before:]
        assert [one for one in later if isinstance(one, PointChanged) and one.state is PointState.UNKNOWN] == []
        assert len(listener.of(DeviceConnected)) == 1
        assert listener.of(DeviceLost) == []
        assert [one.wish for one in far_end.commands] == [Wish.OPEN, Wish.CLOSE]


async def test_a_device_that_hangs_up_after_each_answer_and_goes_is_lost(running, listener, relay_profile):
    far_end = ModbusFarEnd(units={1: relay_module(Barrier(travel_seconds=0.2))})
    far_end.misbehave(1, Misbehaviour(hangs_up_behind=1))
    async with contextlib.AsyncExitStack() as stack:
        async with far_end.tcp() as port:
            bus = Bus(name="yard", spec=LinkSpec(f"tcp://127.0.0.1:{port}"))
            quick = relay_profile.model_copy(update={"poll_ms": 20})
            it = ModbusGate(device_id=101, bus=bus, profile=quick, unit=1, framing="tcp")
            await stack.enter_async_context(running(bus.run(), it.run(listener)))
            await until(lambda: len(far_end.received) > 20)
        await listener.until(lambda: listener.of(DeviceLost))
        unknown = {one.point for one in listener.of(PointChanged) if one.state is PointState.UNKNOWN}
        assert "closing_loop" in unknown, "each point is unknown as soon as the line does not open"
        with pytest.raises(LineDown):
            await it.close(deadline=soon(5.0), forbidden=lambda: "")
        connected = len(listener.of(DeviceConnected))
        async with far_end.tcp(port=port):
            polls = len(far_end.received)
            await until(lambda: len(listener.of(DeviceConnected)) > connected and len(far_end.received) > polls + 5)
            await opens_and_closes(listener, it)


async def test_a_line_that_ends_between_two_connections_refuses_whoever_waits_and_comes_later():
    far_end = ModbusFarEnd(units={1: relay_module(Barrier(travel_seconds=0.2))})
    far_end.misbehave(1, Misbehaviour(hangs_up_behind=1))
    async with far_end.tcp() as port, asyncio.TaskGroup() as group:
        bus = Bus(name="yard", spec=LinkSpec(f"tcp://127.0.0.1:{port}"))
        unit = ModbusRequests(bus=bus, unit=1, framing="tcp", timeout=0.5)

        async def is_refused() -> None:
            with pytest.raises(LineDown):
                await unit.read(Read(Table.COIL, 0, 1), deadline=soon(5.0))

        running = group.create_task(bus.run())
        await until(lambda: bus.down_reason is None)
        while len(far_end.received) < 6:  # the first ones may be cut off
            with contextlib.suppress(DriverError):
                await unit.read(Read(Table.COIL, 0, 1), deadline=soon(5.0))
            await asyncio.sleep(0)
        group.create_task(is_refused())
        await asyncio.sleep(0)  # it waits for a connection
        running.cancel()
        await asyncio.wait([running])
        await is_refused()


async def test_a_device_that_hangs_up_now_and_then_has_one_connection_for_all_requests(gate, listener):
    async with gate(Misbehaviour()) as (far_end, _, it):
        for answers in (16, 11, 23):
            await until(lambda: far_end.connections)
            (before,) = far_end.connections
            once = len(far_end.received) + answers  # however late it is taken back
            far_end.misbehave(1, Misbehaviour(hangs_up_behind=once))
            await until(lambda: before not in far_end.connections)  # noqa: B023 (waited for at once)
            far_end.misbehave(1, Misbehaviour())
        polls = len(far_end.received)
        await until(lambda: far_end.connections and len(far_end.received) > polls + 15)
        (kept,) = far_end.connections
        polls = len(far_end.received)
        await until(lambda: len(far_end.received) > polls + 10)
        assert far_end.connections == {kept}
        await it.stop(deadline=soon(5.0))
    assert listener.of(DeviceLost) == []


@pytest.mark.parametrize("number", [0, 2, 0xFFFF])
async def test_a_device_that_numbers_its_answers_anew_works_where_the_link_says_so(gate, listener, number):
    async with gate(Misbehaviour(number=number), numbers_come_back=False) as (_, _, it):
        await opens_and_closes(listener, it)


async def test_a_late_answer_without_a_number_tells_no_later_poll_anything(gate, listener):
    async with gate(Misbehaviour(number=0), numbers_come_back=False) as (far_end, _, it):
        await listener.until(lambda: position(listener) is GatePosition.CLOSED)
        far_end.misbehave(1, Misbehaviour(number=0, late=0.35))
        await listener.until(lambda: listener.of(DeviceLost))
        far_end.misbehave(1, Misbehaviour(number=0))
        await opens_and_closes(listener, it)


@pytest.mark.parametrize("of_profile", [True, False])
async def test_each_request_waits_for_the_pause_that_the_device_needs(gate, listener, relay_profile, of_profile):
    pause = 0.06
    profile = relay_profile.model_copy(update={"pause_ms": 60, "poll_ms": 20}) if of_profile else relay_profile
    settings = {} if of_profile else {"pause": pause}
    async with gate(Misbehaviour(), profile=profile, **settings) as (far_end, _, it):
        await listener.until(lambda: position(listener) is GatePosition.CLOSED)
        await it.open(deadline=soon(5.0))
        await until(lambda: len(far_end.received) > 12)
        apart = [later.at - one.at for one, later in pairwise(far_end.received)]
        assert min(apart) >= pause - 0.005


@pytest.mark.parametrize(
    ("how", "cause", "words"),
    [
        (Misbehaviour(number=0), Cause.OTHER_NUMBER, "another transaction number"),
        (Misbehaviour(wrong_unit=True), Cause.OTHER_UNIT, "unit 2 answered a request to unit 1"),
    ],
)
@pytest.mark.parametrize("framing", ["tcp", "rtu"])
async def test_a_line_tells_the_cause_that_is_known(gate, listener, relay_profile, framing, how, cause, words):
    if framing == "rtu" and cause is Cause.OTHER_NUMBER:
        pytest.skip("Modbus RTU has no numbers")
    impatient = relay_profile.model_copy(update={"poll_ms": 20, "reply_ms": 80})  # what is lost rests less
    async with gate(how, framing=framing, profile=impatient) as (far_end, bus, _):
        await until(lambda: bus.quality().cause is cause and len(far_end.received) > 3)
        assert words in bus.quality().violation
        assert not bus.quality().is_serial
        far_end.misbehave(1)
        await listener.until(lambda: listener.of(DeviceConnected))
        assert (bus.quality().cause, bus.quality().violation) == (None, "")


async def test_a_refused_connection_is_told_as_the_cause(running):
    bus = Bus(name="yard", spec=LinkSpec("tcp://127.0.0.1:1"))
    async with running(bus.run()):
        await until(lambda: bus.quality().cause is Cause.REFUSED)


async def test_a_missing_port_is_told_as_the_cause(running, tmp_path):
    bus = Bus(name="yard", spec=LinkSpec(f"serial:{tmp_path}/gone"))
    async with running(bus.run()):
        await until(lambda: bus.quality().cause is Cause.NO_PORT)
