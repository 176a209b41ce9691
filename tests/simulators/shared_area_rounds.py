"""Four gateways share areas while servers, networks and gateways fail: `make shared-areas SECONDS=600 SEED=1`.

Three NATS servers are a cluster. Each gateway is a process of its own and reaches each server through a relay; the last
one reaches a leaf node instead. From a seed, networks are cut or hold back what is sent, and gateways and servers are
killed, or stopped and woken. Then all is well again, and `shared_area_checker` reads what was recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pickle
import random
import secrets
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import nats
from free_ports import free_port
from nats.js.api import ConsumerConfig, DeliverPolicy, StreamConfig
from nats_server import NatsServer
from relay import Relay
from shared_area_checker import Decided, History, Opened, Passed, Revision, faults_of, promises_are_tried
from shared_area_gateway import LIMIT, RULES
from waiting import until

from gateway.domain.events import EventKind
from gateway.fleet.names import AREAS_BUCKET, AREAS_STREAM

GATEWAYS = ("gate-1", "gate-2", "gate-3", "gate-4")
SERVERS = 3
_HEALS_WITHIN = 90.0
_AFTER_TROUBLE = 12.0
"""So long after a trouble a gateway may still be apart: it notices, waits and connects again."""
_SHOWN = 20


@dataclass
class GatewayProcess:
    """One gateway, which is started and killed."""

    name: str
    folder: Path
    relays: list[Relay]
    options: list[str]
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it; return once its lanes run."""
        self.folder.mkdir(exist_ok=True)
        urls = [f"nats://127.0.0.1:{relay.port}" for relay in self.relays]
        program = Path(__file__).with_name("shared_area_gateway.py")
        with (self.folder / "log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, str(program), str(self.folder), self.name, *urls, *self.options,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, limit=2**24,
            )  # fmt: skip
        assert (await self._said()) == "ready"

    async def kill(self) -> None:
        """Kill it with SIGKILL."""
        if self.process is not None:
            self.process.kill()
            await self.process.wait()
            self.process = None

    async def asked(self, word: str) -> dict:
        """Say a word to it; what it knows."""
        assert self.process is not None
        self.process.stdin.write(word.encode() + b"\n")
        return json.loads(await self._said())

    async def end(self) -> None:
        """Let it end, so that everything is on disk."""
        if self.process is not None:
            self.process.stdin.close()
            await asyncio.wait_for(self.process.wait(), 30)
            self.process = None

    async def _said(self) -> str:
        async with asyncio.timeout(60):
            line = await self.process.stdout.readline()
        assert line, (self.folder / "log").read_text()[-3000:]
        return line.decode().strip()


@dataclass
class Scene:
    """The servers, the relays and the gateways."""

    folder: Path
    options: list[str]
    servers: list[NatsServer] = field(default_factory=list)
    leaf: NatsServer | None = None
    gateways: list[GatewayProcess] = field(default_factory=list)
    troubles: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    killed: dict[str, list[int]] = field(default_factory=dict)
    all_died: list[int] = field(default_factory=list)

    async def begin(self, stack: AsyncExitStack) -> None:
        """Start everything."""
        routes, leaves = ([free_port() for _ in range(SERVERS)] for _ in range(2))
        for number, port in enumerate(routes):
            folder = self.folder / f"server-{number}"
            folder.mkdir()
            urls = ", ".join(f'"nats://127.0.0.1:{other}"' for other in routes if other != port)
            config = (
                f'server_name: "n{number}"\ncluster {{ name: "f", listen: "127.0.0.1:{port}", routes: [{urls}] }}\n'
                f'leafnodes {{ listen: "127.0.0.1:{leaves[number]}" }}\n'
                f'jetstream {{ store_dir: "{folder / "jetstream"}", domain: "hub" }}'
            )
            self.servers.append(NatsServer(folder, config))
        urls = ", ".join(f'"nats-leaf://127.0.0.1:{port}"' for port in leaves)
        (self.folder / "leaf").mkdir()
        config = f'server_name: "leaf"\nleafnodes {{ reconnect: 1, remotes: [{{ urls: [{urls}] }}] }}\n'
        config += 'default_js_domain { "$G": "hub" }'
        self.leaf = NatsServer(self.folder / "leaf", config, streams=False)
        for server in (*self.servers, self.leaf):
            stack.callback(server.kill)
            await asyncio.to_thread(server.start)
        await self._make_bucket()
        for name in GATEWAYS:
            relays = [Relay(server.port) for server in ([self.leaf] if name == GATEWAYS[-1] else self.servers)]
            for relay in relays:
                await relay.join()
                stack.push_async_callback(relay.cut)
            self.gateways.append(GatewayProcess(name, self.folder / name, relays, self.options))
        for gateway in self.gateways:
            stack.push_async_callback(gateway.kill)
        await asyncio.gather(*(gateway.start() for gateway in self.gateways))

    async def _make_bucket(self) -> None:
        """Make the bucket as `fleet prepare` does, but keep every revision."""
        client = await self.client()
        config = StreamConfig(
            name=AREAS_STREAM,
            subjects=["$KV.areas.>"],
            num_replicas=SERVERS,
            allow_direct=True,
            max_msgs_per_subject=-1,
        )

        async def is_made() -> bool:
            with suppress(nats.errors.Error):  # the servers elect
                await client.jetstream().add_stream(config)
                return True
            return False

        await until(is_made)
        await client.close()

    async def client(self) -> nats.NATS:
        """A client beside the gateways."""
        return await nats.connect([server.url for server in self.servers], max_reconnect_attempts=2)

    def trouble(self, names: tuple[str, ...], began: int) -> None:
        """Note that these gateways may have been apart from then until a while after now."""
        for name in names:
            self.troubles.setdefault(name, []).append((began - 200_000, now() + int(_AFTER_TROUBLE * 1e6)))


