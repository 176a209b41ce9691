"""A gate over real sockets and pseudo-terminals, against well-behaved and misbehaving far ends."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from contextlib import asynccontextmanager
from functools import partial

import pytest
from descriptors import open_files
from pyModbusTCP.server import DataBank, ModbusServer
from waiting import soon, until

from drivers.bus.bus import Bus
from drivers.contract import (
    DeadlinePassed,
    DeviceConnected,
    DeviceFault,
    DeviceLost,
    GateMoved,
    GatePosition,
    LineDown,
    LinkError,
    LossExplained,
    NotPermitted,
    PointChanged,
    PointState,
)
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Refusal, Table, Write
from drivers.modbus.gate import ModbusGate
from drivers.modbus.profile import PulseBy, load_profile
from drivers.modbus.unit_requests import ModbusRequests
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring, relay_module

LINES = ["tcp", "rtu over tcp", "rtu over a serial port"]


class Field:
    """A barrier, its far end, the bus to it and the gate."""

    def __init__(self, barrier, far_end, bus, gate, terminal=None):
        self.barrier = barrier
        self.far_end = far_end
        self.bus = bus
        self.gate = gate
        self.terminal = terminal

    def wishes(self):
        return [command.wish for command in self.far_end.commands]


@pytest.fixture
def field(tmp_path, running, listener, relay_profile):
    @asynccontextmanager
    async def make(line="tcp", *, profile=relay_profile, wiring=relay_module, travel=0.3, unit=1, how=None):
        barrier = Barrier(travel_seconds=travel)
        framing = "tcp" if line == "tcp" else "rtu"
        far_end = ModbusFarEnd(units={unit: wiring(barrier=barrier)}, framing=framing)
        if how is not None:
            far_end.misbehave(unit, how)
        terminal = None
        async with contextlib.AsyncExitStack() as stack:
            if line == "rtu over a serial port":
                terminal = await stack.enter_async_context(far_end.serial(path=tmp_path / "bus"))
                spec = LinkSpec(f"serial:{terminal.path}", baud=115_200)
            else:
                port = await stack.enter_async_context(far_end.tcp())
                spec = LinkSpec(f"tcp://127.0.0.1:{port}", baud=115_200)
            bus = Bus(name="gates", spec=spec)
            gate = ModbusGate(device_id=101, bus=bus, profile=profile, unit=unit, framing=framing)
            await stack.enter_async_context(running(bus.run(), gate.run(listener)))
            yield Field(barrier, far_end, bus, gate, terminal)

    return make


@pytest.mark.parametrize("line", LINES)
async def test_opens_stops_and_closes_on_every_kind_of_line(field, listener, line):
    async with field(line, travel=0.8) as it:
        await listener.until(lambda: listener.positions() == [GatePosition.CLOSED])
        await it.gate.open(deadline=soon())
        await listener.until(lambda: listener.positions()[-1] is GatePosition.OPEN)
        await it.gate.close(deadline=soon(), forbidden=lambda: "")
        await listener.until(lambda: listener.positions()[-1] is GatePosition.CLOSING)
        await until(lambda: it.barrier.state(now=time.monotonic()).opening < 0.6)
        await it.gate.stop(deadline=soon())
        await listener.until(lambda: listener.positions()[-1] is GatePosition.STOPPED)
        await it.gate.open(deadline=soon())
        await listener.until(lambda: listener.positions()[-1] is GatePosition.OPEN)
        assert it.wishes() == [Wish.OPEN, Wish.CLOSE, Wish.STOP, Wish.OPEN]
    assert listener.positions() == [
        GatePosition.CLOSED,
        GatePosition.OPENING,
        GatePosition.OPEN,
        GatePosition.CLOSING,
        GatePosition.STOPPED,
        GatePosition.OPENING,
        GatePosition.OPEN,
    ]
    assert len(listener.of(DeviceConnected)) == 1
    assert not listener.of(DeviceLost)


async def test_a_came_barrier_tells_its_own_position(field, listener, came_profile):
    wiring = partial(ProfileWiring, profile=came_profile)
    async with field("rtu over a serial port", profile=came_profile, wiring=wiring) as it:
        await listener.until(lambda: listener.positions() == [GatePosition.CLOSED])
        await it.gate.open(deadline=soon())
        await listener.until(lambda: listener.positions()[-1] is GatePosition.OPEN)
        await it.gate.close(deadline=soon(), forbidden=lambda: "")
        await listener.until(lambda: listener.positions()[-1] is GatePosition.CLOSED)
        assert it.wishes() == [Wish.OPEN, Wish.CLOSE]


async def test_points_follow_the_inputs(field, listener):
    async with field() as it:
        await listener.until(lambda: len(listener.of(PointChanged)) >= 6)
        it.barrier.set_arming_loop(occupied=True, now=time.monotonic())
        it.barrier.set_photocell(interrupted=True, now=time.monotonic())

        def latest():
            return {report.point: report.state for report in listener.of(PointChanged)}

        await listener.until(
            lambda: latest()["arming_loop"] is PointState.ON and latest()["photocell"] is PointState.ON
        )
        assert latest()["closing_loop"] is PointState.OFF


async def test_what_does_not_change_is_refreshed(field, listener):
    async with field():
        await listener.until(lambda: len(listener.of(GateMoved)) >= 3)
    moments = [report.at for report in listener.of(GateMoved)]
    assert all(later - earlier < 2.0 for earlier, later in itertools.pairwise(moments))


@pytest.mark.parametrize(
    ("line", "how", "words"),
    [
        ("tcp", Misbehaviour(deaf=True), "did not answer"),
        ("tcp", Misbehaviour(wrong_unit=True), "unit 2 answered"),
        ("rtu over tcp", Misbehaviour(wrong_unit=True), "did not answer"),
        ("rtu over a serial port", Misbehaviour(corrupt=True), "check sum"),
        ("tcp", Misbehaviour(exception=2), "illegal data address"),
        ("tcp", Misbehaviour(late=0.7), "did not answer"),
    ],
    ids=str,
)
async def test_a_misbehaving_device_is_lost_once_and_found_again_once(field, listener, relay_profile, line, how, words):
    async with field(line, profile=relay_profile.model_copy(update={"reply_ms": 150})) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        asked = len(it.far_end.received)
        it.far_end.misbehave(1, how)
        await listener.until(lambda: listener.of(DeviceLost))
        assert len(it.far_end.received) - asked <= 6
        assert words in listener.of(DeviceLost)[0].reason or "does not answer" in listener.of(DeviceLost)[0].reason
        it.far_end.misbehave(1)
        count = len(listener.reports)

        def since():  # the cause of a loss may be told behind it
            return [report for report in listener.reports[count:] if not isinstance(report, LossExplained)]

        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
        await listener.until(lambda: len(since()) >= 8)
        assert len(listener.of(DeviceLost)) == 1
        fresh = since()
        assert [type(report) for report in fresh[:2]] == [DeviceConnected, GateMoved]
        assert {report.point for report in fresh if isinstance(report, PointChanged)} == {
            "closed_limit",
            "open_limit",
            "arming_loop",
            "closing_loop",
            "photocell",
            "fault",
        }


async def test_a_refused_command_says_why(field, listener):
    async with field() as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        it.far_end.misbehave(1, Misbehaviour(exception=4))
        with pytest.raises(DeviceFault, match="device failure"):
            await it.gate.open(deadline=soon())
        it.far_end.misbehave(1, Misbehaviour(exception=11))
        with pytest.raises(LinkError, match="target did not respond"):
            await it.gate.open(deadline=soon())
        assert not it.barrier.state(now=time.monotonic()).moving


class BusyWiring(ProfileWiring):
    """A controller that is busy at the first attempts to switch something on."""

    def write(self, write, *, now):
        self.times -= 1
        return Refusal(6) if self.times >= 0 else super().write(write, now=now)


def busy(barrier, times=2):
    wiring = BusyWiring.shipped("relay-barrier", barrier=barrier)
    wiring.times = times
    return wiring


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("order", ["open", "close", "stop"])
async def test_a_command_that_a_busy_device_has_not_taken_is_sent_until_it_is(field, listener, line, order):
    asked = []
    async with field(line, wiring=busy) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        await getattr(it.gate, order)(deadline=soon(), forbidden=lambda: asked.append(1) or "")
        assert it.wishes() == 3 * [Wish(order)]
    assert len(asked) == 3, "asked before each attempt"


async def test_a_pulse_that_a_busy_device_has_not_begun_is_not_ended(field, listener, held_profile):
    async with field(profile=held_profile, wiring=partial(busy, times=3)) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        await it.gate.open(deadline=soon())
        assert coil_writes(it.far_end)[-2:] == 2 * [(0, 0xFF00)]


@pytest.mark.parametrize("order", ["open", "close", "stop"])
async def test_a_device_that_stays_busy_is_asked_until_the_deadline(field, listener, order):
    async with field(wiring=partial(busy, times=1000)) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        with pytest.raises(DeviceFault, match="busy"):
            await getattr(it.gate, order)(deadline=time.monotonic() + 0.35, forbidden=lambda: "")
        assert len(it.wishes()) > 1


async def test_a_busy_device_is_named_where_the_next_attempt_comes_too_late(field, listener, monkeypatch):
    async with field(wiring=partial(busy, times=1000)) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        write, tries = ModbusRequests.write, []

        async def late(requests, *args, **settings):
            tries.append(1)
            if len(tries) > 1:
                raise DeadlinePassed("the line was not free before the deadline; nothing was sent")
            await write(requests, *args, **settings)

        monkeypatch.setattr(ModbusRequests, "write", late)
        with pytest.raises(DeviceFault, match="busy"):
            await it.gate.open(deadline=soon())


async def test_what_forbids_a_close_forbids_it_after_a_busy_answer_too(field, listener):
    reasons = ["", "the closing loop is active"]
    async with field(wiring=partial(busy, times=1000)) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        with pytest.raises(NotPermitted, match="closing loop"):
            await it.gate.close(deadline=soon(), forbidden=lambda: reasons.pop(0))
        assert it.wishes() == [Wish.CLOSE]


async def test_a_step_that_a_busy_device_has_not_taken_is_sent_again(field, listener, relay_profile):
    step = relay_profile.commands.open.model_copy(update={"idempotent": False})
    commands = relay_profile.commands.model_copy(update={"open": step})
    profile = relay_profile.model_copy(update={"commands": commands})
    async with field(profile=profile, wiring=busy) as it:
        await listener.until(lambda: listener.positions() == [GatePosition.CLOSED])
        await it.gate.open(deadline=soon())
        assert it.wishes() == 3 * [Wish.OPEN]


@pytest.mark.parametrize("code", [1, 2, 3, 4, 8])
async def test_any_other_refusal_is_final(field, listener, code):
    async with field() as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        it.far_end.misbehave(1, Misbehaviour(exception=code))
        with pytest.raises(DeviceFault, match="refused"):
            await it.gate.open(deadline=soon())
        assert it.wishes() == [Wish.OPEN]


@pytest.mark.parametrize("line", LINES)
async def test_a_command_without_an_answer_is_sent_once(field, listener, line):
    async with field(line) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        it.far_end.misbehave(1, Misbehaviour(silent=True))
        with pytest.raises(LinkError, match="did not answer"):
            await it.gate.open(deadline=soon())
        it.far_end.misbehave(1)
        await listener.until(lambda: listener.positions()[-1] is GatePosition.OPEN)
        assert it.wishes() == [Wish.OPEN]


async def test_a_garbled_acknowledgement_is_no_acknowledgement(field, listener):
    async with field("rtu over tcp") as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        it.far_end.misbehave(1, Misbehaviour(corrupt=True))
        with pytest.raises(LinkError, match="garbage"):
            await it.gate.open(deadline=soon())


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("order", ["open", "close", "stop"])
async def test_a_command_that_is_forbidden_while_it_waits_for_the_line_is_never_sent(field, listener, line, order):
    async with field(line) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        command = getattr(it.gate, order)(deadline=soon(), forbidden=lambda: "a later command has taken its place")
        with pytest.raises(NotPermitted, match="a later command"):
            await command
        assert it.wishes() == []


async def test_a_serial_port_pulled_out_and_put_back(field, listener):
    async with field("rtu over a serial port") as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        device = it.terminal.device
        assert device in open_files()
        it.terminal.unplug()
        await listener.until(lambda: listener.of(DeviceLost))
        with pytest.raises(LinkError):
            await it.gate.open(deadline=soon())
        assert device not in open_files()
        it.terminal.plug_in()
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
        await it.gate.open(deadline=soon())
        assert it.wishes() == [Wish.OPEN]


async def test_a_stop_goes_out_beside_dead_units(tmp_path, running, listener, relay_profile):
    barrier = Barrier(travel_seconds=5)
    far_end = ModbusFarEnd(units={1: relay_module(barrier)}, framing="rtu")
    async with far_end.serial(path=tmp_path / "bus") as terminal:
        bus = Bus(name="gates", spec=LinkSpec(f"serial:{terminal.path}", baud=38_400))
        gates = [
            ModbusGate(device_id=100 + unit, bus=bus, profile=relay_profile, unit=unit, framing="rtu")
            for unit in (1, 2, 3, 4)
        ]
        async with running(bus.run(), *(gate.run(listener) for gate in gates)):
            await listener.until(lambda: any(report.device_id == 101 for report in listener.of(DeviceConnected)))
            await gates[0].open(deadline=soon())
            for _ in range(5):
                await gates[0].stop(deadline=soon())
            await listener.until(lambda: {report.device_id for report in listener.of(DeviceLost)} == {102, 103, 104})
            assert 101 not in {report.device_id for report in listener.of(DeviceLost)}


async def test_a_late_answer_never_tells_the_next_poll_what_was(field, listener):
    """RTU answers carry no number: what was read before the loop was occupied must not count as read after it."""
    async with field("rtu over tcp") as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        it.far_end.misbehave(1, Misbehaviour(late=0.6))
        asked = len(it.far_end.received)
        await until(lambda: len(it.far_end.received) != asked)
        occupied_at = time.monotonic()
        it.barrier.set_closing_loop(occupied=True, now=occupied_at)
        it.far_end.misbehave(1)

        def loop_reports():
            return [r for r in listener.of(PointChanged) if r.point == "closing_loop" and r.at > occupied_at + 0.02]

        await listener.until(loop_reports)
        assert {report.state for report in loop_reports()} == {PointState.ON}


async def test_a_host_pulse_is_ended_even_when_the_first_release_fails(field, listener, relay_profile):
    profile = relay_profile.model_copy(
        update={
            "commands": relay_profile.commands.model_copy(
                update={
                    "open": relay_profile.commands.open.model_copy(update={"pulse_by": PulseBy.HOST, "pulse_ms": 100})
                }
            )
        }
    )
    async with field(profile=profile) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        await it.gate.open(deadline=soon())
        it.far_end.misbehave(1, Misbehaviour(exception=6))

        def writes():
            return [r.request.value for r in it.far_end.received if isinstance(r.request, Write)]

        await until(lambda: len(writes()) >= 3)
        it.far_end.misbehave(1)
        count = len(writes())
        await until(lambda: len(writes()) > count)
        after, polls = len(writes()), len(it.far_end.received)
        await until(lambda: len(it.far_end.received) >= polls + 4)
        assert writes()[0] == 0xFF00
        assert set(writes()[1:]) == {0}
        assert len(writes()) == after


def coil_writes(far_end):
    return [(r.request.address, r.request.value) for r in far_end.received if isinstance(r.request, Write)]


@pytest.fixture
def held_profile(profiles):
    """Its pulses are the host's, and longer than any of these tests."""
    profile = load_profile(profiles / "relay-and-inputs.toml")
    named = ("open", "close", "stop")
    longer = {name: getattr(profile.commands, name).model_copy(update={"pulse_ms": 60_000}) for name in named}
    return profile.model_copy(update={"commands": profile.commands.model_copy(update=longer)})


