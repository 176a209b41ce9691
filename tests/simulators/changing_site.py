"""The whole house with two lanes, each with a barrier behind its own TCP port, whose site file is changed meanwhile."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from far_end_site import a_barrier
from running_gateway import give_account
from waiting import until

from drivers.contract import CardPresented, GatePosition
from gateway.app.contexts import RunContext
from gateway.app.gateway import Gateway
from gateway.app.services import Services
from gateway.app.systemd import Notify
from gateway.domain.credentials import Card, text_alias
from gateway.lanes.snapshots import DeviceSnapshot, LaneSnapshot, Phase
from gateway.runtime.data_folder import DataFolder
from gateway.site import Secrets, load_whole
from gateway.site.running_site import RunningSite
from gateway.site.trial_files import TrialFiles
from gateway.store.cards.cards import StoredCard
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.modbus_far_end import ModbusFarEnd

CARD = "4711"
_WITHIN = 30.0
LANE = """
[[devices]]
id = {gate}
name = "Barrier {name}"
driver = "modbus-gate"
link = "{name}"
profile = "relay-barrier"
[[devices]]
id = {reader}
name = "Reader {name}"
driver = "serial-reader"
link = "desk-{name}"
[[links]]
id = "{name}"
url = "tcp://127.0.0.1:{port}"
[[links]]
id = "desk-{name}"
url = "serial:/dev/no-such-port-{name}"
[[lanes]]
id = "{name}"
name = "{name} lane"
gate = {gate}
readers = [{reader}]
arming = {{ device = {gate}, point = "arming_loop" }}
closing = {{ device = {gate}, point = "closing_loop" }}
safety = [{{ device = {gate}, point = "photocell" }}]
closes = "gateway"
opening_seconds = 2
closing_seconds = 2
waiting_seconds = 20
back_out_seconds = 5
clear_seconds = 0.3
clear_after_loss_seconds = 0.3
# how long the gate may stand open
held_open_seconds = 60
"""
SITE = """# The site of the tests
[site]
name = "Small"
[api]
port = 0
[storage]
media_gigabytes = 1
free_floor_gigabytes = 0.1
"""


@dataclass
class Yard:
    """A barrier and its far end."""

    name: str
    barrier: Barrier
    far_end: ModbusFarEnd
    port: int
    gate: int
    reader: int

    def arming(self, *, occupied: bool) -> None:
        """A vehicle comes to the loop in front, or leaves it."""
        self.barrier.set_arming_loop(occupied=occupied, now=time.monotonic())

    def under(self, *, occupied: bool) -> None:
        """A vehicle comes under the arm, or leaves."""
        self.barrier.set_closing_loop(occupied=occupied, now=time.monotonic())

    def wishes(self) -> list[Wish | None]:
        """The commands that came."""
        return [one.wish for one in self.far_end.commands]


@dataclass
class House:
    """The gateway at work."""

    gateway: Gateway
    entry: Yard
    exit: Yard
    path: Path

    @property
    def site_file(self) -> RunningSite:
        """Return the keeper of the site file."""
        return self.services.site_file

    @property
    def services(self) -> Services:
        """Return what starts behind the lanes."""
        assert self.gateway.services is not None
        return self.gateway.services

    def edit(self, old: str, new: str) -> bytes:
        """The site file with other words, written."""
        text = self.path.read_text()
        assert old in text
        self.path.write_text(text.replace(old, new, 1))
        return self.path.read_bytes()

    def lane(self, name: str) -> LaneSnapshot:
        """A lane as people see it."""
        return next(lane for lane in self.gateway.lanes.lanes() if lane.lane_id == name)

    def device(self, number: int) -> DeviceSnapshot:
        """A device as people see it."""
        return next(device for device in self.gateway.lanes.devices() if device.device_id == number)

    def runner(self, name: str) -> object:
        """The lane's runner itself."""
        return next(one for one in self.gateway.lanes.runners if one.rules.lane.id == name)

    async def sees(self, condition) -> None:
        """Wait until this is so."""
        await until(condition)

    async def let_in(self, yard: Yard) -> None:
        """Let a vehicle with a card pass from loop to loop."""
        before = len(yard.wishes())
        yard.arming(occupied=True)
        await self.sees(lambda: self.lane(yard.name).phase is Phase.ARMED)
        self.gateway.lanes.report(CardPresented(yard.reader, 0, 0, CARD, time.monotonic()))
        await self.sees(lambda: len(yard.wishes()) > before)
        await self.sees(lambda: self.lane(yard.name).position is GatePosition.OPEN)
        yard.under(occupied=True)
        await self.sees(lambda: self.lane(yard.name).phase is Phase.PASSING)
        yard.arming(occupied=False)
        await asyncio.sleep(0.1)  # the vehicle is under the gate for a while
        yard.under(occupied=False)
        await self.sees(lambda: self.lane(yard.name).position is GatePosition.CLOSED)
        await self.sees(lambda: self.lane(yard.name).phase is Phase.IDLE)


@asynccontextmanager
async def a_house(folder: Path) -> AsyncIterator[House]:
    """The gateway from start to stop, with both lanes under control."""
    async with AsyncExitStack() as stack:
        yards = []
        for name, gate in (("entry", 101), ("exit", 201)):
            barrier, far_end, port = await stack.enter_async_context(a_barrier())
            yards.append(Yard(name, barrier, far_end, port, gate, gate + 1))
        path = folder / "site.toml"
        lanes = (LANE.format(name=y.name, gate=y.gate, reader=y.reader, port=y.port) for y in yards)
        path.write_text(SITE + "".join(lanes))
        give_account(folder / "data")
        data = stack.enter_context(DataFolder.open(folder / "data"))
        secrets = Secrets(folder=folder, environ={"EDGE_GATEWAY_SECRET_SCREEN": "hush-hush"})
        run = RunContext(
            loaded=load_whole(path, secrets=secrets),
            files=TrialFiles(path=path, folder=folder / "data" / "site-file"),
            folder=data,
            secrets=secrets,
            notify=Notify(address=None),
        )
        gateway = Gateway(run)
        house = House(gateway, *yards, path=path)
        async with asyncio.TaskGroup() as group:
            living = group.create_task(gateway.live())
            try:
                await house.sees(lambda: all(house.device(one).online for one in (101, 201)))
                await house.sees(lambda: gateway.services)
                card = Card(1, CARD, aliases=(text_alias(CARD),))
                await gateway.store.cards.apply(put=[StoredCard(card, "{}")], now=0)
                yield house
            finally:
                signal.raise_signal(signal.SIGTERM)
                await living
