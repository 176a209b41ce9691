"""Gates by profile over real pseudo-terminals, against far ends made from the same profiles."""

from __future__ import annotations

import asyncio
import contextlib
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise

import pytest
from waiting import soon, until

from drivers.bus.bus import Bus
from drivers.bus.line_quality import LineFault
from drivers.contract import (
    DeadlinePassed,
    DeviceConnected,
    DeviceFault,
    DeviceLost,
    GateMoved,
    GatePosition,
    LinkError,
    NotPermitted,
    PointChanged,
    PointState,
)
from drivers.link import LinkSpec
from drivers.serial_line.gate import SerialGate
from drivers.serial_line.profile import Acknowledgement, GateProfile, Query, load_gate_profile
from drivers.serial_line.unit_requests import FrameRequests
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.pseudo_terminal import PseudoTerminal
from simulation.far_ends.serial_devices import SerialBarrier
from simulation.far_ends.serial_far_end import SerialFarEnd

ASKED = ["speed-gate-7e-left", "nice-bust4", "adam-4050-ascii", "line-barrier"]
UNANSWERING = ["lcus-1", "turnstile-eb-left"]
NEVER = ""


@dataclass
class Rig:
    barrier: Barrier
    far_end: SerialFarEnd
    terminal: PseudoTerminal
    bus: Bus
    gate: SerialGate
    profile: GateProfile


@pytest.fixture
def rig(tmp_path, running, listener, profiles):
    @asynccontextmanager
    async def make(name, *, unit=3, travel=0.3, plugged_in=True, served=SerialFarEnd, **changes):
        profile = load_gate_profile(profiles / f"{name}.toml").model_copy(update={"poll_ms": 50, **changes})
        barrier = Barrier(travel_seconds=travel)
        far_end = served(devices={unit: SerialBarrier(profile=profile, barrier=barrier)})
        async with far_end.serial(path=tmp_path / "line") as terminal:
            if not plugged_in:
                terminal.unplug()
            bus = Bus(name="line", spec=LinkSpec(f"serial:{terminal.path}", baud=115_200))
            gate = SerialGate(device_id=101, bus=bus, profile=profile, unit=unit)
            async with running(bus.run(), gate.run(listener)):
                yield Rig(barrier, far_end, terminal, bus, gate, profile)

    return make


def at(listener, position):
    return lambda: listener.positions()[-1:] == [position]


@pytest.mark.parametrize("name", ASKED)
async def test_opens_and_closes_and_is_seen_to_move(rig, listener, name):
    async with rig(name) as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        await it.gate.open(deadline=soon())
        await listener.until(at(listener, GatePosition.OPEN))
        await it.gate.close(deadline=soon(), forbidden=lambda: NEVER)
        await listener.until(at(listener, GatePosition.CLOSED))
        sent = [command for command in it.far_end.commands if not command.endswith(".release")]
        assert sent == ["open", "close"]
    seen = listener.positions()
    assert GatePosition.OPENING in seen
    assert GatePosition.CLOSING in seen
    assert len(listener.of(DeviceConnected)) == 1
    assert not listener.of(DeviceLost)


async def test_a_stop_is_seen(rig, listener):
    async with rig("line-barrier", travel=2.0) as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        await it.gate.open(deadline=soon())
        await listener.until(at(listener, GatePosition.OPENING))
        await it.gate.stop(deadline=soon())
        await listener.until(at(listener, GatePosition.STOPPED))


async def test_points_follow_the_inputs(rig, listener):
    async with rig("adam-4050-ascii") as it:
        await listener.until(lambda: len(listener.of(PointChanged)) >= 6)
        it.barrier.set_arming_loop(occupied=True, now=time.monotonic())
        it.barrier.set_photocell(interrupted=True, now=time.monotonic())

        def latest():
            return {report.point: report.state for report in listener.of(PointChanged)}

        await listener.until(
            lambda: latest()["arming_loop"] is PointState.ON and latest()["photocell"] is PointState.ON
        )
        assert latest()["closing_loop"] is PointState.OFF