def now() -> int:
    """Wall micros."""
    return time.time_ns() // 1000


class Trouble:
    """Faults by seed, some at a time."""

    def __init__(self, scene: Scene, dice: random.Random, counts: Counter[str]) -> None:
        self._scene = scene
        self._dice = dice
        self._counts = counts

    async def until(self, end: float) -> None:
        """Make one after the other until a monotonic instant."""
        while (left := end - time.monotonic()) > 1:
            kind = self._dice.choice(
                (self.cut, self.cut, self.hold, self.kill_gateway, self.kill_server, self.stop_server, self.all_servers)
            )
            began = now()
            self._counts[kind.__name__.replace("_", " ")] += 1
            names = await kind(min(left, self._dice.uniform(0.3, 5)))
            self._scene.trouble(names, began)
            await asyncio.sleep(min(max(0.0, end - time.monotonic()), self._dice.uniform(0.5, 6)))  # all is well

    async def cut(self, seconds: float) -> tuple[str, ...]:
        """Break a gateway's connections, and let none be made."""
        gateway = self._dice.choice(self._scene.gateways)
        for relay in gateway.relays:
            await relay.cut()
        await asyncio.sleep(seconds)  # so long it is cut off
        for relay in gateway.relays:
            await relay.join()
        return (gateway.name,)

    async def hold(self, seconds: float) -> tuple[str, ...]:
        """Hold back what a gateway and its servers send, and deliver it later."""
        gateway = self._dice.choice(self._scene.gateways)
        for relay in gateway.relays:
            relay.hold()
        await asyncio.sleep(seconds)  # so long nothing comes through
        for relay in gateway.relays:
            relay.let_go()
        return (gateway.name,)

    async def kill_gateway(self, seconds: float) -> tuple[str, ...]:
        """Kill a gateway, and start it again."""
        gateway = self._dice.choice(self._scene.gateways)
        await gateway.kill()
        self._scene.killed.setdefault(gateway.name, []).append(now())
        await asyncio.sleep(seconds / 2)  # so long nobody is there
        await gateway.start()
        return (gateway.name,)

    async def kill_server(self, seconds: float) -> tuple[str, ...]:
        """Kill a server or the leaf, and start it again."""
        server = self._dice.choice((*self._scene.servers, self._scene.leaf))
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(seconds)  # so long two are left
        await asyncio.to_thread(server.start)
        return GATEWAYS

    async def stop_server(self, seconds: float) -> tuple[str, ...]:
        """Let a server keep its connections and say nothing."""
        server = self._dice.choice(self._scene.servers)
        server.hang()
        await asyncio.sleep(seconds)  # so long it says nothing
        server.wake()
        return GATEWAYS

    async def all_servers(self, seconds: float) -> tuple[str, ...]:
        """Kill all servers, and start them again."""
        for server in self._scene.servers:
            await asyncio.to_thread(server.kill)
        self._scene.all_died.append(now())
        await asyncio.sleep(seconds)  # so long nobody can ask anybody
        await asyncio.gather(*(asyncio.to_thread(server.start) for server in self._scene.servers))
        return GATEWAYS


@dataclass
class Outcome:
    """The result of a run."""

    seed: int
    history: History
    faults: tuple[str, ...]
    counts: Counter[str]


