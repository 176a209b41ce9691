"""Many sites of one central in one process, each with the store and the parts of a gateway; for `herd`.

Words on its input: `away` (each site records what waits, and its clock goes on by an hour) and `stop`. It says `ready`
when all have fetched their lists, `waiting` when everything waits, and `sent` when nothing waits any more.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import structlog
from fleet_scene import running
from waiting import until
from wired import down_sync, outbox_sender, sync_loop

from gateway.central.client.client import CentralClient
from gateway.central.client.pace import HELD_SECONDS
from gateway.central.runner import Sync
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.runtime.clock import Stamp, SystemClock
from gateway.store import Entry, Store

USERNAME, PASSWORD = "gateway", "right horse"
_LONGEST = 300.0


class JumpingClock(SystemClock):
    """The machine's clock, which goes on by hours when it is told."""

    jumped = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.jumped

    def wall(self) -> Stamp:
        return Stamp(super().wall().micros + int(self.jumped * 1e6), trusted=True)


@dataclass
class HerdSite:
    """One site: its store, and what keeps it in step with central."""

    store: Store
    client: CentralClient
    sync: Sync
    clock: JumpingClock

    async def record(self, count: int) -> None:
        """Record camera events, which wait for central."""
        for _ in range(count):
            now = self.clock.wall().micros
            event = Event(EventKind.VEHICLE_PASSED, now, clock_trusted=True, description="passed", lane_id="entry")
            seen = Moment(201, "Vehicle passed", "", now - 5_000_000, now + 5_000_000, clock_trusted=True)
            await self.store.journal.record(Entry(events=(event,), moments=(seen,)))

    async def waiting(self) -> int:
        return (await self.store.outbox.books()).waiting


async def site_at(stack: AsyncExitStack, folder: Path, options: argparse.Namespace, clock: JumpingClock) -> HerdSite:
    folder.mkdir()
    store = Store(folder=folder, site_name=folder.name, sends=True, now=lambda: clock.wall().micros)
    await store.open()
    stack.push_async_callback(store.close)
    await stack.enter_async_context(running(store.run()))
    spares = not options.rude
    client = CentralClient(
        url=options.url,
        username=USERNAME,
        password=PASSWORD,
        clock=clock,
        requests_per_second=20 if spares else None,
    )
    shared = {"client": client, "store": store, "clock": clock}
    sync = sync_loop(
        **shared,
        down=down_sync(**shared),
        sender=outbox_sender(**shared, held_seconds=HELD_SECONDS if spares else 0.0),
        pull_seconds=60,
    )
    return HerdSite(store, client, sync, clock)


async def all_hold(sites: list[HerdSite], condition) -> None:
    for site in sites:
        await until(lambda site=site: condition(site), within=_LONGEST)


async def has_fetched(site: HerdSite) -> bool:
    return (await site.sync.snapshot()).pull is not None and not await site.waiting()


async def is_lost(site: HerdSite) -> bool:
    site.sync.pull_soon()
    return site.client.state.reachable is False


async def has_sent(site: HerdSite) -> bool:
    return not await site.waiting()


async def main(options: argparse.Namespace) -> None:
    clock = JumpingClock()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    with tempfile.TemporaryDirectory() as place:
        async with AsyncExitStack() as stack:
            sites = [await site_at(stack, Path(place, f"site-{n}"), options, clock) for n in range(options.sites)]
            await stack.enter_async_context(running(*(site.sync.run() for site in sites)))
            await all_hold(sites, has_fetched)
            print("ready", flush=True)
            while (word := (await reader.readline()).decode().strip()) == "away":
                await all_hold(sites, is_lost)
                for site in sites:
                    await site.record(options.waiting)
                clock.jumped += 3600
                print("waiting", flush=True)
                await all_hold(sites, has_sent)
                print("sent", flush=True)
            assert word in ("", "stop")


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--sites", type=int, required=True)
    parser.add_argument("--waiting", type=int, required=True)
    parser.add_argument("--rude", action="store_true", help="without the manners of many sites")
    asyncio.run(main(parser.parse_args()))
