"""A thousand gateways at one NATS server: `make many-sites SITES=1000 SECONDS=60 SEED=1`.

The gateways are real but for their stores, in processes of their own (`light_sites`); the server is real. Prints what
events, commands and a server that is killed and comes back cost, and fails if an event is lost or there twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import nats
from fleet_desk import key
from free_ports import free_port
from light_sites import name_of
from nats_server import NatsServer
from waiting import until

from gateway.fleet.line import FleetLine
from gateway.fleet.names import STREAM, STREAM_SUBJECTS
from gateway.fleet.operator import command, prepare
from gateway.fleet.signed_commands import Action

PROCESSES = 2
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Measured:
    """The server, as its monitoring port and the kernel tell it."""

    server: NatsServer
    port: int

    def figures(self) -> dict:
        """Connections, all there have ever been, messages taken, and memory in MB; empty while it is away."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/varz", timeout=2) as answer:
                found = json.load(answer)
        except OSError:
            return {}
        return {
            "open": found["connections"],
            "ever": found["total_connections"],
            "messages": found["in_msgs"],
            "memory": found["mem"] / 1e6,
        }

    def cpu(self) -> float:
        """Its processor seconds."""
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@dataclass
class Sites:
    """The processes with the gateways."""

    processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def start(self, url: str, sender: str, options: argparse.Namespace) -> None:
        program = Path(__file__).with_name("light_sites.py")
        each = options.sites // PROCESSES
        for place in range(PROCESSES):
            words = [url, sender, "--first", str(place * each), "--sites", str(each), "--seed", str(options.seed)]
            self.processes.append(
                await asyncio.create_subprocess_exec(
                    sys.executable, str(program), *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
                )
            )

    async def do(self, order: str, **more) -> dict[str, float]:
        """Give an order to all; the sums of what they answer."""
        sums: Counter[str] = Counter()
        for told in await asyncio.gather(*(self._asked(one, {"do": order, **more}) for one in self.processes)):
            sums.update(told)
        return sums

    async def _asked(self, process: asyncio.subprocess.Process, order: dict) -> dict:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        return json.loads(await process.stdout.readline())

    async def end(self) -> None:
        for process in self.processes:
            if process.returncode is None:
                process.kill()
            await process.wait()


@dataclass
class Trial:
    """One run, its figures in the order of their making."""

    options: argparse.Namespace
    measured: Measured
    sites: Sites
    line: FleetLine
    seed: str
    read_to: int = 0
    ids: dict[str, list[int]] = field(default_factory=dict)

    async def settled(self, wanted: Callable[[dict], bool], *, within: float = 180.0) -> float:
        """Wait until the sites are as wanted; the seconds that took."""
        begin = time.monotonic()

        async def so() -> bool:
            return wanted(await self.sites.do("state"))

        await until(so, within=within)
        return time.monotonic() - begin

    async def all_connected(self) -> float:
        return await self.settled(lambda told: told["connected"] == self.options.sites)

    async def all_sent(self) -> float:
        return await self.settled(lambda told: told["unsent"] == 0)

    async def lags(self) -> list[float]:
        """Read what is new in the stream; the milliseconds from each record to the stream."""
        found = []
        extent = await self.line.extent(STREAM, STREAM_SUBJECTS)
        async for batch in self.line.follow(STREAM, STREAM_SUBJECTS, after=self.read_to, most=1000):
            for one in batch:
                record = json.loads(one.data)
                self.ids.setdefault(one.subject, []).append(record["id"])
                found.append((one.at - record["made"]) / 1000)
                self.read_to = one.sequence
            if self.read_to >= extent.last:
                return found
        return found

    async def steady(self) -> None:
        """Events at the usual rate."""
        seconds, rate = self.options.seconds, self.options.rate
        before, cpu = await self.sites.do("state"), self.measured.cpu()
        await self.sites.do("events", rate=rate / PROCESSES, seconds=seconds)
        await self.all_sent()
        told, lags = await self.sites.do("state"), await self.lags()
        say(f"{rate:g} events/s for {seconds:g} s: {len(lags)} in the stream; lag {spread(lags)}")
        used = told["cpu"] - before["cpu"]
        say(f"  processor: server {(self.measured.cpu() - cpu) / seconds:.0%} of a core, sites {used / seconds:.0%}")

    async def burst(self) -> None:
        """As many events as go."""
        each = self.options.burst
        begin = time.monotonic()
        await self.sites.do("burst", each=each)
        await self.all_sent()
        seconds, lags = time.monotonic() - begin, await self.lags()
        say(f"{each} events at each site at once: {len(lags) / seconds:,.0f} events/s, all there after {seconds:.1f} s")

    async def commands(self, chance: random.Random) -> None:
        """Commands to one site after the other."""
        took = []
        for _ in range(self.options.commands):
            name = name_of(chance.randrange(self.options.sites))
            begin = time.perf_counter()
            (reply,) = [one async for one in command(self.line, name, seed=self.seed, action=Action.SNAPSHOT)]
            took.append((time.perf_counter() - begin) * 1000)
            assert reply.state == "done", reply
        say(f"{len(took)} commands to any site, from the question for its time to the result: {spread(took)}")

    async def restart(self) -> None:
        """Kill the server, start it again, and watch the gateways return."""
        self.measured.server.kill()
        await self.sites.do("events", rate=self.options.rate / PROCESSES, seconds=self.options.away)
        self.measured.server.start()
        begin, samples = time.monotonic(), []
        while not samples or samples[-1][1]["open"] < self.options.sites:
            if figures := await asyncio.to_thread(self.measured.figures):
                samples.append((time.monotonic() - begin, figures))
            assert time.monotonic() - begin < 180
            await asyncio.sleep(0.2)  # the grain of the samples
        connects, messages = rates(samples, "ever"), rates(samples, "messages")
        say(f"server killed, away for {self.options.away:g} s; all back {samples[-1][0]:.1f} s after its start")
        say(f"  connections a second: {' '.join(map(str, connects))}; peak {max(connects)}")
        say(f"  messages a second: {' '.join(map(str, messages))}; peak {max(messages)}")


