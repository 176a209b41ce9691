"""A gateway for as many lanes and cameras as a benchmark asks for, and the field that its lanes have."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path

from aiohttp import ClientError, ClientSession, UnixConnector
from large_store import fill_cards
from processes import cpu_seconds, megabytes, tree
from waiting import until

from gateway.runtime.unix_sockets import INTERFACE_SOCKET
from simulation.demo.devices import CardReaderFarEnd
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

CARDS = 5_000
LONGEST_WAIT = 5.0
SIMULATORS = Path(__file__).parents[1] / "simulators"
SITE = """
[site]
name = "Size"
[api]
port = 0
[storage]
media_gigabytes = 5
free_floor_gigabytes = 0.1
"""
CAMERA = """
[[cameras]]
id = {id}
name = "Camera {id}"
url = "rtsp://127.0.0.1:{port}/{number}"
"""
LANE = """
[[links]]
id = "barrier-{number}"
url = "tcp://127.0.0.1:{port}"
[[links]]
id = "reader-{number}"
url = "{reader}"
[[devices]]
id = {gate}
name = "Barrier {number}"
driver = "modbus-gate"
link = "barrier-{number}"
profile = "relay-barrier"
unit = 1
[[devices]]
id = {reads}
name = "Reader {number}"
driver = "serial-reader"
link = "reader-{number}"
form = "wiegand26"
[[lanes]]
id = "{number}"
name = "Lane {number}"
gate = {gate}
readers = [{reads}]
closes = "gateway"
clear_seconds = 0.5
waiting_seconds = 10
arming = {{ device = {gate}, point = "arming_loop" }}
closing = {{ device = {gate}, point = "closing_loop" }}
safety = [{{ device = {gate}, point = "photocell" }}]
"""


class FieldLane:
    """A lane's barrier, behind a line of its own, and its card reader."""

    def __init__(self, number: int, *, reader: Path) -> None:
        self.number = number
        self.reader = CardReaderFarEnd(path=reader)
        self.barrier = Barrier(travel_seconds=0.05)
        self.far_end = ModbusFarEnd(units={1: relay_module(self.barrier)})

    async def passage(self) -> float | None:
        """Have a vehicle pass with a card; return the seconds until the open command, None if none came."""
        now = time.monotonic
        seen = len(self._opens())
        self.barrier.set_arming_loop(occupied=True, now=now())
        await asyncio.sleep(0.25 + random.random() * 0.8)
        card = 1 + (self.number * 331 + seen * 7919) % (CARDS - 1)
        sent = now()
        self.reader.present(f"{card >> 16:03d},{card & 0xFFFF:05d}")
        try:
            await until(lambda: len(self._opens()) > seen, within=LONGEST_WAIT)
        except AssertionError:
            return None
        finally:
            await self._driven()
        return self._opens()[-1] - sent

    async def passages(self, count: int) -> list[float | None]:
        """Have so many vehicles pass, one after another."""
        return [await self.passage() for _ in range(count)]

    async def _driven(self) -> None:
        now = time.monotonic
        await asyncio.sleep(0.35)
        self.barrier.set_closing_loop(occupied=True, now=now())
        await asyncio.sleep(0.15)
        self.barrier.set_arming_loop(occupied=False, now=now())
        await asyncio.sleep(0.15)
        self.barrier.set_closing_loop(occupied=False, now=now())
        with contextlib.suppress(AssertionError):
            await until(lambda: self.barrier.state(now=now()).closed_limit, within=LONGEST_WAIT)
        await asyncio.sleep(0.15)

    def _opens(self) -> list[float]:
        return [item.at for item in self.far_end.commands if item.wish is Wish.OPEN]


class SizedGateway:
    """A gateway that runs, and what the system and its own metrics say of it."""

    def __init__(self, process: subprocess.Popen[bytes], *, data: Path, client: ClientSession) -> None:
        self._process = process
        self._data = data
        self._client = client

    def processor(self) -> dict[int, float]:
        """Return the processor seconds of each of its processes."""
        return {pid: cpu_seconds([pid]) for pid in tree(self._process.pid)}

    def memory(self) -> float:
        """Return the megabytes of all its processes, shared pages counted once."""
        return megabytes(tree(self._process.pid))[1]

    def events(self) -> int:
        """Return the number of the newest event on the disk."""
        with closing(sqlite3.connect(self._data / "site.db")) as connection:
            return int(connection.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()[0])

    async def metrics(self) -> str:
        """Return its metrics, "" while it serves none."""
        with contextlib.suppress(ClientError, OSError):
            async with self._client.get("http://localhost/metrics") as answer:
                return await answer.text() if answer.status == 200 else ""
        return ""

    async def works(self, *, cameras: int) -> bool:
        """Return whether it has all lanes under control, and records so many cameras."""
        text = await self.metrics()
        return values(text, "ready") == [1.0] and sum(values(text, "camera_recording")) == cameras


def values(metrics: str, name: str) -> list[float]:
    """Return the values of a metric, whatever its labels."""
    return [float(word) for word in re.findall(rf"^edge_gateway_{name}(?:{{[^}}]*}})? (\S+)$", metrics, re.MULTILINE)]


def used(before: dict[int, float], after: dict[int, float]) -> float:
    """Return the processor seconds between two readings, of processes that started meanwhile too."""
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())


@contextmanager
def steady_cameras(count: int) -> Iterator[int]:
    """Cameras of 4 Mbit/s in a process of their own; gives their port."""
    words = [sys.executable, str(SIMULATORS / "steady_cameras.py"), str(count)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            yield int(process.stdout.readline().split()[0])
        finally:
            process.kill()


@asynccontextmanager
async def site_of_size(
    folder: Path, *, lanes: int = 0, cameras: int = 0, cameras_port: int = 0, within: Sequence[str] = ()
) -> AsyncIterator[tuple[SizedGateway, list[FieldLane]]]:
    """A gateway of this size, all of it at work, and its lanes. `within` are words before its command."""
    folder.mkdir()
    field = [FieldLane(number, reader=folder / f"reader-{number}") for number in range(1, lanes + 1)]
    text = SITE
    async with AsyncExitStack() as stack:
        for lane in field:
            lane.reader.plug_in()
            stack.callback(lane.reader.unplug)
            port = await stack.enter_async_context(lane.far_end.tcp())
            text += LANE.format(
                number=lane.number, port=port, reader=lane.reader.url, gate=1000 + lane.number, reads=2000 + lane.number
            )
        for number in range(1, cameras + 1):
            text += CAMERA.format(id=3000 + number, port=cameras_port, number=number)
        site, data = folder / "site.toml", folder / "data"
        site.write_text(text)
        await fill_cards(data, cards=CARDS)
        words = [*within, sys.executable, "-m", "gateway", "run", str(site), "--data", str(data)]
        process = stack.enter_context(_running(words, log=folder / "log"))
        connector = UnixConnector(path=str(data / "run" / INTERFACE_SOCKET))
        client = await stack.enter_async_context(ClientSession(connector=connector))
        gateway = SizedGateway(process, data=data, client=client)
        await until(lambda: gateway.works(cameras=cameras), within=120)
        yield gateway, field


@contextmanager
def _running(words: list[str], *, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with ExitStack() as stack:
        file = stack.enter_context(log.open("wb"))
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