@pytest.mark.parametrize("order", ["open", "close"])
async def test_a_host_pulse_that_is_on_when_the_gate_is_stopped_is_ended(running, listener, held_profile, order):
    far_end = ModbusFarEnd(units={1: ProfileWiring(profile=held_profile, barrier=Barrier())})
    async with far_end.tcp() as port:
        bus = Bus(name="gates", spec=LinkSpec(f"tcp://127.0.0.1:{port}"))
        gate = ModbusGate(device_id=101, bus=bus, profile=held_profile, unit=1, framing="tcp")
        async with running(bus.run()):  # the line outlives the gate, as in the house
            async with running(gate.run(listener)):
                await listener.until(lambda: listener.of(DeviceConnected))
                if order == "open":
                    await gate.open(deadline=soon())
                else:
                    await gate.close(deadline=soon(), forbidden=lambda: "")
            coil = ["open", "close"].index(order)
            assert coil_writes(far_end) == [(coil, 0xFF00), (coil, 0)]
            with pytest.raises(LineDown, match="stops"):
                await gate.open(deadline=soon())


async def test_an_opposite_pulse_is_ended_before_a_command(field, listener, held_profile):
    async with field(profile=held_profile, wiring=partial(ProfileWiring, profile=held_profile)) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        await it.gate.close(deadline=soon(), forbidden=lambda: "")
        await it.gate.open(deadline=soon())
        await it.gate.open(deadline=soon())
        await it.gate.stop(deadline=soon())
        on, off = 0xFF00, 0
        opened = [(0, on), (0, on)]
        assert coil_writes(it.far_end) == [(1, on), (1, off), *opened, (0, off), (0, off), (2, on)]


