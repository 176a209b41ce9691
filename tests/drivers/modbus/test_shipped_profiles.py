"""Each shipped profile: its golden bytes, and its gate at work on a device made from it."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from waiting import soon, until

from drivers.bus.bus import Bus
from drivers.contract import (
    DeviceConnected,
    DeviceLost,
    GateMoved,
    GatePosition,
    NotPermitted,
    PointChanged,
    PointState,
    ProtocolViolation,
)
from drivers.link import LinkSpec
from drivers.modbus.frames import (
    Read,
    Table,
    Write,
    WriteMany,
    Written,
    decode_request,
    encode_reply,
    encode_request,
    parse_reply,
)
from drivers.modbus.gate import ModbusGate
from drivers.modbus.polled_unit import ModbusInputs
from drivers.modbus.profile import GateProfile, load_profile, load_unit_profile
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring

FOLDER = Path(__file__).parents[3] / "drivers" / "profiles"
MODBUS = sorted(path for path in FOLDER.glob("*.toml") if "family =" not in path.read_text())
GATES = [path.stem for path in MODBUS if isinstance(load_unit_profile(path), GateProfile)]
P = GatePosition

# Unit and request of the open command (function, address, value) and of the first poll (function, address, count).
GOLDEN = {
    "advantech-adam-6000": ("01 05 0010 FF00", "01 01 0000 0006"),
    "came-gard-ptx": ("01 05 0001 FF00", "01 03 0064 0001"),
    "moxa-iologik-e1214": ("01 05 0010 FF00", "01 01 1010 0001"),
    "relay-and-inputs": ("01 05 0000 FF00", "01 02 0000 0006"),
    "relay-barrier": ("01 05 0000 FF00", "01 02 0000 0006"),
    "relay-barrier-fail-safe": ("01 05 0000 FF00", "01 02 0000 0006"),
    "roger-b70": ("0A 06 1965 6802", "0A 03 157C 0006"),
    "wago-750": ("01 05 0000 FF00", "01 02 0000 0006"),
    "waveshare-io-8ch": ("01 05 0200 0005", "01 02 0000 0006"),
    "waveshare-relay": ("01 05 0200 0007", "01 01 0000 0003"),
}


# The same of close and stop.
GOLDEN_REST = {
    "advantech-adam-6000": ("01 05 0011 FF00", "01 05 0012 FF00"),
    "came-gard-ptx": ("01 05 0003 FF00", "01 05 0000 FF00"),
    "moxa-iologik-e1214": ("01 05 0011 FF00", "01 05 0012 FF00"),
    "relay-and-inputs": ("01 05 0001 FF00", "01 05 0002 FF00"),
    "relay-barrier": ("01 05 0001 FF00", "01 05 0002 FF00"),
    "relay-barrier-fail-safe": ("01 05 0001 FF00", "01 05 0002 FF00"),
    "roger-b70": ("0A 06 1965 6804", "0A 06 1965 6801"),
    "wago-750": ("01 05 0001 FF00", "01 05 0002 FF00"),
    "waveshare-io-8ch": ("01 05 0201 0005", "01 05 0202 0005"),
    "waveshare-relay": ("01 05 0201 0007", "01 05 0202 0007"),
}


def crc(frame):
    """Modbus's check, bit by bit as its specification describes it (Serial Line Implementation Guide, 6.2.2)."""
    value = 0xFFFF
    for byte in frame:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0xA001 if value & 1 else value >> 1
    return value.to_bytes(2, "little")


def profile_of(name, **changes):
    return load_profile(FOLDER / f"{name}.toml").model_copy(update=changes)


@pytest.mark.parametrize("name", GATES)
def test_golden_bytes(name):
    profile = profile_of(name)
    asked = (profile.write_of(profile.commands.open), profile.reads()[0])
    frames = [encode_request("rtu", unit=profile.line.unit, tag=0, request=request)[:-2] for request in asked]
    assert frames == [bytes.fromhex(text) for text in GOLDEN[name]]