async def test_what_does_not_change_is_refreshed(rig, listener):
    async with rig("line-barrier"):
        await listener.until(lambda: len(listener.of(GateMoved)) >= 3)
    apart = [after.at - before.at for before, after in pairwise(listener.of(GateMoved))]
    assert 0.9 < min(apart) < 1.5, "a busy machine may hold up some of them"


async def test_a_close_asks_what_forbids_it_right_before_its_first_byte(rig, listener):
    async with rig("nice-bust4") as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        await it.gate.open(deadline=soon())
        await listener.until(at(listener, GatePosition.OPEN))
        with pytest.raises(NotPermitted, match="somebody is under it"):
            await it.gate.close(deadline=soon(), forbidden=lambda: "somebody is under it")
        for order in (it.gate.open, it.gate.stop):
            with pytest.raises(NotPermitted, match="a later command"):
                await order(deadline=soon(), forbidden=lambda: "a later command has taken its place")
        assert it.far_end.commands == ("open",)


@pytest.mark.parametrize("name", UNANSWERING)
async def test_what_never_answers_is_there_while_its_line_is_open_and_says_nothing_of_the_gate(rig, listener, name):
    async with rig(name) as it:
        await listener.until(lambda: listener.of(GateMoved))
        await it.gate.open(deadline=soon())
        with pytest.raises(DeviceFault, match="no command to close"):
            await it.gate.close(deadline=soon(), forbidden=lambda: NEVER)
        it.terminal.unplug()
        await listener.until(lambda: listener.of(DeviceLost))
        with pytest.raises(LinkError):
            await it.gate.open(deadline=soon())
        assert listener.positions() == [GatePosition.UNKNOWN]


async def test_a_relay_that_cannot_pulse_is_switched_off_again_and_before_anything_else(rig, listener):
    async with rig("lcus-1") as it:
        await until(lambda: it.far_end.commands == ("open.release",))
        await it.gate.open(deadline=soon())
        await until(lambda: len(it.far_end.commands) == 3)
        assert it.far_end.commands == ("open.release", "open", "open.release")
        on, off = it.far_end.received[-2:]
        assert off.at - on.at > 0.4


async def test_a_second_pulse_goes_on_from_the_first(rig, profiles):
    commands = load_gate_profile(profiles / "lcus-1.toml").commands
    long = commands.open.model_copy(update={"pulse_ms": 1_000})
    async with rig("lcus-1", commands=commands.model_copy(update={"open": long})) as it:
        await until(lambda: it.far_end.commands == ("open.release",))
        await it.gate.open(deadline=soon())
        await asyncio.sleep(0.6)  # some of the first pulse is over
        await it.gate.open(deadline=soon())
        await until(lambda: len(it.far_end.commands) == 4)
        assert it.far_end.commands[1:] == ("open", "open", "open.release")
        first, _, off = it.far_end.received[-3:]
        assert off.at - first.at > 1.3


async def test_a_pulse_is_ended_though_the_next_command_was_never_sent(rig):
    async with rig("lcus-1") as it:
        await until(lambda: it.far_end.commands == ("open.release",))
        await it.gate.open(deadline=soon())
        with pytest.raises(DeadlinePassed):
            await it.gate.open(deadline=time.monotonic() - 1)
        await until(lambda: it.far_end.commands == ("open.release", "open", "open.release"))


async def test_a_pulse_is_ended_when_the_gateway_stops(rig, running, listener, profiles):
    commands = load_gate_profile(profiles / "lcus-1.toml").commands
    long = commands.open.model_copy(update={"pulse_ms": 600_000})  # longer than this test
    async with rig("lcus-1", commands=commands.model_copy(update={"open": long})) as it:
        await until(lambda: it.far_end.commands == ("open.release",))
        second = SerialGate(device_id=102, bus=it.bus, profile=it.profile, unit=3)
        async with running(second.run(listener)):
            await until(lambda: len(it.far_end.commands) == 2)
            await second.open(deadline=soon())
        await until(lambda: it.far_end.commands[2:] == ("open", "open.release"))


