"""A site of real far ends in which faults are made: a gateway process, its buses, readers, cameras, central, receiver.

Each part that a fault may strike has far ends of its own, so that faults of different parts do not disturb each other.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from aiohttp import ClientSession, UnixConnector
from forked import Forked
from osdp_peripherals import Peripherals
from waiting import until

from drivers.modbus.profile import load_profile, load_unit_profile
from drivers.profile_file import SHIPPED_PROFILES
from drivers.rtsp.frames import TICKS_PER_SECOND, EncodedFrame
from drivers.rtsp.server.fanout import Fanout
from drivers.rtsp.server.messages import Credentials
from drivers.rtsp.server.server import RtspServer, ServedStream
from drivers.rtsp.server.testcard import TestCard
from gateway.runtime.clock import SystemClock
from gateway.runtime.unix_sockets import INTERFACE_SOCKET
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.central.accounts import CentralAccount
from simulation.far_ends.central.seed import seed_site
from simulation.far_ends.central.service import Central
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring
from simulation.far_ends.pseudo_terminal import PseudoTerminal

_GATE_PROFILE = load_profile(SHIPPED_PROFILES / "relay-barrier.toml")
_INPUTS_PROFILE = load_unit_profile(SHIPPED_PROFILES / "inputs-8.toml")
PATIENT_SECONDS = 0.6
"""The time for an answer on a serial line: twice the usual, so that a busy machine loses fewer."""
_TRAVEL_SECONDS = 0.3
_START_SECONDS = 30.0
_CAMERA = Credentials("viewer", "demo")
_OSDP_KEY = "00112233445566778899aabbccddeeff"
_ANOTHER_KEY = "ffeeddccbbaa99887766554433221100"

LANES = (
    "plain",
    "still",
    "pushed",
    "stopped",
    "open",
    "stuck",
    "held",
    "noisy",
    "switch",
    "fire",
    "readers",
    "modules",
    "blocked",
    "limits",
)
"""One lane for each part that a fault strikes."""
LINES = ("down", "silent", "garbled", "echo", "strays", "twins", "loose", "slow")
"""Serial lines with two input modules each."""
CAMERAS = ("away", "refusing", "stalling", "keyless", "jumping", "lossy")
_OVER_UDP = "lossy"
_JUMP_TICKS = 5 * TICKS_PER_SECOND


class FarLane:
    """A barrier on a TCP port of its own, with an input module beside it."""

    def __init__(self, name: str, index: int) -> None:
        """`index` gives the ids of its devices."""
        self.name = name
        self.gate, self.inputs = 100 + 10 * index, 101 + 10 * index
        self.barrier = Barrier(travel_seconds=_TRAVEL_SECONDS)
        self.module = ProfileWiring(profile=_INPUTS_PROFILE, barrier=self.barrier)
        self.wiring = ProfileWiring(profile=_GATE_PROFILE, barrier=self.barrier)
        self.controller = ModbusFarEnd(units={1: self.wiring})
        self.modules = ModbusFarEnd(units={1: self.module})
        self.ports = (0, 0)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Answer on two free ports."""
        async with self.controller.tcp() as gate, self.modules.tcp() as inputs:
            self.ports = gate, inputs
            yield

    def sections(self, **own: object) -> str:
        """Return its part of the site file; `own` are settings of the lane besides the usual ones."""
        gate, inputs = self.ports
        settings = "\n".join(f"{name} = {text}" for name, text in own.items())
        return f"""
[[links]]
id = "{self.name}-gate"
url = "tcp://127.0.0.1:{gate}"
[[links]]
id = "{self.name}-inputs"
url = "tcp://127.0.0.1:{inputs}"
[[devices]]
id = {self.gate}
name = "{self.name} gate"
driver = "modbus-gate"
link = "{self.name}-gate"
profile = "relay-barrier"
[[devices]]
id = {self.inputs}
name = "{self.name} inputs"
driver = "modbus-io"
link = "{self.name}-inputs"
profile = "inputs-8"
[[lanes]]
id = "{self.name}"
name = "{self.name} lane"
gate = {self.gate}
arming = {{ device = {self.inputs}, point = "arming_loop" }}
closing = {{ device = {self.gate}, point = "closing_loop" }}
safety = [{{ device = {self.gate}, point = "photocell" }}]
closes = "gateway"
opening_seconds = 2
closing_seconds = 2
waiting_seconds = 2
back_out_seconds = 1
clear_after_loss_seconds = 0.5
{settings}
"""