@pytest.mark.parametrize("name", GATES)
def test_golden_bytes_of_close_and_stop(name):
    profile = profile_of(name)
    asked = [profile.write_of(command) for command in (profile.commands.close, profile.commands.stop) if command]
    frames = [encode_request("rtu", unit=profile.line.unit, tag=0, request=request) for request in asked]
    assert frames == [(golden := bytes.fromhex(text)) + crc(golden) for text in GOLDEN_REST[name]]


def test_golden_bytes_of_an_input_module():
    (read,) = load_unit_profile(FOLDER / "inputs-8.toml").reads()
    golden = bytes.fromhex("01 02 0000 0008")
    assert encode_request("rtu", unit=1, tag=0, request=read) == golden + crc(golden)


def test_golden_flash_of_a_waveshare_relay():
    profile = profile_of("waveshare-relay")
    frame = encode_request("rtu", unit=1, tag=0, request=profile.write_of(profile.commands.open))
    assert frame == bytes.fromhex("01 05 02 00 00 07 8D B0")


@pytest.fixture
def at_work(running, listener):
    """A driver, its simulated device and the barrier behind it."""

    @asynccontextmanager
    async def make(profile, *, how=None, drive=ModbusGate, wired=ProfileWiring):
        barrier = Barrier(travel_seconds=0.2)
        wiring = wired(profile=profile, barrier=barrier)
        unit = profile.line.unit
        far_end = ModbusFarEnd(units={unit: wiring}, framing=profile.line.framing)
        if how is not None:
            far_end.misbehave(unit, how)
        async with far_end.tcp() as port:
            bus = Bus(name="gates", spec=LinkSpec(f"tcp://127.0.0.1:{port}", baud=115_200))
            driver = drive(device_id=101, bus=bus, profile=profile, unit=unit, framing=profile.line.framing)
            async with running(bus.run(), driver.run(listener)):
                yield driver, wiring, barrier, far_end

    return make


@pytest.mark.parametrize("name", GATES)
async def test_opens_and_closes_the_device_made_from_it(at_work, listener, name):
    profile = profile_of(name, poll_ms=40)
    async with at_work(profile) as (gate, _, barrier, far_end):
        await listener.until(lambda: listener.of(DeviceConnected))
        await gate.open(deadline=soon())
        if profile.position is not None:
            await listener.until(lambda: listener.positions()[-1] is P.OPEN)
            await gate.close(deadline=soon(), forbidden=lambda: "")
            await listener.until(lambda: listener.positions()[-1] is P.CLOSED)
            assert [command.wish for command in far_end.commands] == [Wish.OPEN, Wish.CLOSE]
        else:
            await gate.stop(deadline=soon())
            assert listener.positions() == [P.UNKNOWN]
            assert barrier.state(now=time.monotonic()).opening > 0
    assert not listener.of(DeviceLost)


def test_roger_tells_every_place():
    position = profile_of("roger-b70").position.position
    told = {
        0x0005: P.OPEN,
        0x0F06: P.CLOSED,
        0x0701: P.OPENING,
        0x0703: P.CLOSING,
        0x0002: P.STOPPED,
        0x0705: P.UNKNOWN,
    }
    assert {value: position(value) for value in told} == told


async def test_a_module_in_linkage_mode_is_set_right_whenever_it_comes(at_work, listener):
    profile = profile_of("waveshare-io-8ch", poll_ms=40)
    async with at_work(profile) as (_, wiring, _, far_end):
        modes = Read(Table.HOLDING_REGISTER, 0x1000, 3)
        assert wiring.read(modes, now=0).values == (1, 1, 1)
        await listener.until(lambda: listener.of(DeviceConnected))
        assert wiring.read(modes, now=0).values == (0, 0, 0)
        far_end.hang_up()
        wiring.power_cycle()
        await until(lambda: wiring.read(modes, now=0).values == (0, 0, 0))