async def test_no_command_goes_out_while_the_opposite_output_cannot_be_switched_off(field, listener, held_profile):
    async with field(profile=held_profile, wiring=partial(ProfileWiring, profile=held_profile)) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        await it.gate.close(deadline=soon(), forbidden=lambda: "")
        it.far_end.misbehave(1, Misbehaviour(exception=6))
        with pytest.raises(NotPermitted, match="the output to close could not be switched off"):
            await it.gate.open(deadline=time.monotonic() + 0.4)
        assert (0, 0xFF00) not in coil_writes(it.far_end)
        it.far_end.misbehave(1)
        await it.gate.open(deadline=soon())
        assert coil_writes(it.far_end)[-2:] == [(1, 0), (0, 0xFF00)]


async def test_opposite_commands_at_once_never_have_two_outputs_on(field, listener, held_profile):
    async with field(profile=held_profile, wiring=partial(ProfileWiring, profile=held_profile)) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        async with asyncio.TaskGroup() as group:
            group.create_task(it.gate.close(deadline=soon(), forbidden=lambda: ""))
            group.create_task(it.gate.open(deadline=soon()))
            group.create_task(it.gate.stop(deadline=soon()))
        is_on = set()
        for coil, value in coil_writes(it.far_end):
            is_on = is_on | {coil} if value else is_on - {coil}
            assert len(is_on) <= 1
        assert is_on == {2}


