"""No history of faults makes a line polled without a pause, neither during the faults nor after them. Virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque

import pytest

from drivers.bus.bus import Bus
from drivers.bus.wire import Direction
from drivers.contract import DeviceConnected, DriverError
from drivers.link import LinkSpec
from drivers.modbus.gate import ModbusGate
from drivers.modbus.polled_unit import ModbusInputs
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module
from simulation.virtual_site.lane_field import Troubles
from simulation.virtual_site.network import Network, Peer
from simulation.virtual_site.surroundings import own_chance
from simulation.virtual_site.virtual_time import VirtualLoop

WAYS = (
    Misbehaviour(),
    Misbehaviour(silent=True),
    Misbehaviour(late=0.45),
    Misbehaviour(exception=6),
    Misbehaviour(exception=4),
    Misbehaviour(corrupt=True),
    Misbehaviour(wrong_unit=True),
    Misbehaviour(hangs_up=True),
    *(Misbehaviour(hangs_up_behind=answers) for answers in (1, 2, 11)),
)
GATE, INPUTS = 1, 2
MOST_IN_A_SECOND = 45
"""Two units that are polled each 0.1 s, a command that is tried again as often, and polls at once after a loss."""


class Counted:
    """Counts what happens, and keeps the most within a second."""

    def __init__(self, monotonic):
        self._monotonic = monotonic
        self._recent = deque()
        self.total = self.most = 0

    def __call__(self):
        now = self._monotonic()
        self._recent.append(now)
        while self._recent[0] <= now - 1.0:
            self._recent.popleft()
        self.total += 1
        self.most = max(self.most, len(self._recent))


async def history(seed, framing, listener, profile):
    """Let a line and its two units go through faults and commands; return the counts of requests and connections."""
    loop, dice = asyncio.get_running_loop(), random.Random(seed)
    now, troubles = loop.time, Troubles()
    sent, connected = Counted(now), Counted(now)
    wiring = relay_module(Barrier(travel_seconds=2.0))
    far_end = ModbusFarEnd(units={GATE: wiring, INPUTS: wiring}, framing=framing, monotonic=now)

    def caller():
        connected()
        return far_end.caller()

    loop.network = Network(loop=loop)
    host = loop.network.listen("line", Peer(protocol=caller, troubles=troubles, alive=lambda: True, dice=dice))
    bus = Bus(
        name="line",
        spec=LinkSpec(f"tcp://{host}:502"),
        monotonic=now,
        trace=lambda direction, *_: sent() if direction is Direction.SENT else None,
    )
    settings = {"bus": bus, "profile": profile, "framing": framing, "monotonic": now}
    gate = ModbusGate(device_id=101, unit=GATE, **settings)
    inputs = ModbusInputs(device_id=102, unit=INPUTS, **settings)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(body) for body in (bus.run(), gate.run(listener), inputs.run(listener))]
        for of_gate, of_inputs in zip(dice.sample(WAYS, len(WAYS)), dice.sample(WAYS, len(WAYS)), strict=True):
            far_end.misbehave(GATE, of_gate)
            far_end.misbehave(INPUTS, of_inputs)
            if dice.random() < 0.3:
                troubles.away_until = now() + dice.uniform(0.1, 4.0)
            for _ in range(dice.randrange(2)):
                await asyncio.sleep(dice.uniform(0.0, 2.0))
                with contextlib.suppress(DriverError):
                    await gate.open(deadline=now() + 2.0)
            await asyncio.sleep(dice.uniform(1.0, 3.0))
        far_end.misbehave(GATE)
        far_end.misbehave(INPUTS)
        await asyncio.sleep(15.0)
        sent_before, connected_before = sent.total, connected.total
        await asyncio.sleep(30.0)
        for task in tasks:
            task.cancel()
    return sent, connected, sent.total - sent_before, connected.total - connected_before


@pytest.mark.parametrize("framing", ["tcp", "rtu"])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long("many histories")) for seed in range(2, 20))]
)
def test_a_line_is_polled_at_its_pace_during_faults_and_after_them(seed, framing, listener, relay_profile):
    with own_chance(seed), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        sent, connected, last_sent, last_connected = runner.run(history(seed, framing, listener, relay_profile))
    assert listener.of(DeviceConnected)
    assert sent.most <= MOST_IN_A_SECOND
    assert connected.most <= MOST_IN_A_SECOND
    assert 450 < last_sent <= 601, "a unit that was late is asked less often for a while"
    assert last_connected <= last_sent