class Stubborn(ProfileWiring):
    """Acknowledges settings and takes none."""

    def write(self, write, *, now):
        reply = super().write(write, now=now)
        self.power_cycle()
        return reply


async def test_a_device_that_does_not_take_its_setting_is_not_connected(at_work, listener):
    profile = profile_of("waveshare-io-8ch", poll_ms=40)
    async with at_work(profile, wired=Stubborn):
        await listener.until(lambda: listener.of(DeviceLost))
        assert "output 1 in normal mode cannot be set" in listener.of(DeviceLost)[0].reason
        assert not listener.of(DeviceConnected)


async def test_wagos_watchdog_is_fed_with_changing_values_and_found_when_it_ran_out(at_work, listener):
    profile = profile_of("wago-750", poll_ms=40)
    profile = profile.model_copy(update={"heartbeat": profile.heartbeat.model_copy(update={"every_ms": 100})})
    async with at_work(profile) as (gate, wiring, _, far_end):
        await listener.until(lambda: listener.of(DeviceConnected))

        def beats():
            writes = [item.request for item in far_end.received if getattr(item.request, "address", 0) == 0x1003]
            return [write.value for write in writes]

        await until(lambda: len(beats()) >= 4)
        assert beats()[:4] == [1, 2, 1, 2]
        wiring.expired = True
        await until(lambda: not wiring.expired)
        await gate.open(deadline=soon())
        await listener.until(lambda: listener.positions()[-1] is P.OPEN)


async def test_without_its_heartbeat_a_wago_obeys_nobody():
    profile = profile_of("wago-750")
    barrier = Barrier(travel_seconds=0.2)
    wiring = ProfileWiring(profile=profile, barrier=barrier)
    wiring.write(profile.write(Table.HOLDING_REGISTER, 0x1003, 1), now=1.0)
    wiring.write(profile.write_of(profile.commands.open), now=9.0)
    assert barrier.state(now=10.0).closed_limit
    assert wiring.read(Read(Table.HOLDING_REGISTER, 0x1006, 1), now=10.0).values == (2,)


async def test_a_step_command_is_given_only_where_its_meaning_is_known(at_work, listener):
    profile = profile_of("relay-barrier", poll_ms=40)
    step = profile.commands.open.model_copy(update={"idempotent": False})
    profile = profile.model_copy(update={"commands": profile.commands.model_copy(update={"open": step})})
    async with at_work(profile) as (gate, _, _, far_end):
        with pytest.raises(NotPermitted, match="the gate is unknown"):
            await gate.open(deadline=soon())
        await listener.until(lambda: listener.positions() == [P.CLOSED])
        await gate.open(deadline=soon())
        with pytest.raises(NotPermitted):
            await gate.open(deadline=soon())
        await listener.until(lambda: listener.positions()[-1] is P.OPEN)
        with pytest.raises(NotPermitted, match="the gate is open"):
            await gate.open(deadline=soon())
        assert len(far_end.commands) == 1


async def test_a_step_that_was_overtaken_before_it_went_out_hinders_no_other(at_work, listener):
    profile = profile_of("relay-barrier", poll_ms=40)
    step = profile.commands.open.model_copy(update={"idempotent": False})
    profile = profile.model_copy(update={"commands": profile.commands.model_copy(update={"open": step})})
    async with at_work(profile) as (gate, _, _, far_end):
        await listener.until(lambda: listener.positions() == [P.CLOSED])
        overtaken = gate.open(deadline=soon(), forbidden=lambda: "a later command has taken its place")
        later = gate.open(deadline=soon(), forbidden=lambda: "")
        refused, sent = await asyncio.gather(overtaken, later, return_exceptions=True)
        assert isinstance(refused, NotPermitted)
        assert sent is None
        assert len(far_end.commands) == 1


