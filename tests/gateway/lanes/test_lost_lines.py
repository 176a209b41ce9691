"""Lanes over real drivers and simulated far ends: lines that hang up for a moment, modules that fall silent.

The gate's controller has unit 255 and knows nothing of its limits; a module on a line of its own reads its limit
switches and its loops.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from cut_lines import HoldingPort
from lanes_at_work import lanes_at_work
from stopwatch import Stopwatch
from waiting import until

from drivers.contract import GatePosition, PointState
from drivers.modbus.frames import Read, Refusal, Table, Values
from gateway.domain.commands import GateAction
from gateway.domain.errors import CommandRefused
from gateway.domain.events import EventKind
from gateway.lanes import Lanes
from gateway.lanes.snapshots import Phase
from gateway.site import Site
from gateway.store import Store
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

OPEN, CLOSE = GateAction.OPEN, GateAction.CLOSE


class InputsWiring:
    """A module as `inputs-8.toml` describes it, before the loops and the limit switches of a barrier."""

    def __init__(self, *, barrier: Barrier) -> None:
        self._barrier = barrier
        self.detector_starts = False

    def read(self, read, *, now):
        if read != Read(Table.DISCRETE_INPUT, read.address, read.count) or read.address + read.count > 8:
            return Refusal(2)
        state = self._barrier.state(now=now)
        under = state.closing_loop and not self.detector_starts
        inputs = (state.arming_loop, under, state.photocell, 0, 0, 0, state.closed_limit, state.open_limit)
        return Values(tuple(int(one) for one in inputs[read.address : read.address + read.count]))

    def write(self, write, *, now):
        return Refusal(1)

    def wish_of(self, write):
        return None


class SmallSite:
    """One lane, alive."""

    def __init__(self, *, travel_seconds: float) -> None:
        self.barrier = Barrier(travel_seconds=travel_seconds)
        self.module = InputsWiring(barrier=self.barrier)
        self.gate_end = ModbusFarEnd(units={255: relay_module(self.barrier)})
        self.inputs_end = ModbusFarEnd(units={1: self.module}, framing="rtu")
        self.port: HoldingPort | None = None
        self.lanes: Lanes
        self.store: Store

    def lane(self):
        return self.lanes.lanes()[0]

    def closes(self):
        return [command for command in self.gate_end.commands if command.wish is Wish.CLOSE]

    def opens(self):
        return [command for command in self.gate_end.commands if command.wish is Wish.OPEN]

    def occupy(self, on):
        self.barrier.set_closing_loop(occupied=on, now=time.monotonic())

    async def ask(self, action):
        """Ask as a person does, until it is not refused."""

        async def taken():
            with suppress(CommandRefused):
                return await self.lanes.command(device_id=101, action=action, source="user:guard")

        return await until(taken)

    async def open(self):
        await self.ask(OPEN)
        await until(lambda: self.lane().position is GatePosition.OPEN)

    async def restart(self, line, seconds):
        """Let the module restart: it is gone for so long, and its detector sees nothing for 2 s.

        A converter before it keeps its connection, so that nothing but missed polls tells of it.
        """
        self.module.detector_starts = True
        if line == "tcp":
            self.inputs_end.hang_up()
        elif line == "converter":
            self.inputs_end.misbehave(1, Misbehaviour(deaf=True))
            await asyncio.sleep(seconds)  # it is gone for so long
            self.inputs_end.misbehave(1, Misbehaviour())
        else:
            self.port.unplug()
            await asyncio.sleep(seconds)  # it is gone for so long
            self.port.plug_in()
        await asyncio.sleep(2.0)  # its detector sees nothing yet
        self.module.detector_starts = False


@asynccontextmanager
async def small_site(folder, *, line="tcp", travel_seconds=0.5, **lane):
    small = SmallSite(travel_seconds=travel_seconds)
    async with AsyncExitStack() as stack:
        gate_port = await stack.enter_async_context(small.gate_end.tcp())
        if line != "serial":
            url = f"tcp://127.0.0.1:{await stack.enter_async_context(small.inputs_end.tcp())}"
        else:
            path = folder / "port"
            small.port = await stack.enter_async_context(small.inputs_end.serial(path=path, make=HoldingPort))
            url = f"serial:{path}"
        site = _site(f"tcp://127.0.0.1:{gate_port}", url, lane)
        small.lanes, small.store = await stack.enter_async_context(lanes_at_work(folder, site))
        await until(lambda: small.lane().position is GatePosition.CLOSED)
        yield small


def _site(gate_url, inputs_url, lane):
    return Site.model_validate(
        {
            "site": {"name": "Small"},
            "links": [{"id": "gate", "url": gate_url}, {"id": "inputs", "url": inputs_url, "baud": 115200}],
            "devices": [
                {
                    "id": 101,
                    "name": "Barrier",
                    "driver": "modbus-gate",
                    "link": "gate",
                    "profile": "relay-barrier",
                    "unit": 255,
                },
                {
                    "id": 102,
                    "name": "Inputs",
                    "driver": "modbus-io",
                    "link": "inputs",
                    "profile": "inputs-8",
                    "framing": "rtu",
                },
            ],
            "lanes": [
                {
                    "id": "main",
                    "name": "Main",
                    "gate": 101,
                    "inputs": [
                        {"role": "arming", "device": 102, "point": "arming_loop"},
                        {"role": "closing", "device": 102, "point": "closing_loop"},
                    ],
                    "closed_limit": {"device": 102, "point": "input_7"},
                    "open_limit": {"device": 102, "point": "input_8"},
                    "closes": "gateway",
                    **lane,
                }
            ],
        }
    )


async def test_a_gate_of_unit_255_follows_limit_switches_on_another_module(tmp_path):
    async with small_site(tmp_path, clear_after_loss_seconds=0.5) as small:
        await small.open()
        await small.ask(CLOSE)
        await until(lambda: small.lane().position is GatePosition.CLOSING)
        await until(lambda: small.lane().position is GatePosition.CLOSED)


async def test_without_the_module_of_its_limits_the_position_is_not_known(tmp_path):
    async with small_site(tmp_path, clear_after_loss_seconds=0.5) as small:
        await small.open()
        small.inputs_end.misbehave(1, Misbehaviour(deaf=True))
        await until(lambda: small.lane().position is GatePosition.UNKNOWN)
        with pytest.raises(CommandRefused):
            await small.lanes.command(device_id=101, action=CLOSE, source="user:guard")


@pytest.mark.long("the two seconds in which a restarted detector sees nothing")
@pytest.mark.parametrize(("line", "seconds"), [("tcp", 0.05), ("serial", 0.05), ("converter", 0.05)])
async def test_a_restart_of_a_moment_is_a_loss_and_its_free_loop_is_not_believed(tmp_path, line, seconds):
    async with small_site(tmp_path, line=line, travel_seconds=1.2) as small:
        await small.open()
        small.occupy(True)
        await until(lambda: small.lane().phase is Phase.PASSING)
        await small.restart(line, seconds)
        assert small.closes() == [], "the vehicle is still under the gate"
        await until(lambda: small.lane().under is PointState.ON)
        small.occupy(False)
        await until(small.closes)


async def falls_silent_while_it_closes(small):
    """Wait until the gate is opened again; return the seconds from the module's silence to that."""
    count = len(small.opens())
    await small.ask(CLOSE)
    await until(lambda: small.lane().position is GatePosition.CLOSING)
    small.inputs_end.misbehave(1, Misbehaviour(deaf=True))
    silent_at = time.monotonic()
    await until(lambda: len(small.opens()) > count)
    return small.opens()[-1].at - silent_at


@pytest.mark.long("the length of a silence, in real time")
async def test_a_module_that_falls_silent_has_the_gate_opened_again_within_a_second(tmp_path):
    async with small_site(tmp_path, travel_seconds=4.0) as small:
        await small.open()
        watch = Stopwatch()
        took = await falls_silent_while_it_closes(small)
        assert took < 0.9 + watch.held_up()


async def test_a_module_that_falls_silent_while_the_gate_closes_has_it_opened_again(tmp_path):
    async with small_site(tmp_path, travel_seconds=1.5, clear_after_loss_seconds=0.5) as small:
        await small.open()
        await falls_silent_while_it_closes(small)
        await until(lambda: str(small.lane().note).startswith("opened again: "))
        assert await small.lanes.recorder.drained(within=10)
        kinds = [event.type for event in await small.store.events.latest(limit=20)]
        assert EventKind.GATE_REOPENED in kinds
