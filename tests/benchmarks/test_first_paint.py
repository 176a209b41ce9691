"""From the address to the first lane on the screen, of a site with 200 devices, beside a bare page of as many rows.

The gateway runs by itself with 100 gates and 100 readers that all answer; the browser has a session and an empty cache.

Run: pytest tests/benchmarks/test_first_paint.py -m benchmark -s
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from free_ports import free_port
from playwright.async_api import Browser, async_playwright
from running_gateway import give_account

from simulation.demo.devices import CardReaderFarEnd
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

LANES = 100
LINES = 4
LOADS = 20
LIMIT_MS = 1000
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
PAINTED = """
const wanted = WANTED;
const look = () => {
    const node = document.querySelector(wanted);
    if (!node || node.getBoundingClientRect().height === 0) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => { globalThis.painted = performance.now(); }));
};
requestAnimationFrame(look);
"""
"""Notes when the first element that is wanted has been painted, in ms since the navigation began."""


@pytest.mark.benchmark
@pytest.mark.timeout(300)
async def test_first_useful_paint_with_200_devices(tmp_path):
    async with AsyncExitStack() as stack:
        url = await start_site(stack, tmp_path)
        bare = await start_bare(stack)
        session = await signed_in(url)
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        stack.push_async_callback(browser.close)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(LOADS):
            theirs.append(await painted(browser, bare, "li"))
            ours.append(await painted(browser, f"{url}/status/", "#lanes article", session=session))
    print(f"\nfirst useful paint, {2 * LANES} devices, {LOADS} loads each, load average {os.getloadavg()[0]:.1f}")
    for name, values in (("bare page of 200 rows", theirs), ("status page", ours)):
        print(f"{name:22} median {statistics.median(values):6.0f} ms  max {max(values):6.0f} ms")
    worst = max(ours)
    print(f"limit {LIMIT_MS} ms: {'met' if worst <= LIMIT_MS else 'MISSED'} by the slowest load")


async def painted(browser: Browser, url: str, wanted: str, *, session: str = "") -> float:
    """Load a page in a browser without a past; return when `wanted` was painted, in ms."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        if session:
            await context.add_cookies([{"name": "session", "value": session, "url": url}])
        page = await context.new_page()
        await page.add_init_script(PAINTED.replace("WANTED", repr(wanted)))
        await page.goto(url)
        await page.wait_for_function("() => globalThis.painted")
        return float(await page.evaluate("globalThis.painted"))
    finally:
        await context.close()


async def start_bare(stack: AsyncExitStack) -> str:
    """Serve a page of 200 rows as one document."""
    rows = "".join(f"<li>Device {number}: online</li>" for number in range(2 * LANES))

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=f"<!doctype html><title>Bare</title><ul>{rows}</ul>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    return f"http://127.0.0.1:{port}/"


async def start_site(stack: AsyncExitStack, folder: Path) -> str:
    """Start a gateway with all its devices; return its address once every device answers."""
    units = {unit: relay_module(Barrier(travel_seconds=1)) for unit in range(1, LANES + 1)}
    ports = [
        await stack.enter_async_context(
            ModbusFarEnd(units={unit: wiring for unit, wiring in units.items() if unit % LINES == line}).tcp()
        )
        for line in range(LINES)
    ]
    for number in range(1, LANES + 1):
        reader = CardReaderFarEnd(path=folder / f"reader-{number}")
        reader.plug_in()
        stack.callback(reader.unplug)
    port = free_port()
    (folder / "site.toml").write_text(site_text(folder, ports, port))
    give_account(folder / "data", password="chief")
    log = stack.enter_context((folder / "gateway.log").open("wb"))
    words = [sys.executable, "-m", "gateway", "run", str(folder / "site.toml"), "--data", str(folder / "data")]
    gateway = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    stack.callback(gateway.wait, 20)
    stack.callback(gateway.terminate)
    url = f"http://127.0.0.1:{port}"
    await until_all_answer(url)
    return url


async def until_all_answer(url: str) -> None:
    async with asyncio.timeout(60), aiohttp.ClientSession() as client:
        while True:
            try:
                session = await signed_in(url)
                async with client.get(f"{url}/status/now", headers={"SessionID": session}) as answer:
                    devices = (await answer.json())["snapshot"]["devices"]
                if all(device["online"] for device in devices) and len(devices) == 2 * LANES:
                    return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(1)


async def signed_in(url: str) -> str:
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{url}/v1/auth/login", json={"username": "chief", "password": "chief"}) as answer,
    ):
        return str((await answer.json())["session"])


def site_text(folder: Path, ports: list[int], port: int) -> str:
    text = f"""
[site]
name = "Benchmark"
[api]
port = {port}
"""
    for line, modbus in enumerate(ports):
        text += f'[[links]]\nid = "line-{line}"\nurl = "tcp://127.0.0.1:{modbus}"\n'
    for number in range(1, LANES + 1):
        text += f"""
[[links]]
id = "reader-{number}"
url = "serial:{folder / f"reader-{number}"}"
[[devices]]
id = {1000 + number}
name = "Barrier {number}"
driver = "modbus-gate"
link = "line-{number % LINES}"
profile = "relay-barrier"
unit = {number}
[[devices]]
id = {2000 + number}
name = "Reader {number}"
driver = "serial-reader"
link = "reader-{number}"
form = "wiegand26"
[[lanes]]
id = "lane-{number}"
name = "Lane {number}"
gate = {1000 + number}
readers = [{2000 + number}]
closes = "gateway"
arming = {{ device = {1000 + number}, point = "arming_loop" }}
closing = {{ device = {1000 + number}, point = "closing_loop" }}
safety = [{{ device = {1000 + number}, point = "photocell" }}]
"""
    return text