def rates(samples: list[tuple[float, dict]], what: str) -> list[int]:
    """The increase of a figure in each second."""
    found: Counter[int] = Counter()
    last = 0
    for at, figures in samples:
        found[int(at)] += figures[what] - last
        last = figures[what]
    return [found[second] for second in range(int(samples[-1][0]) + 1)]


def spread(values: list[float]) -> str:
    """Middle, 99th percentile and greatest, in milliseconds."""
    ordered = sorted(values)
    middle, most = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"p50 {middle:.1f} ms, p99 {most:.1f} ms, max {ordered[-1]:.1f} ms"


def say(text: str) -> None:
    print(text, flush=True)


async def connected(url: str) -> nats.NATS:
    return await nats.connect(url, max_reconnect_attempts=-1)


async def with_line(trial: Trial, work: Callable[[], Awaitable[None]]) -> None:
    """Work over a new line; the last one ends with the server."""
    client = await connected(trial.measured.server.url)
    trial.line = FleetLine(client)
    try:
        await work()
    finally:
        await client.close()


async def run(options: argparse.Namespace, folder: Path) -> None:
    port = free_port()
    server = NatsServer(folder, f'http: "127.0.0.1:{port}"\n')
    seed, sender = key()
    sites, measured, chance = Sites(), Measured(server, port), random.Random(options.seed)
    server.start()
    trial = Trial(options, measured, sites, None, seed)  # type: ignore[arg-type]
    try:
        await with_line(trial, lambda: prepare(trial.line, days=30, replicas=1))
        say(f"{options.sites} sites, seed {options.seed}; server alone {measured.figures()['memory']:.0f} MB")
        await sites.start(server.url, sender, options)
        say(f"all connected in {await trial.all_connected():.1f} s, {measured.figures()['memory']:.0f} MB")
        for work in (trial.steady, trial.burst, lambda: trial.commands(chance)):
            await with_line(trial, work)
        say(f"server {measured.figures()['memory']:.0f} MB")
        await trial.restart()
        await trial.all_connected()
        await trial.all_sent()
        await with_line(trial, lambda: books(trial))
        say(f"server {measured.figures()['memory']:.0f} MB")
    finally:
        await sites.end()
        server.kill()


async def books(trial: Trial) -> None:
    """Check that each record is in the stream once, in order, and tell what one takes there."""
    await trial.lags()
    made = (await trial.sites.do("state"))["made"]
    wrong = [subject for subject, ids in trial.ids.items() if ids != list(range(1, len(ids) + 1))]
    count = sum(map(len, trial.ids.values()))
    assert not wrong, f"not each once and in order: {wrong[:5]}"
    assert count == made, f"{made} records, {count} in the stream"
    store = trial.measured.server.folder / "jetstream"
    size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    say(f"{count} events, each in the stream once and in order; {size / count:.0f} bytes of disk each")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60, help="of the steady rate")
    parser.add_argument("--rate", type=float, default=200, help="events a second of all sites")
    parser.add_argument("--burst", type=int, default=50, help="events at each site at once")
    parser.add_argument("--commands", type=int, default=1000)
    parser.add_argument("--away", type=float, default=20, help="seconds without the server")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(run(parser.parse_args(), Path(place)))