class FarLine:
    """Two input modules on a serial line; whatever they send can be spoilt on its way."""

    def __init__(self, name: str, index: int, folder: Path) -> None:
        """`index` gives the ids of its devices; the port is a name in `folder`."""
        self.name = name
        self.devices = (501 + 10 * index, 502 + 10 * index)
        self.path = folder / f"line-{name}"
        self.terminal: _EchoingTerminal | None = None
        barrier = Barrier()
        units = {unit: ProfileWiring(profile=_INPUTS_PROFILE, barrier=barrier) for unit in (1, 2)}
        self.far_end = ModbusFarEnd(units=units, framing="rtu")

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Answer on the serial port."""
        async with self.far_end.serial(path=self.path, make=_EchoingTerminal) as terminal:
            assert isinstance(terminal, _EchoingTerminal)
            self.terminal = terminal
            yield

    def both(self, how: Misbehaviour) -> None:
        """Let both modules misbehave."""
        for unit in (1, 2):
            self.far_end.misbehave(unit, how)

    @property
    def sections(self) -> str:
        """Its part of the site file."""
        devices = "".join(
            f"""
[[devices]]
id = {number}
name = "{self.name} module {unit}"
driver = "modbus-io"
link = "{self.name}"
framing = "rtu"
profile = "patient-inputs-8"
unit = {unit}
"""
            for unit, number in enumerate(self.devices, start=1)
        )
        return f'\n[[links]]\nid = "{self.name}"\nurl = "serial:{self.path}"\nbaud = 19200\n{devices}'


class _EchoingTerminal(PseudoTerminal):
    """A serial port whose adapter can send back what it is sent."""

    def __init__(self, *, path: Path, on_bytes: object) -> None:
        self._answer = on_bytes
        self.echoes = False
        super().__init__(path=path, on_bytes=self._sent)

    def _sent(self, data: bytes) -> None:
        if self.echoes:
            self.write(data)
        self._answer(data)  # type: ignore[operator]


class SpoiltFeed(Fanout):
    """The frames of another feed, without keyframes or with times that jump while it is told so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_keyless = False
        self.jumps = False
        self._ahead = 0

    def publish(self, frame: EncodedFrame) -> None:
        """Hand a frame to every viewer, or drop it."""
        if frame.keyframe and self.is_keyless:
            return
        if frame.keyframe and self.jumps:
            self._ahead += _JUMP_TICKS
        super().publish(replace(frame, pts=frame.pts + self._ahead, dts=frame.dts + self._ahead))


class _ToAll(Fanout):
    """Every feed at once."""

    def __init__(self, feeds: Iterable[Fanout]) -> None:
        super().__init__()
        self._feeds = tuple(feeds)

    def publish(self, frame: EncodedFrame) -> None:
        """Hand a frame to every feed."""
        for feed in self._feeds:
            feed.publish(frame)


class FarCameras:
    """Cameras that show one test picture: one on a port of its own, and the others on another."""

    def __init__(self) -> None:
        self.feeds = {name: SpoiltFeed() for name in CAMERAS}
        self.streams = {name: ServedStream(feed=feed, credentials=_CAMERA) for name, feed in self.feeds.items()}
        self._ports: dict[bool, int] = {}
        self._own: RtspServer | None = None

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve all of them, and let them send."""
        card, feeds = TestCard(name="yard", time_code=lambda: ""), _ToAll(self.feeds.values())
        sending = asyncio.get_running_loop().create_task(card.run(feeds))
        streams = {f"/{name}": stream for name, stream in self.streams.items()}
        async with RtspServer(streams=streams) as shared:
            self._ports[False] = shared.port
            await self.come()
            try:
                yield
            finally:
                await self.go()
        sending.cancel()
        await asyncio.wait([sending])

    async def come(self) -> None:
        """Switch on the camera that has a port of its own, on the same port as before."""
        self._own = RtspServer(streams={"/away": self.streams["away"]}, port=self._ports.get(True, 0))
        await self._own.__aenter__()
        self._ports[True] = self._own.port

    async def go(self) -> None:
        """Switch it off: its port is closed, and so are its connections."""
        assert self._own is not None
        await self._own.__aexit__(None, None, None)

    @property
    def sections(self) -> str:
        """Their part of the site file."""
        return "".join(
            f"""