async def test_a_pulse_is_ended_even_when_the_first_release_fails(rig, listener):
    async with rig("adam-4050-ascii") as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        await until(lambda: set(it.far_end.commands) == {"open.release", "close.release"})
        await it.gate.open(deadline=soon())
        it.far_end.misbehave(3, Misbehaviour(exception=1))
        await until(lambda: it.far_end.commands.count("open.release") >= 3)
        it.far_end.misbehave(3)
        count = it.far_end.commands.count("open.release")
        await until(lambda: it.far_end.commands.count("open.release") > count)
        count = it.far_end.commands.count("open.release")
        await asyncio.sleep(0.3)  # a release that failed is tried again sooner
        assert it.far_end.commands.count("open.release") == count


async def test_a_step_command_goes_out_only_from_where_it_is_safe_and_never_twice(rig, listener):
    async with rig("speed-gate-7e-left", travel=0.3) as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        it.barrier.set_locked(locked=True, now=time.monotonic())  # acknowledges, and does not move
        await it.gate.open(deadline=soon())
        with pytest.raises(NotPermitted, match="not been seen to move"):
            await it.gate.open(deadline=soon())
        it.barrier.set_locked(locked=False, now=time.monotonic())
        it.barrier.force(opening=1.0, now=time.monotonic())
        await listener.until(at(listener, GatePosition.OPEN))
        with pytest.raises(NotPermitted, match="only when closed; it is open"):
            await it.gate.open(deadline=soon())
        assert it.far_end.commands == ("open",)


async def test_a_lost_answer_is_an_unknown_outcome_and_is_not_tried_again(rig, listener):
    async with rig("line-barrier") as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        it.far_end.misbehave(3, Misbehaviour(silent=True))
        with pytest.raises(LinkError, match="did not answer"):
            await it.gate.open(deadline=soon())
        it.far_end.misbehave(3)
        await listener.until(at(listener, GatePosition.OPEN))
        assert it.far_end.commands == ("open",)


async def test_a_refusal_is_a_fault_of_the_device(rig, listener):
    async with rig("line-barrier") as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        it.far_end.misbehave(3, Misbehaviour(exception=1))
        with pytest.raises(DeviceFault, match="refused"):
            await it.gate.open(deadline=soon())


async def test_an_echo_acknowledges(rig, listener, profiles):
    profile = load_gate_profile(profiles / "line-barrier.toml")
    echoing = profile.commands.open.model_copy(update={"answer": Acknowledgement.ECHO})
    commands = profile.commands.model_copy(update={"open": echoing})
    async with rig("line-barrier", commands=commands) as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        await it.gate.open(deadline=soon())
        it.far_end.misbehave(3, Misbehaviour(corrupt=True))
        with pytest.raises(LinkError):
            await it.gate.open(deadline=soon())


class EchoingFarEnd(SerialFarEnd):
    """Devices behind a two-wire adapter, which returns what is sent."""

    def _take(self, data):
        self.say(data)
        super()._take(data)


@pytest.mark.parametrize(
    ("manners", "error"),
    [(Misbehaviour(), None), (Misbehaviour(exception=1), DeviceFault), (Misbehaviour(deaf=True), LinkError)],
    ids=["obeys", "refuses", "does not answer"],
)
async def test_a_command_does_not_count_by_the_echo_of_the_line(rig, listener, profiles, manners, error):
    profile = load_gate_profile(profiles / "line-barrier.toml")
    echoing = profile.commands.open.model_copy(update={"answer": Acknowledgement.ECHO})
    commands = profile.commands.model_copy(update={"open": echoing})
    async with rig("line-barrier", commands=commands, served=EchoingFarEnd) as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        assert it.bus.quality().fault is LineFault.ECHOES
        it.far_end.misbehave(3, manners)
        with contextlib.nullcontext() if error is None else pytest.raises(error):
            await it.gate.open(deadline=soon())