async def run(folder: Path, *, seconds: float, seed: int, plant: str = "", pause: float = 0.5) -> Outcome:
    """One run from start to check."""
    dice, counts = random.Random(seed), Counter()
    options = ["--seed", str(seed), "--plant", plant, "--pause", str(pause)]
    scene = Scene(folder, options)
    async with AsyncExitStack() as stack:
        await scene.begin(stack)
        began = now()
        scene.trouble(GATEWAYS, began - 10_000_000)  # they are apart until they have connected
        await Trouble(scene, dice, counts).until(time.monotonic() + seconds)
        states = await _settled(scene)
        for gateway in scene.gateways:
            await gateway.end()
        history = History(LIMIT, {rule: rule for rule in RULES}, troubles=scene.troubles, killed=scene.killed)
        history.states, history.all_died = states, scene.all_died
        history.revisions = [one async for one in _revisions(scene)]
    for name in GATEWAYS:
        _read_gateway(folder / name, name, history)
    counts["decisions"] = len(history.decided)
    counts["decisions apart"] = sum(one.was_apart for one in history.decided)
    counts["denied: full"] = sum(one.reason == "area_full" for one in history.decided)
    counts["denied: anti-passback"] = sum(one.reason == "anti_passback" for one in history.decided)
    counts["passages"] = len(history.passed)
    counts["revisions"] = len(history.revisions)
    counts["contradictions told"] = len(history.told)
    return Outcome(seed, history, tuple(faults_of(history)), counts)


async def _settled(scene: Scene) -> dict[str, dict]:
    """Stop the traffic, and wait until every gateway is connected, has told everything and knows the same."""
    await asyncio.gather(*(gateway.asked("stop") for gateway in scene.gateways))
    states: dict[str, dict] = {}

    async def are_equal() -> bool:
        for one in scene.gateways:
            states[one.name] = await one.asked("state")
        known = {json.dumps((one["counts"], one["places"]), sort_keys=True) for one in states.values()}
        return len(known) == 1 and not any(one["apart"] or one["waits"] for one in states.values())

    with suppress(AssertionError):  # the checker says what is not
        await until(are_equal, within=_HEALS_WITHIN)
    return states


async def _revisions(scene: Scene):
    """Every message of the bucket, in order.

    A message of our own tells the last one before it: a server that was behind may still say less for its extent.
    """
    client = await scene.client()
    js = client.jetstream()
    last = (await js.publish(f"$KV.{AREAS_BUCKET}.end")).seq - 1
    read = 0
    while read < last:
        config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=read + 1)
        subscription = await js.subscribe(f"$KV.{AREAS_BUCKET}.>", ordered_consumer=True, config=config)
        with suppress(nats.errors.TimeoutError):  # a consumer may be lost, and is made anew
            while read < last:
                message = await subscription.next_msg(timeout=10)
                meta = message.metadata
                kind, _, key = message.subject.split(".", 3)[3].partition(".")
                read = meta.sequence.stream
                yield Revision(read, int(meta.timestamp.timestamp() * 1e6), kind, key, json.loads(message.data))
        await subscription.unsubscribe()
    await client.close()


def _read_gateway(folder: Path, name: str, history: History) -> None:
    """Read what a gateway has recorded."""
    database = sqlite3.connect(f"file:{folder / 'site.db'}?mode=ro", uri=True)
    kinds = f"{int(EventKind.ACCESS_GRANTED)}, {int(EventKind.ACCESS_DENIED)}"
    for kind, lane, at, data in database.execute(
        f"SELECT type, lane_id, date_at, data FROM event WHERE type IN ({kinds})"
    ):
        facts, granted = json.loads(data), kind == int(EventKind.ACCESS_GRANTED)
        if "trace" in facts:
            decided = Decided(name, lane, at, granted, facts["reason"], facts["holder"], facts["trace"])
            history.decided.append(decided)
    for lane, at, holder in database.execute(
        "SELECT lane_id, ended_at, card_id FROM passage WHERE outcome IN ('passed', 'unauthorised')"
    ):
        history.passed.append(Passed(name, lane, at, f"card:{holder}" if holder else ""))
    kind = int(EventKind.PRESENCE_CONTRADICTED)
    for (data,) in database.execute("SELECT data FROM event WHERE type = ?", (kind,)):
        history.told.append((json.loads(data)["area"], json.loads(data)["holder"]))
    database.close()
    for line in (folder / "gates.jsonl").read_text().splitlines():
        said = json.loads(line)
        history.opened.append(Opened(name, said["lane"], said["at"]))


def lines_of(outcome: Outcome) -> Iterator[str]:
    """The report."""
    yield ", ".join(f"{name}: {count}" for name, count in outcome.counts.items())
    yield from outcome.faults[:_SHOWN]
    yield f"seed {outcome.seed}: {len(outcome.faults)} faults"


def main() -> None:
    """Run, and print what was found. The exit status is 1 for a broken promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--keep", type=Path, help="a new folder for everything that is recorded")
    parser.add_argument("--plant", default="", help="a fault of shared_area_faults, which must be found")
    options = parser.parse_args()
    memory = Path("/dev/shm")  # a kill loses nothing there, and a busy disk delays nothing
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        place = options.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        outcome = asyncio.run(run(place, seconds=options.seconds, seed=options.seed, plant=options.plant))
    outcome.faults += tuple(promises_are_tried(outcome.history))
    if options.keep:
        (options.keep / "history").write_bytes(pickle.dumps(outcome.history))
    print("\n".join(lines_of(outcome)))
    sys.exit(bool(outcome.faults))


if __name__ == "__main__":
    main()