[[cameras]]
id = {900 + index}
name = "{name} camera"
url = "rtsp://127.0.0.1:{self._ports[name == "away"]}/{name}"
username = "viewer"
password = "camera-password"
transport = "{"udp" if name == _OVER_UDP else "tcp"}"
"""
            for index, name in enumerate(CAMERAS)
        )


class FaultSite:
    """The site: its far ends live in the test's loop, the gateway in a process of its own."""

    def __init__(self, folder: Path) -> None:
        """Everything is in `folder`, whose path is short: Unix sockets have short names."""
        self.folder = folder
        self.lanes = {name: FarLane(name, index) for index, name in enumerate(LANES)}
        self.lines = {name: FarLine(name, index, folder) for index, name in enumerate(LINES)}
        self.cameras = FarCameras()
        self.central = Central(clock=SystemClock(), accounts=(CentralAccount("gateway", "demo"),))
        self.osdp = Peripherals(folder / "osdp")
        self.desk = PseudoTerminal(path=folder / "desk", on_bytes=lambda _: None)
        self.data = folder / "data"
        self.log = folder / "gateway.log"
        self.gateway: Forked | None = None
        self._session: ClientSession | None = None

    @property
    def http(self) -> ClientSession:
        """Requests over the gateway's local socket, as root of this machine."""
        assert self._session is not None
        return self._session

    @asynccontextmanager
    async def running(self, lane_settings: Mapping[str, Mapping[str, object]]) -> AsyncIterator[FaultSite]:
        """Serve the far ends and run the gateway. `lane_settings`: of lanes by name, besides the usual ones."""
        async with AsyncExitStack() as stack:
            for part in (*self.lanes.values(), *self.lines.values(), self.cameras):
                await stack.enter_async_context(part.serving())
            await self.central.start(port=0)
            stack.push_async_callback(self.central.stop)
            devices = {
                number: f"device {number}" for lane in self.lanes.values() for number in (lane.gate, lane.inputs)
            }
            seed_site(self.central.tables, now=SystemClock().wall(), devices=devices, cameras={}, cards=10)
            await self.osdp.plug_in({"address": 1, "key": _OSDP_KEY})
            stack.push_async_callback(self.osdp.unplug)
            self.lanes["still"].barrier.force(opening=0.5, now=time.monotonic())
            self.desk.plug_in()
            stack.callback(self.desk.unplug)
            self._write(lane_settings)
            self._session = await stack.enter_async_context(
                ClientSession("http://localhost", connector=UnixConnector(str(self.data / "run" / INTERFACE_SOCKET)))
            )
            await self._start()
            stack.push_async_callback(self._end)
            yield self

    def _write(self, lane_settings: Mapping[str, Mapping[str, object]]) -> None:
        secrets = self.folder / "secrets"
        secrets.mkdir(mode=0o700)
        for name, text in {"central-password": "demo", "camera-password": "demo", "osdp-key": _OSDP_KEY}.items():
            (secrets / name).write_text(text)
            (secrets / name).chmod(0o600)
        head = f"""
[site]
name = "Faulty yard"
profiles = "profiles"
[api]
port = 0
[policy]
stale_seconds = 2
[central]
url = "{self.central.url}"
username = "gateway"
password = "central-password"
pull_seconds = 0.5
timeout_seconds = 2
clock_alert_seconds = 5
[storage]
media_gigabytes = 2
free_floor_gigabytes = 0.2
[[links]]
id = "desk"
url = "serial:{self.desk.path}"
[[devices]]
id = 800
name = "Reader"
driver = "serial-reader"
link = "desk"
[[links]]
id = "osdp"
url = "serial:{self.osdp.path}"
[[devices]]
id = 801
name = "OSDP reader"
driver = "osdp-reader"
link = "osdp"
address = 1
key = "osdp-key"
"""
        lanes = "".join(lane.sections(**lane_settings.get(lane.name, {})) for lane in self.lanes.values())
        lines = "".join(line.sections for line in self.lines.values())
        (self.folder / "site.toml").write_text(head + lanes + lines + self.cameras.sections)
        text = (SHIPPED_PROFILES / "inputs-8.toml").read_text()
        usual = f"reply_ms = {_INPUTS_PROFILE.reply_ms}"
        assert usual in text
        (self.folder / "profiles").mkdir(exist_ok=True)
        patient = self.folder / "profiles" / "patient-inputs-8.toml"
        patient.write_text(text.replace(usual, f"reply_ms = {PATIENT_SECONDS * 1000:.0f}"))

    async def give_reader_key(self, *, another: bool) -> None:
        """Put a reader with another key in the place of the OSDP reader, or the right one again."""
        await self.osdp.unplug()
        await self.osdp.plug_in({"address": 1, "key": _ANOTHER_KEY if another else _OSDP_KEY})

    async def _start(self) -> None:
        with self.log.open("ab") as log:
            words = ("gateway", "run", self.folder / "site.toml", "--data", self.data)
            self.gateway = Forked(*words, output=log.fileno(), errors=log.fileno(), env=dict(os.environ))
        try:
            await until((self.data / "run" / INTERFACE_SOCKET).exists, within=_START_SECONDS)
        except AssertionError as error:
            error.add_note(self.log.read_text()[-4000:])
            raise

    async def _end(self) -> None:
        assert self.gateway is not None
        self.gateway.terminate()
        await asyncio.to_thread(partial(self.gateway.wait, timeout=20))
