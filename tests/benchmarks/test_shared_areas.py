"""From a card to the open command in a lane of a shared area, beside a lane of an area that is the gateway's own.

Both lanes are of one gateway in this process, with a store, gates in memory and a real server in a process of its own;
cards come in turns. The bare peer writes a message of the same size into the same stream and waits for its
acknowledgement: that is the machine's and the server's share. With a server that hangs, the first card waits for its
claim, the next ones do not.
"""

from __future__ import annotations

import statistics
import time
from contextlib import asynccontextmanager

import nats
import pytest
from at_work import running
from figures import show
from fleet_scene import connection
from lane_drivers import OwnDrivers
from nats.js.api import KeyValueConfig
from nats_server import nats_server
from set_machine import PushedClock
from shared_area_gateway import GateInMemory, Log, Reader
from waiting import until

from drivers.contract import CardPresented, DeviceConnected, GatePosition, PointChanged, PointState
from gateway.domain.credentials import Card, text_alias
from gateway.fleet.names import AREAS_BUCKET, FleetName
from gateway.fleet.shared_areas import SharedAreasLine
from gateway.lanes import Lanes
from gateway.runtime.supervision import Progress, Supervisor
from gateway.site import Site
from gateway.store import Store, StoredCard

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

ROUNDS = 400
HANGS = 12
CLAIM_MS = 150
AIM_ADDED_MS = 3.0
OWN, SHARED = 101, 111


class TimedGate(GateInMemory):
    """A gate that notes when it was told to open."""

    opened_at = 0.0

    async def open(self, *, deadline, forbidden=None) -> None:
        self.opened_at = time.perf_counter()
        await super().open(deadline=deadline, forbidden=forbidden)


def site_of(url: str) -> Site:
    """Two lanes that differ in their area alone."""

    def lane(name: str, gate: int) -> dict:
        return {
            "id": name,
            "name": name,
            "gate": gate,
            "readers": [gate + 1],
            "inputs": [
                {"role": "arming", "device": gate, "point": "arming"},
                {"role": "closing", "device": gate, "point": "closing"},
            ],
            "closes": "device",
            "back_out_seconds": 1,
            "inside": name,
        }

    devices, links = [], [{"id": "plc", "url": "tcp://127.0.0.1:502"}]
    for gate in (OWN, SHARED):
        links.append({"id": f"desk-{gate}", "url": f"serial:/dev/desk-{gate}"})
        devices += [
            {"id": gate, "name": f"Gate {gate}", "driver": "modbus-gate", "link": "plc", "profile": "demo"},
            {"id": gate + 1, "name": f"Reader {gate}", "driver": "serial-reader", "link": f"desk-{gate}"},
        ]
    area = {"limit": 10_000, "anti_passback": "hard"}
    return Site.model_validate(
        {
            "site": {"name": "North"},
            "policy": {"stale_seconds": 60},
            "fleet": {"urls": [url], "site": "north", "gateway": "gate-1", "claim_ms": CLAIM_MS},
            "links": links,
            "devices": devices,
            "areas": [
                {**area, "id": "own", "name": "Own"},
                {**area, "id": "shared", "name": "Shared", "shared": True, "apart": "allow"},
            ],
            "lanes": [lane("own", OWN), lane("shared", SHARED)],
        }
    )


@asynccontextmanager
async def a_gateway(folder, url: str):
    """The lanes, alive and connected."""
    site, clock = site_of(url), PushedClock()
    store = Store(folder=folder, site_name="North", sends=False)
    await store.open()
    gates = {gate: TimedGate(gate, str(gate), Log(folder / "gates.jsonl")) for gate in (OWN, SHARED)}
    readers = {gate: Reader(gate + 1) for gate in gates}
    async with Supervisor(clock=clock) as lasting:
        lasting.keep("store", store.run)
        numbers = range(1, 2 * (ROUNDS + HANGS) + 1)
        cards = [Card(number, str(number), aliases=(text_alias(str(number)),)) for number in numbers]
        await store.cards.apply(put=[StoredCard(card, "{}") for card in cards], now=0)
        lanes = Lanes(
            site=site,
            field=OwnDrivers(gates, {reader.device_id: reader for reader in readers.values()}),
            store=store,
            clock=clock,
            progress=Progress(clock=clock),
            boot=f"{time.monotonic_ns():x}",
        )
        lasting.keep("recorder", lanes.recorder.run)
        await lanes.areas.recall()
        lanes.start(lasting)
        for gate in gates.values():
            gate.lanes = lanes
        part = SharedAreasLine(fleet_name=FleetName("north", "gate-1"), shared=lanes.areas.shared)
        async with running(connection(url, part).run()):
            await until(lambda: not lanes.areas.is_apart and store.cards.is_indexed)
            yield lanes, gates
    await store.close()


