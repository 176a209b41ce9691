"""Gates and input modules on Modbus on bad lines."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from conformance import Conformance, Driven
from faulty_line import Fault

from drivers.bus.bus import Bus
from drivers.contract import DeviceLost, GateMoved, GatePosition, LinkError, PointChanged, PointState
from drivers.link import LinkSpec
from drivers.modbus.gate import ModbusGate
from drivers.modbus.polled_unit import ModbusInputs
from drivers.modbus.profile import load_profile, load_unit_profile
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

RELAY = Path(__file__).parents[3] / "drivers" / "profiles" / "relay-barrier.toml"
PROFILE = load_profile(RELAY)


class _ModbusGate(Conformance):
    drives = (ModbusGate,)
    framing = "rtu"

    @asynccontextmanager
    async def far_end(self, folder):
        self.barrier, self.occupied = Barrier(), False
        units = {1: relay_module(self.barrier)}
        self.far = ModbusFarEnd(units=units, framing=self.framing)
        async with self.far.tcp() as port:
            yield LinkSpec(f"tcp://127.0.0.1:{port}")

    def driven(self, near):
        bus = Bus(name="line", spec=near)
        gate = ModbusGate(device_id=101, bus=bus, profile=PROFILE, unit=1, framing=self.framing)
        return Driven(gate, beside=(bus.run,))

    def commanded(self):
        return len(self.far.commands)

    async def stir(self):
        self.occupied = not self.occupied
        self.barrier.set_arming_loop(occupied=self.occupied, now=time.monotonic())

    def serves(self, report):
        wanted = PointState.ON if self.occupied else PointState.OFF
        return isinstance(report, PointChanged) and report.point == "arming_loop" and report.state is wanted

    def is_true(self, report):
        if isinstance(report, PointChanged) and report.point != "arming_loop":
            return (report.state is PointState.ON) == (report.point == "closed_limit")
        return not isinstance(report, GateMoved) or report.position in {GatePosition.CLOSED, GatePosition.UNKNOWN}


class TestRtu(_ModbusGate):
    lines = ("serial",)


class TestTcp(_ModbusGate):
    lines = ("tcp",)
    framing = "tcp"
    numbered = True
    recovers_from = (Fault.DUPLICATED, Fault.ECHOED)  # spoilt bytes are TCP's own to find; Modbus TCP has no check sum


class TestInputs(TestRtu):
    drives = (ModbusInputs,)

    def driven(self, near):
        bus = Bus(name="line", spec=near)
        inputs = ModbusInputs(device_id=102, bus=bus, profile=load_unit_profile(RELAY), unit=1, framing="rtu")
        return Driven(inputs, beside=(bus.run,))


class _Echoing(_ModbusGate):
    def driven(self, near):
        bus = Bus(name="line", spec=replace(near, echoes=True))
        self.gate = ModbusGate(device_id=101, bus=bus, profile=PROFILE, unit=1, framing="rtu")
        return Driven(self.gate, beside=(bus.run,))


async def test_an_echoing_adapter_is_seen_through(tmp_path):
    """The adapter sends each request back first. The echo is taken off, and acknowledges no command."""
    kit = _Echoing()
    async with kit.at_work(tmp_path, "serial") as rig:
        rig.line.fault = Fault.ECHOED
        await kit.connected(rig)
        await kit.gate.stop(deadline=time.monotonic() + 2)
        assert rig.heard.count(DeviceLost) == 0
        rig.line.fault = Fault.ECHO_ALONE
        with pytest.raises(LinkError, match="did not answer"):
            await kit.gate.stop(deadline=time.monotonic() + 2)
