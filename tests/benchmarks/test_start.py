"""Time of a start with years of events and many cards, after a kill too, and the size of an idle gateway.

EVENTS=1000000 makes the store smaller; EVENT_STORE names a folder that keeps it for the next run.

Run: pytest tests/benchmarks/test_start.py -m benchmark -s
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from free_ports import free_port
from large_store import fill_cards, fill_events
from processes import cpu_seconds, megabytes, tree
from running_gateway import PASSWORD, give_account

from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

EVENTS = int(os.environ.get("EVENTS", "10000000"))
CARDS, IDLE_CARDS = 250_000, 100_000
STARTS = 5
LANES = 2
AIM_OWN_SECONDS, AIM_SIGN_IN_SECONDS, AIM_MEGABYTES = 1.0, 2.5, 100.0
IDLE_SECONDS = 30
LONGEST = 60


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with the events and the cards; a copy, since the gateway writes there."""
    kept = os.environ.get("EVENT_STORE")
    source = Path(kept) if kept else tmp_path_factory.mktemp("events")
    if not (source / "site.db").exists():
        source.mkdir(parents=True, exist_ok=True)
        asyncio.run(fill_events(source, events=EVENTS, devices=40))
    folder = tmp_path_factory.mktemp("data")
    for name in ("site.db", "cards.db"):
        shutil.copy(source / name, folder / name)
    asyncio.run(fill_cards(folder, cards=CARDS))
    give_account(folder)
    yield folder
    shutil.rmtree(folder)


async def test_start_with_a_large_store(large: Path, tmp_path: Path) -> None:
    async with field() as modbus:
        port = write_site(tmp_path, modbus)
        clean = [await one_start(tmp_path, large, port, stop=signal.SIGTERM) for _ in range(STARTS)]
        killed = [await one_start(tmp_path, large, port, stop=signal.SIGKILL) for _ in range(STARTS + 1)][1:]
    print(f"\n{EVENTS:,} events, {CARDS:,} cards, {LANES} lanes; median of {STARTS}, worst in brackets")
    for name, starts in (("after a stop", clean), ("after kill -9", killed)):
        row(f"{name}: lanes under control, own time", [one[0] for one in starts], AIM_OWN_SECONDS)
        row(f"{name}: lanes under control", [one[1] for one in starts], None)
        row(f"{name}: a sign-in is served", [one[2] for one in starts], AIM_SIGN_IN_SECONDS)


async def test_memory_of_an_idle_gateway(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await fill_cards(data, cards=IDLE_CARDS)
    give_account(data)
    async with field() as modbus:
        port = write_site(tmp_path, modbus)
        process = start(tmp_path, data)
        try:
            await until_signed_in(port)
            await asyncio.sleep(IDLE_SECONDS)  # what a start needs for itself is given back by then
            processes = tree(process.pid)
            _, pss = megabytes(processes)
        finally:
            end(process, signal.SIGTERM)
    met = "met" if pss <= AIM_MEGABYTES else "MISSED"
    print(f"\nidle, {IDLE_CARDS:,} cards, no camera: {len(processes)} processes, {pss:.1f} MB of memory (PSS)")
    print(f"aim {AIM_MEGABYTES:g} MB: {met}")


def row(name: str, values: list[float], aim: float | None) -> None:
    middle = sorted(values)[len(values) // 2]
    verdict = "" if aim is None else f"  aim {aim:g} s: {'met' if middle <= aim else 'MISSED'}"
    print(f"{name:52} {middle:6.2f} s ({max(values):.2f} s){verdict}")


async def one_start(folder: Path, data: Path, port: int, *, stop: signal.Signals) -> tuple[float, float, float]:
    """Start, sign in, end; its processor time and the time until lanes are under control, and until the sign-in."""
    began = time.monotonic()
    process = start(folder, data)
    try:
        ready = asyncio.get_running_loop().create_task(until_ready(folder, process.pid, began))
        signed_in = await until_signed_in(port) - began
        own, under_control = await ready
    finally:
        end(process, stop)
    return own, under_control, signed_in


def start(folder: Path, data: Path) -> subprocess.Popen[bytes]:
    with (folder / "gateway.log").open("wb") as log:
        words = [sys.executable, "-m", "gateway", "run", str(folder / "site.toml"), "--data", str(data)]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def end(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    process.send_signal(how)
    process.wait(timeout=LONGEST)


async def until_ready(folder: Path, pid: int, began: float) -> tuple[float, float]:
    while b"lanes_under_control" not in (folder / "gateway.log").read_bytes():
        assert time.monotonic() - began < LONGEST, (folder / "gateway.log").read_text()
        await asyncio.sleep(0.01)  # short beside what is measured
    return cpu_seconds(tree(pid)), time.monotonic() - began


async def until_signed_in(port: int) -> float:
    deadline = time.monotonic() + LONGEST
    while not await asyncio.to_thread(signs_in, port):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)  # short beside what is measured
    return time.monotonic()


def signs_in(port: int) -> bool:
    words = json.dumps({"username": "chief", "password": PASSWORD}).encode()
    url = f"http://127.0.0.1:{port}/v1/auth/login"
    try:
        with urlopen(Request(url, words, {"Content-Type": "application/json"}), timeout=LONGEST) as answer:
            return bool(answer.status == 200)
    except HTTPError as error:
        if error.code != 503:
            raise
        return False
    except (URLError, ConnectionError):
        return False


@asynccontextmanager
async def field() -> AsyncIterator[int]:
    """Barriers with their relays and inputs on one Modbus line; gives its port."""
    units = {unit: relay_module(Barrier(travel_seconds=0.05)) for unit in range(1, LANES + 1)}
    async with ModbusFarEnd(units=units).tcp() as port:
        yield port


def write_site(folder: Path, modbus: int) -> int:
    port = free_port()
    text = f"""
[site]
name = "Benchmark"
[api]
port = {port}
[[links]]
id = "barriers"
url = "tcp://127.0.0.1:{modbus}"
"""
    for number in range(1, LANES + 1):
        text += f"""
[[devices]]
id = {100 + number}
name = "Barrier {number}"
driver = "modbus-gate"
link = "barriers"
profile = "relay-barrier"
unit = {number}
[[lanes]]
id = "lane{number}"
name = "Lane {number}"
gate = {100 + number}
arming = {{ device = {100 + number}, point = "arming_loop" }}
closing = {{ device = {100 + number}, point = "closing_loop" }}
safety = [{{ device = {100 + number}, point = "photocell" }}]
closes = "device"
"""
    (folder / "site.toml").write_text(text)
    return port