async def test_a_gate_that_is_stopped_while_its_output_is_released_still_releases_it(running, listener, held_profile):
    close = held_profile.commands.close.model_copy(update={"pulse_ms": 50})
    profile = held_profile.model_copy(update={"commands": held_profile.commands.model_copy(update={"close": close})})
    far_end = ModbusFarEnd(units={1: ProfileWiring(profile=profile, barrier=Barrier())})
    async with far_end.tcp() as port:
        bus = Bus(name="gates", spec=LinkSpec(f"tcp://127.0.0.1:{port}"))
        gate = ModbusGate(device_id=101, bus=bus, profile=profile, unit=1, framing="tcp")
        async with running(bus.run()):
            async with running(gate.run(listener)):
                await listener.until(lambda: listener.of(DeviceConnected))
                await gate.close(deadline=soon(), forbidden=lambda: "")
                far_end.misbehave(1, Misbehaviour(deaf=True))
                await until(lambda: (1, 0) in coil_writes(far_end))
                far_end.misbehave(1)
            assert coil_writes(far_end)[-1] == (1, 0)
            assert coil_writes(far_end).count((1, 0)) == 2


async def test_an_output_that_is_found_on_is_released_before_anything_else(field, listener, held_profile):
    """The process that switched it on died before its pulse was over; then the device's line is cut in another."""
    wirings = []

    def left_on(*, barrier):
        wirings.append(ProfileWiring(profile=held_profile, barrier=barrier))
        wirings[0].write(Write(Table.COIL, 1, 0xFF00), now=0.0)
        return wirings[0]

    async with field(profile=held_profile, wiring=left_on) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        assert coil_writes(it.far_end) == [(1, 0)]
        first_read = next(n for n, r in enumerate(it.far_end.received) if r.request.table is Table.DISCRETE_INPUT)
        assert all(isinstance(r.request, Read | Write) for r in it.far_end.received[:first_read])
        assert any(isinstance(r.request, Write) for r in it.far_end.received[:first_read])
        wirings[0].write(Write(Table.COIL, 0, 0xFF00), now=0.0)
        it.far_end.hang_up()
        await until(lambda: coil_writes(it.far_end) == [(1, 0), (0, 0)])