class OneAnswer:
    """A line that keeps the exchange and answers nothing."""

    spec = LinkSpec("serial:/dev/null")

    def __init__(self):
        self.exchanges = []

    async def transact(self, exchange, **_):
        self.exchanges.append(exchange)
        raise LinkError("no answer")


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (Query(send={"text": "STATUS\r\n"}, answer={"text": "S="}), True),
        (Query(send={"text": "STATUS\r\n"}, answer={"text": "STAT"}), False),
        (Query(send={"text": "STAT"}, answer={"text": "STAT:"}), False),
        (Query(send={"text": "S\r\n"}, answer={"text": "OK"}), False),
        (Query(send="7E 00 unit 01", answer=".. 00 unit"), False),
        (None, False),
    ],
)
async def test_an_echo_of_a_line_is_looked_for_where_answers_cannot_be_taken_for_one(profiles, query, shown):
    profile = load_gate_profile(profiles / "line-barrier.toml").model_copy(update={"status": query})
    line = OneAnswer()
    requests = FrameRequests(bus=line, profile=profile, unit=3)
    command = profile.commands.open.model_copy(update={"answer": Acknowledgement.ECHO})
    with pytest.raises(LinkError):
        await requests.command(command, deadline=soon())
    assert line.exchanges[-1].is_repeated is (True if shown else None)
    if query is not None:
        with pytest.raises(LinkError):
            await requests.ask(query, deadline=soon())
        assert line.exchanges[-1].is_repeated is (False if shown else None)


@pytest.mark.parametrize(
    "manners", [Misbehaviour(piece_seconds=0.001), Misbehaviour(noise=b"\x00\x00")], ids=["pieces", "noise"]
)
async def test_a_bad_line_changes_nothing(rig, listener, manners):
    async with rig("nice-bust4") as it:
        it.far_end.misbehave(3, manners)
        await listener.until(at(listener, GatePosition.CLOSED))
        await it.gate.open(deadline=soon())
        await listener.until(at(listener, GatePosition.OPEN))
        assert not listener.of(DeviceLost)


async def test_a_point_with_a_staleness_of_its_own_is_unknown_before_the_device_is_lost(rig, listener, profiles):
    points = load_gate_profile(profiles / "line-barrier.toml").points
    points = points | {"photocell": points["photocell"].model_copy(update={"stale_ms": 300})}
    async with rig("line-barrier", points=points) as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        it.far_end.misbehave(3, Misbehaviour(silent=True))
        await listener.until(lambda: [r for r in listener.of(PointChanged) if r.state is PointState.UNKNOWN])
        (gone,) = [report for report in listener.of(PointChanged) if report.state is PointState.UNKNOWN]
        assert gone.point == "photocell"
        assert not listener.of(DeviceLost)


async def test_two_gates_and_a_dead_one_share_a_line(tmp_path, running, listener, profiles):
    profile = load_gate_profile(profiles / "speed-gate-7e-left.toml")
    barriers = {unit: Barrier(travel_seconds=0.2) for unit in (1, 2)}
    devices = {unit: SerialBarrier(profile=profile, barrier=barrier) for unit, barrier in barriers.items()}
    async with SerialFarEnd(devices=devices).serial(path=tmp_path / "line") as terminal:
        bus = Bus(name="line", spec=LinkSpec(f"serial:{terminal.path}", baud=115_200))
        gates = [SerialGate(device_id=100 + unit, bus=bus, profile=profile, unit=unit) for unit in (1, 2, 9)]
        async with running(bus.run(), *(gate.run(listener) for gate in gates)):
            await listener.until(lambda: {report.device_id for report in listener.of(GateMoved)} == {101, 102})
            await listener.until(lambda: [report.device_id for report in listener.of(DeviceLost)] == [109])
            await gates[1].open(deadline=soon())
            await listener.until(
                lambda: any(r.position is GatePosition.OPEN and r.device_id == 102 for r in listener.of(GateMoved))
            )
            assert barriers[1].state(now=time.monotonic()).closed_limit


async def test_stops_though_the_answer_that_it_waits_for_never_comes(rig, listener):
    async with rig("nice-bust4", reply_ms=600_000) as it:
        await listener.until(at(listener, GatePosition.CLOSED))
        it.far_end.misbehave(3, Misbehaviour(deaf=True))
        asked = len(it.far_end.received)
        await until(lambda: len(it.far_end.received) > asked)
