"""From the last byte of a card on the serial line to the open command on the wire, beside a program with no other job.

The bare peer reads the same kind of serial line and sends a ready-made request to the same simulated device: what it
needs is the machine's own share. What the gateway adds are its lanes, its look-up among 100,000 cards, its rules and
its bus, while a camera records. Then both lanes, whose barriers share a line, get their cards at the same time.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import ClientSession, UnixConnector
from figures import show
from large_store import fill_cards
from waiting import until

from drivers.modbus.frames import Table, Write, coil_word, encode_request
from gateway.runtime.unix_sockets import INTERFACE_SOCKET
from simulation.demo.devices import CardReaderFarEnd
from simulation.demo.scene import FieldReady
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module
from tests.benchmarks.test_small_box import lag_p99

CARDS = 100_000
ROUNDS = 100
TOGETHER_ROUNDS = 30
LANES = ("a", "b")
AIM_ADDED_P99 = 0.003
_GATEWAY = ("-m", "gateway")

_BARE = """
import os, socket, sys, tty
line = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
tty.setraw(line)
device = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
device.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
request, heard = bytes.fromhex(sys.argv[3]), b""
print("ready", flush=True)
while True:
    heard += os.read(line, 256)
    if heard.endswith(b"\\r\\n"):
        device.sendall(request)
        device.recv(256)
        heard = b""
"""


@pytest.mark.benchmark
@pytest.mark.timeout(600)
async def test_card_to_open(tmp_path):
    barriers = {unit: Barrier(travel_seconds=0.05) for unit in (1, 2, 3)}
    far_end = ModbusFarEnd(units={unit: relay_module(barrier) for unit, barrier in barriers.items()})
    async with AsyncExitStack() as stack:
        modbus = await stack.enter_async_context(far_end.tcp())
        readers = [CardReaderFarEnd(path=tmp_path / name) for name in (*LANES, "bare")]
        for reader in readers:
            reader.plug_in()
            stack.callback(reader.unplug)
        await fill_cards(tmp_path / "data", cards=CARDS)
        field = await start_field(stack, tmp_path)
        await start_gateway(stack, tmp_path, site_text(tmp_path, modbus, field))
        await start_bare(stack, readers[2], modbus)
        before = await metrics(tmp_path)
        bare: list[float] = []
        added: list[float] = []
        for _ in range(ROUNDS):
            bare.append(await one_bare(far_end, readers[2]))
            added += await asyncio.gather(
                *(one_passage(far_end, barriers[unit], readers[unit - 1], unit) for unit in (1, 2))
            )
        together = [
            max(
                await asyncio.gather(
                    *(one_passage(far_end, barriers[unit], readers[unit - 1], unit, wait=0.5) for unit in (1, 2))
                )
            )
            for _ in range(TOGETHER_ROUNDS)
        ]
        lag = lag_p99(before, await metrics(tmp_path))
    report(bare, added, together, lag)


async def metrics(folder: Path) -> str:
    """The gateway's own figures."""
    connector = UnixConnector(path=str(folder / "data" / "run" / INTERFACE_SOCKET))
    async with ClientSession(connector=connector) as client, client.get("http://localhost/metrics") as answer:
        assert answer.status == 200
        return await answer.text()


def report(bare: list[float], gateway: list[float], together: list[float], lag: float) -> None:
    def row(name: str, values: list[float]) -> str:
        cut = statistics.quantiles(values, n=100)
        return (
            f"{name:26} n={len(values):4}  p50 {cut[49] * 1000:7.3f} ms  p99 {cut[98] * 1000:7.3f} ms"
            f"  max {max(values) * 1000:7.3f} ms"
        )

    difference = statistics.quantiles(gateway, n=100)[98] - statistics.quantiles(bare, n=100)[98]
    print()
    print(f"card to open, {CARDS:,} cards in the store, one camera recording")
    print(row("bare line to request", bare))
    print(row("gateway, card to open", gateway))
    met = "met" if difference <= AIM_ADDED_P99 else "MISSED"
    print(f"added at p99: {difference * 1000:.3f} ms (aim {AIM_ADDED_P99 * 1000:g} ms: {met})")
    middle = statistics.median(bare)
    show("card to open, added at p50", (statistics.median(gateway) - middle) * 1000, "ms", aim=0.6)
    show("card to open, added at p99", difference * 1000, "ms", aim=1)
    later = (statistics.median(together) - middle) * 1000
    show("card to open, both lanes at once, added to the later at p50", later, "ms", aim=1.5)
    show("card to open, loop lag p99", lag * 1000, "ms at most", aim=2)


