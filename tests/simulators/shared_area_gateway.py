"""One gateway of `shared_area_rounds`: real lanes, store and connection, and dense traffic over gates in memory.

It runs as a process of its own, so that it can be killed. What each gate was told goes into a file, line by line; the
rest is on disk as at any gateway. Words on its input: `state` and `stop`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog
from fleet_scene import SOON
from lane_drivers import OwnDrivers
from set_machine import PushedClock
from shared_area_faults import WRONG_RULE, plant
from waiting import until

from drivers.contract import CardPresented, DeviceConnected, Feedback, GateMoved, GatePosition, PointChanged, PointState
from gateway.domain.credentials import Card, text_alias
from gateway.fleet.connection import FleetConnection, FleetServer
from gateway.fleet.names import FleetName
from gateway.fleet.shared_areas import SharedAreasLine
from gateway.lanes import Lanes
from gateway.runtime.supervision import Progress, Supervisor
from gateway.site import Site
from gateway.store import Store, StoredCard

RULES = ("allow", "deny", "local")
LIMIT = 50
CARDS = 200
"""For each area. More than it holds, so that it is mostly full."""
_BACKS_OUT = 0.08
_WAITS = 5.0
_TOGETHER = 0.5
"""The share of vehicles that come at several gateways at once: claims of a holder, or of the last place, meet."""
_MOMENT_NANOSECONDS = 500_000_000


def site_of(urls: list[str], gateway: str, *, deny: str = "deny") -> Site:
    """A site with three shared areas, one for each rule, and a lane into and out of each."""
    devices, lanes = [], []
    for place, rule in enumerate(RULES):
        for way, direction in enumerate(("entry", "exit")):
            gate = 101 + 10 * place + 2 * way
            devices += [
                {"id": gate, "name": f"Gate {gate}", "driver": "modbus-gate", "link": "plc", "profile": "demo"},
                {"id": gate + 1, "name": f"Reader {gate}", "driver": "serial-reader", "link": f"desk-{gate}"},
            ]
            lanes.append(
                {
                    "id": f"{rule}-{direction}",
                    "name": f"{rule} {direction}",
                    "direction": direction,
                    "gate": gate,
                    "readers": [gate + 1],
                    "inputs": [
                        {"role": "arming", "device": gate, "point": "arming"},
                        {"role": "closing", "device": gate, "point": "closing"},
                    ],
                    "closes": "device",
                    "back_out_seconds": 1,
                    "waiting_seconds": 2,
                    "inside": rule,
                }
            )
    links = [{"id": "plc", "url": "tcp://127.0.0.1:502"}]
    links += [{"id": f"desk-{lane['gate']}", "url": f"serial:/dev/desk-{lane['gate']}"} for lane in lanes]
    areas = [
        {
            "id": rule,
            "name": rule,
            "limit": LIMIT,
            "anti_passback": "hard",
            "shared": True,
            "apart": deny if rule == "deny" else rule,
        }
        for rule in RULES
    ]
    return Site.model_validate(
        {
            "site": {"name": "North"},
            "policy": {"stale_seconds": 60},
            "fleet": {"urls": urls, "site": "north", "gateway": gateway},
            "links": links,
            "devices": devices,
            "areas": areas,
            "lanes": lanes,
        }
    )


def cards_of(rule: str) -> list[int]:
    """The cards of an area."""
    begin = 1000 * (1 + RULES.index(rule))
    return list(range(begin, begin + CARDS))


class GateInMemory:
    """A gate that opens at once, and tells so, if it is told in time."""

    def __init__(self, device_id: int, lane: str, said: Log) -> None:
        self.device_id = device_id
        self._lane = lane
        self._said = said
        self.lanes: Lanes | None = None

    async def run(self, reports) -> None:
        await asyncio.Event().wait()

    async def open(self, *, deadline, forbidden=None) -> None:
        self._said.write(what="open", lane=self._lane)
        self.reports(GatePosition.OPEN)

    async def close(self, *, deadline, forbidden) -> None:
        self.reports(GatePosition.CLOSED)

    def reports(self, position: GatePosition) -> None:
        self.lanes.report(GateMoved(self.device_id, position, time.monotonic()))


class Log:
    """Lines in a file that outlives a kill."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, **facts: object) -> None:
        os.write(self._file, (json.dumps({"at": time.time_ns() // 1000, **facts}) + "\n").encode())


@dataclass(eq=False)
class Reader:
    """A reader whose lamps say what was decided."""

    device_id: int
    shown: asyncio.Queue[Feedback] = field(default_factory=asyncio.Queue)

    async def run(self, reports) -> None:
        await asyncio.Event().wait()

    def show(self, feedback: Feedback) -> None:
        self.shown.put_nowait(feedback)


@dataclass(kw_only=True)
class Traffic:
    """Vehicles at one lane, one after the other."""

    lane: str
    gate: GateInMemory
    reader: Reader
    lanes: Lanes
    dice: random.Random
    pause: float
    stops: asyncio.Event

    async def run(self) -> None:
        self.lanes.report(DeviceConnected(self.gate.device_id, time.monotonic()))
        self._loops(arming=False, closing=False)
        self.gate.reports(GatePosition.CLOSED)
        cards = cards_of(self.lane.split("-")[0])
        while not self.stops.is_set():
            card = await self._together(cards) if self.dice.random() < _TOGETHER else self.dice.choice(cards)
            await self._vehicle(card)
            await asyncio.sleep(self.dice.uniform(0.2, 1.8) * self.pause)  # the pace of the traffic

    async def _together(self, cards: list[int]) -> int:
        """Wait for the next moment at which several gateways read a card: copies of one, or each its own; that card."""
        moment, left = divmod(-time.time_ns(), _MOMENT_NANOSECONDS)
        await asyncio.sleep(left / 1e9)  # until all gateways read
        return (random.Random(f"{self.lane}-{moment}") if moment % 2 else self.dice).choice(cards)

    async def _vehicle(self, card: int) -> None:
        while not self.reader.shown.empty():
            self.reader.shown.get_nowait()
        self._point("arming", on=True)
        self.lanes.report(CardPresented(self.reader.device_id, 0, 0, str(card), time.monotonic()))
        try:
            async with asyncio.timeout(_WAITS):
                seen = await self.reader.shown.get()
        except TimeoutError:
            seen = Feedback.DENIED
        if seen is Feedback.GRANTED and self.dice.random() >= _BACKS_OUT:
            self._point("closing", on=True)
            self._point("arming", on=False)
            self._point("closing", on=False)
        else:
            self._point("arming", on=False)
        await asyncio.sleep(0)
        if seen is Feedback.GRANTED:
            await self._is_idle()
        self.gate.reports(GatePosition.CLOSED)
        await asyncio.sleep(0)

    async def _is_idle(self) -> None:
        """Wait until the lane has dealt with the vehicle. A lane that is late is not what is tried here."""
        with suppress(AssertionError):
            await until(lambda: self._phase() in ("idle", "cleared", "closing"), within=_WAITS)

    def _phase(self) -> str:
        return next(one.snapshot().phase.value for one in self.lanes.runners if one.rules.lane.id == self.lane)

    def _loops(self, *, arming: bool, closing: bool) -> None:
        self._point("arming", on=arming)
        self._point("closing", on=closing)

    def _point(self, name: str, *, on: bool) -> None:
        state = PointState.ON if on else PointState.OFF
        self.lanes.report(PointChanged(self.gate.device_id, name, state, time.monotonic()))


def everybody_outside(folder: Path) -> None:
    """Begin with every holder outside, or the first passage of each could be in either direction."""
    with sqlite3.connect(folder / "site.db") as connection:
        if connection.execute("SELECT count(*) FROM holder").fetchone() == (0,):
            rows = [(f"card:{card}",) for rule in RULES for card in cards_of(rule)]
            connection.executemany("INSERT INTO holder VALUES (?, '', 1)", rows)
    connection.close()


async def serve(options: argparse.Namespace) -> None:
    """Run until `stop` comes, and then until the end of input."""
    plant(options.plant)
    deny = "local" if options.plant == WRONG_RULE else "deny"
    site, clock, folder = site_of(options.urls, options.gateway, deny=deny), PushedClock(), options.folder
    store = Store(folder=folder, site_name="North", sends=False)
    await store.open()
    everybody_outside(folder)
    said = Log(folder / "gates.jsonl")
    gates = {lane.gate: GateInMemory(lane.gate, lane.id, said) for lane in site.lanes}
    readers = {lane.gate: Reader(lane.readers[0]) for lane in site.lanes}
    dice, stops = random.Random(f"{options.seed}-{options.gateway}"), asyncio.Event()
    async with Supervisor(clock=clock) as lasting:
        lasting.keep("store", store.run)
        cards = [Card(card, str(card), aliases=(text_alias(str(card)),)) for rule in RULES for card in cards_of(rule)]
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
        await lanes.resume()
        name = FleetName("north", options.gateway)
        connection = FleetConnection(
            servers=[FleetServer(url=url, credentials="", ca_file=None, name=str(name)) for url in options.urls],
            name=name,
            parts=[SharedAreasLine(fleet_name=name, shared=lanes.areas.shared)],
            clock=clock,
            changed=lambda: None,
            backoff=SOON,
        )
        lasting.keep("fleet", connection.run)
        lanes.start(lasting)
        flows = []
        for lane in site.lanes:
            gates[lane.gate].lanes = lanes
            traffic = Traffic(
                lane=lane.id, gate=gates[lane.gate], reader=readers[lane.gate], lanes=lanes, dice=dice,
                pause=options.pause, stops=stops,
            )  # fmt: skip
            flows.append(lasting.once(f"traffic-{lane.id}", traffic.run()))
        say("ready")
        await heed(lanes, flows, stops, store)
    await store.close()


async def heed(lanes: Lanes, flows: list[asyncio.Task[None]], stops: asyncio.Event, store: Store) -> None:
    """Answer what comes on the input, until its end."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(partial(asyncio.StreamReaderProtocol, lines), sys.stdin)
    while word := (await lines.readline()).decode().strip():
        if word == "stop":
            stops.set()
            await asyncio.gather(*flows, return_exceptions=True)
            await lanes.recorder.drained(within=30)
        say(json.dumps(dict(state_of(lanes))))


def state_of(lanes: Lanes) -> Iterator[tuple[str, object]]:
    """Yield what this gateway knows of the areas."""
    presence, shared = lanes.areas.presence, lanes.areas.shared
    yield "apart", shared.is_apart
    yield "waits", shared.waits
    yield "counts", dict(lanes.areas.counts())
    yield "places", {holder: place.area_id for holder, place in presence.holders().items()}


def say(line: str) -> None:
    """Say a line to whoever started this."""
    os.write(sys.stdout.fileno(), line.encode() + b"\n")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("gateway")
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--pause", type=float, default=0.5)
    parser.add_argument("--plant", default="")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
