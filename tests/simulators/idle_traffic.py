"""The traffic of an idle site of 5,000 cards in a day: `make idle-traffic SECONDS=180`.

Two gateways run as they are installed: one with a fleet, whose notices let pulls rest, one without. Both fetch from a
central whose lists have an ETag. Relays count bytes as an IP network carries them. The rates of a few minutes, and the
cost of one whole fetch of the cards, make the figures of a day.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import nats
from free_ports import free_port
from nats_server import NatsServer
from relay import Relay
from running_gateway import PROGRAM

from gateway.fleet.line import FleetLine
from gateway.fleet.operator import prepare
from gateway.runtime.clock import SystemClock
from simulation.far_ends.central import Central, CentralAccount, seed_site
from simulation.far_ends.central.service import Dialect

CARDS, PAGES = 5000, 10
CARD_LIST = "POST /v1/access/list"
DAY = 86_400
PULL_SECONDS = 57
"""The mean time from one pull to the next, with its jitter."""
SWEEPS = DAY / 3420
"""A day's pulls while notices come. Jitter makes each second one come after the hour for which an ETag is trusted."""
WHOLE_A_DAY = 24
"""Whole fetches a day of a gateway that pulls all the time: an ETag is trusted for an hour."""
PASSWORD = "right horse"


def site_of(central: str, fleet: str = "") -> str:
    """A site file."""
    text = f"""
[site]
name = "North"
[api]
port = {free_port()}
[central]
url = "{central}"
username = "gateway"
password = "central"
"""
    return f'{text}[fleet]\nurls = ["{fleet}"]\nsite = "north"\ngateway = "gate-1"\n' if fleet else text


@dataclass
class Idle:
    """One gateway, with the relays before its servers."""

    name: str
    process: subprocess.Popen[bytes]
    central: Relay
    fleet: Relay | None

    def carried(self) -> tuple[int, int]:
        """Bytes to and from central, and to and from the fleet's server."""
        return self.central.carried, self.fleet.carried if self.fleet else 0


def started(stack: ExitStack, folder: Path, text: str) -> subprocess.Popen[bytes]:
    """Start a gateway, which ends with the stack."""
    folder.mkdir()
    (folder / "site.toml").write_text(text)
    secrets = {"EDGE_GATEWAY_SECRET_CENTRAL": PASSWORD}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [PROGRAM, "run", "site.toml", "--data", str(folder / "data")],
            cwd=folder, env=os.environ | secrets, stdout=log, stderr=log,
        )  # fmt: skip

    def end() -> None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)
    return process


async def joined(port: int) -> Relay:
    relay = Relay(port)
    await relay.join()
    return relay


async def settled(idle: Idle, central: Central) -> int:
    """Wait until the first fetch of the cards is over; the bytes that it took."""
    end = time.monotonic() + 120
    before, still = -1, 0
    while still < 8:
        assert time.monotonic() < end, f"{idle.name}: the cards were not fetched"
        assert idle.process.poll() is None, f"{idle.name}: the gateway has ended"
        await asyncio.sleep(0.5)  # traffic must rest for some time
        now, _ = idle.carried()
        still, before = (still + 1, now) if now == before and central.asked[CARD_LIST] >= PAGES else (0, now)
    return before


def tell(what: str, each: float, times: float) -> float:
    """Print a part of a day's traffic; its megabytes."""
    amount = each * times / 1e6
    print(f"  {what}: {amount:.2f} MB", flush=True)
    return amount


async def run(options: argparse.Namespace, folder: Path) -> None:
    clock = SystemClock()
    account = CentralAccount("gateway", PASSWORD)
    (folder / "nats").mkdir()
    server = NatsServer(folder / "nats")
    centrals = [
        Central(clock=clock, accounts=(account,), dialect=Dialect(unchanged_status=304, compresses=options.gzip))
        for _ in range(2)
    ]
    with ExitStack() as stack:
        server.start()
        stack.callback(server.kill)
        client = await nats.connect(server.url)
        await prepare(FleetLine(client), days=30, replicas=1)
        for central in centrals:
            seed_site(central.tables, now=clock.wall(), devices={101: "Gate"}, cameras={201: "Entry"}, cards=CARDS)
            await central.start()
        fleet = await joined(server.port)
        relays = [await joined(central.port) for central in centrals]
        urls = [f"http://127.0.0.1:{relay.port}" for relay in relays]
        with_fleet = site_of(urls[0], f"nats://127.0.0.1:{fleet.port}")
        idles = [
            Idle("NATS", started(stack, folder / "a", with_fleet), relays[0], fleet),
            Idle("central alone", started(stack, folder / "b", site_of(urls[1])), relays[1], None),
        ]
        whole = [await settled(idle, central) for idle, central in zip(idles, centrals, strict=True)]
        await client.publish("cards.north", json.dumps({"ids": []}).encode())
        await asyncio.sleep(options.warm)  # until the second pull is over
        before, asked = [idle.carried() for idle in idles], [central.answered for central in centrals]
        await asyncio.sleep(options.seconds)  # what is counted is real time's
        rates = [
            [(now - then) / options.seconds for now, then in zip(idle.carried(), was, strict=True)]
            for idle, was in zip(idles, before, strict=True)
        ]
        requests = [(one.answered - was) / options.seconds for one, was in zip(centrals, asked, strict=True)]
        unchanged = rates[1][0] * PULL_SECONDS
        print(f"{CARDS} cards, {'gzip' if options.gzip else 'no gzip'}; whole fetches {whole} bytes,", end=" ")
        print(f"a pull without changes {unchanged:,.0f} bytes")
        with_nats = [
            tell(f"{SWEEPS / 2:.0f} sweeps in full", whole[0], SWEEPS / 2),
            tell(f"{SWEEPS / 2:.0f} sweeps without changes", unchanged, SWEEPS / 2),
            tell(f"central besides, {requests[0] * DAY:,.0f} requests", rates[0][0], DAY),
            tell("the fleet's line", rates[0][1], DAY),
        ]
        print(f"with NATS, a day: {sum(with_nats):.1f} MB", flush=True)
        alone = [
            tell(f"{WHOLE_A_DAY} whole fetches", whole[1], WHOLE_A_DAY),
            tell(f"pulls without changes and the rest, {requests[1] * DAY:,.0f} requests", rates[1][0], DAY),
        ]
        print(f"at central with ETag alone, a day: {sum(alone):.1f} MB", flush=True)
        for idle in idles:
            assert idle.process.poll() is None, "a gateway has ended"
        await client.close()
        for central in centrals:
            await central.stop()
        for relay in (*relays, fleet):
            await relay.cut()
        await asyncio.sleep(0.5)  # what the relays carried ends


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180, help="of counting")
    parser.add_argument("--warm", type=float, default=75, help="seconds before that, so that the second pull is over")
    parser.add_argument("--gzip", action=argparse.BooleanOptionalAction, default=True)
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(run(parser.parse_args(), Path(place)))