async def test_noise_before_each_answer_is_survived(at_work, listener):
    async with at_work(profile_of("relay-barrier", poll_ms=40), how=Misbehaviour(noise=b"\x00\xff")) as (gate, *_):
        await listener.until(lambda: listener.positions() == [P.CLOSED])
        await gate.open(deadline=soon())
        await listener.until(lambda: listener.positions()[-1] is P.OPEN)
        assert not listener.of(DeviceLost)


async def test_function_16_and_another_byte_order(at_work, listener):
    profile = profile_of("roger-b70", poll_ms=40, byte_order="low_first")
    many = profile.commands.open.model_copy(update={"many": True})
    profile = profile.model_copy(update={"commands": profile.commands.model_copy(update={"open": many})})
    async with at_work(profile) as (gate, _, _, far_end):
        await listener.until(lambda: listener.positions() == [P.CLOSED])
        await gate.open(deadline=soon())
        await listener.until(lambda: listener.positions()[-1] is P.OPEN)
        assert far_end.commands[0].request == WriteMany(0x1965, (0x0268,))


async def test_an_input_module_reports_points_alone(at_work, listener):
    impatient = {"poll_ms": 40, "reply_ms": 80}  # what is lost rests less
    profile = load_unit_profile(FOLDER / "inputs-8.toml").model_copy(update=impatient)
    async with at_work(profile, drive=ModbusInputs) as (_, wiring, barrier, far_end):
        await listener.until(lambda: len(listener.of(PointChanged)) == 8)
        barrier.set_closing_loop(occupied=True, now=time.monotonic())
        wiring.turn("fire", on=True)
        on = lambda: {r.point for r in listener.of(PointChanged) if r.state is PointState.ON}  # noqa: E731
        await listener.until(lambda: on() == {"closing_loop", "fire"})
        far_end.misbehave(1, Misbehaviour(deaf=True))
        await listener.until(lambda: listener.of(DeviceLost))
        far_end.misbehave(1)
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
    assert not listener.of(GateMoved)


async def test_a_point_goes_stale_before_its_device_is_lost(at_work, listener):
    profile = load_unit_profile(FOLDER / "inputs-8.toml")
    point = profile.points["closing_loop"].model_copy(update={"stale_ms": 200})
    profile = profile.model_copy(update={"poll_ms": 40, "points": {**profile.points, "closing_loop": point}})
    async with at_work(profile, drive=ModbusInputs) as (_, _, _, far_end):
        await listener.until(lambda: listener.of(DeviceConnected))
        far_end.misbehave(1, Misbehaviour(deaf=True))
        await listener.until(lambda: listener.of(DeviceLost))
        stale = [r for r in listener.of(PointChanged) if r.state is PointState.UNKNOWN]
        assert [r.point for r in stale] == ["closing_loop"]
        assert stale[0].at < listener.of(DeviceLost)[0].at


def test_an_answer_with_another_value_may_acknowledge():
    profile = profile_of("relay-barrier")

    def with_open(**changes):
        changed = profile.commands.open.model_copy(update=changes)
        return profile.write_of(changed)

    other = decode_request("rtu", encode_request("rtu", unit=1, tag=0, request=Write(Table.COIL, 0, 0)))
    received = encode_reply("rtu", asked=other, reply=Written())
    lenient = with_open(acknowledged_by="answer")
    assert parse_reply("rtu", unit=1, tag=0, request=lenient, received=received) == Written()
    with pytest.raises(ProtocolViolation):
        parse_reply("rtu", unit=1, tag=0, request=with_open(), received=received)


def test_readings_are_told_as_people_read_them():
    readings = profile_of("came-gard-ptx").readings

    def told(name, *values):
        return readings[name].words_of(values, word_order="low_first")

    assert told("opening", 255) == "unknown"
    assert told("opening", 40) == "40 %"
    assert told("temperature", 0xFFFB) == "-5 °C"
    assert told("cycles", 0x0002, 0x0001) == "65538"
    assert told("last_error", 0) == "none"
