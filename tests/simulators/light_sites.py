"""Many gateways in one process: the fleet's real parts and connections, over stores in memory; for `many_sites`.

Each line of its input is a JSON order, and is answered with a line of JSON: `events` (a rate for all sites, for some
seconds), `burst` (so many events at each site at once), `state`, and `stop`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any, cast

import structlog

from gateway.fleet.commands_down import CommandDesk, CommandsDown
from gateway.fleet.connection import FleetConnection, FleetServer
from gateway.fleet.events_up import EventsUp
from gateway.fleet.heartbeat import Heartbeat
from gateway.fleet.names import FleetName
from gateway.problems.problem import Verdict
from gateway.runtime.clock import SystemClock, iso_utc
from gateway.runtime.supervision import Supervisor
from gateway.store import Changes, ReadCursor

PADDING = "The gate opened for card 00***42; anti-passback: passed; validity: passed; area garage: 17 of 50. " * 4


def name_of(number: int) -> FleetName:
    """The name of one of many gateways."""
    return FleetName(f"site-{number:05}", "gate-1")


@dataclass
class LightStore:
    """The events and read marks of one site, in memory."""

    changes: Changes = field(default_factory=Changes)
    records: list[tuple[int, str]] = field(default_factory=list)
    marks: dict[str, ReadCursor] = field(default_factory=dict)

    @property
    def events(self) -> LightStore:
        return self

    def happen(self) -> None:
        """Record an event of the usual length."""
        number, now = len(self.records) + 1, time.time_ns() // 1000
        record = {"id": number, "date_at": iso_utc(now), "made": now, "name": "ACCESS_GRANTED", "description": PADDING}
        self.records.append((number, json.dumps(record)))
        self.changes.bump()

    async def json_after(self, record_id: int, *, limit: int) -> list[tuple[int, str]]:
        return self.records[record_id : record_id + limit]

    async def latest(self, *, limit: int) -> tuple[()]:
        return ()

    async def after(self, record_id: int, *, limit: int) -> tuple[()]:
        return ()

    async def all(self) -> tuple[ReadCursor, ...]:
        return tuple(self.marks.values())

    async def save(self, marks) -> None:
        self.marks |= {mark.consumer.list: mark for mark in marks}

    async def get(self, command_id: str) -> None:
        return None

    async def box_number(self) -> int:
        return 1


class LightSite:
    """One gateway."""

    def __init__(self, name: FleetName, url: str, sender: str, supervisor: Supervisor) -> None:
        clock, store = SystemClock(), LightStore()
        unused = cast("Any", None)
        self.store = store
        events = EventsUp(
            name=name,
            site_name=name.site,
            events=cast("Any", store),
            camera_events=cast("Any", store),
            read_cursors=cast("Any", store),
            box_number=store.box_number,
            changes=store.changes,
            clock=clock,
        )
        heartbeat = Heartbeat(
            fleet_name=name,
            site_name=name.site,
            version="1.0.0",
            verdict=lambda: Verdict((), lanes=2),
            store=cast("Any", store),
            waiting=lambda: 0,
            clock=clock,
        )
        commands = CommandsDown(
            fleet_name=name,
            senders={sender: "anna"},
            desk=CommandDesk(
                permissions=self._permissions,
                lanes=unused,
                reload=unused,
                edit=unused,
                tried=unused,
                files=unused,
                start=supervisor.once,
                notices=unused,
            ),
            commands=cast("Any", store),
            changes=store.changes,
            snapshot=lambda: {"headline": "All 2 lanes work"},
            clock=clock,
            seal_key=b"this site",
        )
        self.events = events
        self.connection = FleetConnection(
            servers=[FleetServer(url=url, credentials="", ca_file=None, name=f"edge-gateway {name}", inbox=name.inbox)],
            name=name,
            parts=(events, heartbeat, commands),
            clock=clock,
            changed=lambda: None,
        )

    async def _permissions(self, account: str) -> frozenset[str]:
        return frozenset({"can_view_devices"})

    @property
    def is_connected(self) -> bool:
        state = self.connection.status().state
        return state is not None and state.value == "connected"

    @property
    def unsent(self) -> int:
        return len(self.store.records) - self.events.sent_to


async def events(sites: list[LightSite], chance: random.Random, rate: float, seconds: float) -> None:
    """Let events happen at sites by chance, so many a second in all."""
    begin, made = time.monotonic(), 0
    while (gone := time.monotonic() - begin) < seconds:
        while made < gone * rate:
            chance.choice(sites).store.happen()
            made += 1
        await asyncio.sleep(0.005)  # the rate's own grain


async def orders(sites: list[LightSite], chance: random.Random) -> None:
    """Carry out the orders of the input."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        order = json.loads(line)
        if order["do"] == "events":
            await events(sites, chance, order["rate"], order["seconds"])
        elif order["do"] == "burst":
            for site in sites:
                for _ in range(order["each"]):
                    site.store.happen()
        elif order["do"] == "stop":
            return
        told = {
            "connected": sum(site.is_connected for site in sites),
            "made": sum(len(site.store.records) for site in sites),
            "unsent": sum(site.unsent for site in sites),
            "cpu": time.process_time(),
        }
        print(json.dumps(told), flush=True)


async def main(options: argparse.Namespace) -> None:
    async with Supervisor(clock=SystemClock()) as supervisor:
        numbers = range(options.first, options.first + options.sites)
        sites = [LightSite(name_of(number), options.url, options.sender, supervisor) for number in numbers]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(site.connection.run()) for site in sites]
            await orders(sites, random.Random(options.seed + options.first))
            for task in tasks:
                task.cancel()


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("sender")
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--sites", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    asyncio.run(main(parser.parse_args()))