async def card_to_open(lanes: Lanes, gate: TimedGate, card: int) -> float:
    """Present a card, let the vehicle pass; the seconds from the reading to the command."""
    runner = next(one for one in lanes.runners if one.rules.lane.gate == gate.device_id)

    def point(name: str, state: PointState) -> None:
        lanes.report(PointChanged(gate.device_id, name, state, time.monotonic()))

    point("arming", PointState.ON)
    await until(lambda: runner.snapshot().vehicle is PointState.ON)
    began = time.perf_counter()
    lanes.report(CardPresented(gate.device_id + 1, 0, 0, str(card), time.monotonic()))
    await until(lambda: gate.opened_at > began)
    took = gate.opened_at - began
    for name, state in (("closing", PointState.ON), ("arming", PointState.OFF), ("closing", PointState.OFF)):
        point(name, state)
    await until(lambda: runner.snapshot().phase.value not in ("open", "opening", "passing"))
    gate.reports(GatePosition.CLOSED)
    return took


def p99(values: list[float]) -> float:
    """The ninety-ninth percentile, in ms."""
    return statistics.quantiles(values, n=100)[98] * 1000


async def bare_write(client: nats.NATS) -> float:
    """Write into the stream and wait for the acknowledgement; the seconds that it takes."""
    began = time.perf_counter()
    await client.jetstream().publish(f"$KV.{AREAS_BUCKET}.elsewhere.x", bytes(250))
    return time.perf_counter() - began


async def test_shared_areas(tmp_path):
    own, shared, bare = [], [], []
    cpu = {OWN: 0.0, SHARED: 0.0}
    with nats_server(tmp_path / "nats") as server:
        client = await nats.connect(server.url)
        await client.jetstream().create_key_value(KeyValueConfig(bucket=AREAS_BUCKET, direct=True))
        async with a_gateway(tmp_path, server.url) as (lanes, gates):
            for gate in gates.values():
                lanes.report(DeviceConnected(gate.device_id, time.monotonic()))
                for name in ("arming", "closing"):
                    lanes.report(PointChanged(gate.device_id, name, PointState.OFF, time.monotonic()))
                gate.reports(GatePosition.CLOSED)
            for number in range(1, ROUNDS + 1):
                for gate, times, first in ((OWN, own, 0), (SHARED, shared, ROUNDS)):
                    used = time.process_time()
                    times.append(await card_to_open(lanes, gates[gate], first + number))
                    await until(lambda: not lanes.areas.shared.waits)
                    cpu[gate] += time.process_time() - used
                bare.append(await bare_write(client))
            assert lanes.areas.counts() == {"own": ROUNDS, "shared": ROUNDS}
            waited, after = await with_hanging_server(lanes, gates[SHARED], server)
        await client.close()
    p50 = [statistics.median(times) * 1000 for times in (own, shared, bare)]
    used_own, used_shared = (cpu[gate] / ROUNDS * 1000 for gate in (OWN, SHARED))
    show("card to open, shared area, p50", p50[1], "ms", peer=p50[0], beside="an own area")
    show("card to open, shared area, p99", p99(shared), "ms", peer=p99(own), beside="an own area")
    show("added by a shared area at p50", p50[1] - p50[0], "ms", peer=p50[2], beside="a bare write")
    show("added by a shared area at p99", p99(shared) - p99(own), "ms", aim=AIM_ADDED_MS)
    show("a bare write into the stream, p99", p99(bare), "ms")
    show("processor, a passage in a shared area", used_shared, "ms", peer=used_own, beside="an own area")
    show("first card while the server hangs, most", max(waited) * 1000, "ms", aim=CLAIM_MS)
    show("next card while the server hangs, most", max(after) * 1000, "ms", peer=p99(own), beside="an own area at p99")


async def with_hanging_server(lanes: Lanes, gate: TimedGate, server) -> tuple[list[float], list[float]]:
    """Stop the server before a card, again and again; the times of the first cards, and of the ones after them."""
    waited, after = [], []
    for place in range(HANGS):
        card = 2 * ROUNDS + 2 * place + 1
        await until(lambda: not lanes.areas.is_apart and not lanes.areas.shared.waits)
        server.hang()
        waited.append(await card_to_open(lanes, gate, card))
        after.append(await card_to_open(lanes, gate, card + 1))
        server.wake()
    return waited, after