async def test_a_pulse_of_our_own_goes_on_over_a_lost_line(field, listener, held_profile):
    async with field(profile=held_profile, wiring=partial(ProfileWiring, profile=held_profile)) as it:
        await listener.until(lambda: listener.of(DeviceConnected))
        await it.gate.open(deadline=soon())
        before = set(it.far_end.connections)
        it.far_end.hang_up()
        await until(lambda: it.far_end.connections - before)
        polls = len(it.far_end.received)
        await until(lambda: len(it.far_end.received) > polls + 4)
        assert coil_writes(it.far_end) == [(0, 0xFF00)]


async def test_outputs_of_a_device_that_pulses_itself_are_not_touched(field, listener):
    async with field() as it:
        await listener.until(lambda: listener.of(GateMoved))
        assert {r.request.table for r in it.far_end.received} == {Table.DISCRETE_INPUT}


async def test_a_command_that_the_profile_lacks_is_refused(field, relay_profile):
    commands = relay_profile.commands.model_copy(update={"stop": None})
    async with field(profile=relay_profile.model_copy(update={"commands": commands})) as it:
        with pytest.raises(DeviceFault, match="no command to stop"):
            await it.gate.stop(deadline=soon())


async def test_against_pymodbustcps_server(running, listener, relay_profile):
    bank = DataBank(coils_size=8, d_inputs_size=8, h_regs_size=8, i_regs_size=8)
    bank.set_discrete_inputs(0, [True, False, False, False, False, False])
    server = ModbusServer(host="127.0.0.1", port=0, no_block=True, data_bank=bank)
    server.start()
    port = server._service.server_address[1]  # noqa: SLF001  (the library tells a free port nowhere else)
    try:
        bus = Bus(name="gates", spec=LinkSpec(f"tcp://127.0.0.1:{port}"))
        gate = ModbusGate(device_id=101, bus=bus, profile=relay_profile, unit=1, framing="tcp")
        async with running(bus.run(), gate.run(listener)):
            await listener.until(lambda: listener.positions() == [GatePosition.CLOSED])
            await gate.open(deadline=soon())
            assert bank.get_coils(0, 3) == [True, False, False]
            bank.set_discrete_inputs(0, [False, False, True])
            await listener.until(lambda: listener.positions()[-1] is GatePosition.OPENING)
            bank.set_discrete_inputs(0, [False, True, True])
            await listener.until(lambda: listener.positions()[-1] is GatePosition.OPEN)
    finally:
        server.stop()


async def test_stops_while_nobody_listens(running, listener, relay_profile):
    bus = Bus(name="gates", spec=LinkSpec("tcp://127.0.0.1:1"))
    gate = ModbusGate(device_id=101, bus=bus, profile=relay_profile, unit=1, framing="tcp")
    async with running(bus.run(), gate.run(listener)):
        await listener.until(lambda: listener.of(DeviceLost))
    assert len(listener.of(DeviceLost)) == 1