async def one_bare(far_end: ModbusFarEnd, reader: CardReaderFarEnd) -> float:
    seen = len(opens(far_end, 3))
    sent = time.monotonic()
    reader.present("001,00001")
    await until(lambda: len(opens(far_end, 3)) > seen, within=2)
    return opens(far_end, 3)[-1] - sent


async def one_passage(
    far_end: ModbusFarEnd, barrier: Barrier, reader: CardReaderFarEnd, unit: int, *, wait: float | None = None
) -> float:
    """Have a vehicle pass; return how long the open took since its card, which comes after `wait` seconds."""
    seen = len(opens(far_end, unit))
    now = time.monotonic
    barrier.set_arming_loop(occupied=True, now=now())
    # Usually vehicles of two lanes come independently: anywhere within each other's passage, polls and writes.
    await asyncio.sleep(0.25 + random.random() * 0.8 if wait is None else wait)
    card = 1 + seen * 331 % (CARDS - 1)
    line = f"{card >> 16:03d},{card & 0xFFFF:05d}"
    sent = now()
    reader.present(line)
    await until(lambda: len(opens(far_end, unit)) > seen)
    took = opens(far_end, unit)[-1] - sent
    await asyncio.sleep(0.35)
    barrier.set_closing_loop(occupied=True, now=now())
    await asyncio.sleep(0.15)
    barrier.set_arming_loop(occupied=False, now=now())
    await asyncio.sleep(0.15)
    barrier.set_closing_loop(occupied=False, now=now())
    # On a busy machine the gateway may miss so short a vehicle: then the gate closes because none came.
    await until(lambda: barrier.state(now=now()).closed_limit)
    await asyncio.sleep(0.15)
    return took


def opens(far_end: ModbusFarEnd, unit: int) -> list[float]:
    return [item.at for item in far_end.commands if item.unit == unit and item.wish is Wish.OPEN]


async def start_field(stack: AsyncExitStack, folder: Path) -> FieldReady:
    """A camera in a process of its own."""
    field = subprocess.Popen(
        [sys.executable, "-m", "simulation.demo.field", "--folder", str(folder / "field"), "--no-traffic"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    stack.callback(end, field)
    return FieldReady.model_validate_json(await asyncio.to_thread(field.stdout.readline))


async def start_gateway(stack: AsyncExitStack, folder: Path, text: str, *, program: Sequence[str] = _GATEWAY) -> None:
    site = folder / "site.toml"
    site.write_text(text)
    secrets = folder / "secrets"
    secrets.mkdir(mode=0o700)
    (secrets / "camera").write_text("demo")
    (secrets / "camera").chmod(0o600)
    log = (folder / "gateway.log").open("wb")
    stack.callback(log.close)
    words = [sys.executable, *program, "run", str(site), "--data", str(folder / "data")]
    gateway = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    stack.callback(end, gateway)
    await until(lambda: any((folder / "data" / "media").rglob("*.ts")), within=120)


async def start_bare(stack: AsyncExitStack, reader: CardReaderFarEnd, modbus: int) -> None:
    request = encode_request("tcp", unit=3, tag=1, request=Write(Table.COIL, 0, coil_word(on=True)))
    peer = subprocess.Popen(
        [sys.executable, "-c", _BARE, str(reader.url.removeprefix("serial:")), str(modbus), request.hex()],
        stdout=subprocess.PIPE,
    )
    stack.callback(end, peer)
    assert await asyncio.to_thread(peer.stdout.readline) == b"ready\n"


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(timeout=20)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def site_text(folder: Path, modbus: int, field: FieldReady) -> str:
    text = f"""
[site]
name = "Benchmark"
[api]
port = 0
[[links]]
id = "barriers"
url = "tcp://127.0.0.1:{modbus}"
[[cameras]]
id = 201
name = "Camera"
url = "rtsp://127.0.0.1:{field.rtsp_port}/entry"
username = "viewer"
password = "camera"
"""
    for number, name in enumerate(LANES, start=1):
        gate, reader = 100 + number, 110 + number
        text += f"""
[[links]]
id = "reader-{name}"
url = "serial:{folder / name}"
[[devices]]
id = {gate}
name = "Barrier {name}"
driver = "modbus-gate"
link = "barriers"
profile = "relay-barrier"
unit = {number}
[[devices]]
id = {reader}
name = "Reader {name}"
driver = "serial-reader"
link = "reader-{name}"
form = "wiegand26"
[[lanes]]
id = "{name}"
name = "Lane {name}"
gate = {gate}
readers = [{reader}]
cameras = [201]
closes = "gateway"
clear_seconds = 0.5
waiting_seconds = 10
arming = {{ device = {gate}, point = "arming_loop" }}
closing = {{ device = {gate}, point = "closing_loop" }}
safety = [{{ device = {gate}, point = "photocell" }}]
"""
    return text
