"""Run as a program: a store that records events without end and sends them on; names each that is on disk."""

from __future__ import annotations

import asyncio
import sys
from ipaddress import ip_network
from pathlib import Path

from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import SystemClock
from gateway.store import Entry, Store
from gateway.webhooks.client import ReceiverClient
from gateway.webhooks.sender import WebhookSender


async def main(folder: Path) -> None:
    clock = SystemClock()
    store = Store(folder=folder, site_name="North", sends=False)
    await store.open()
    client = ReceiverClient(allowed=(ip_network("127.0.0.0/8"),), timeout_seconds=5)
    sender = WebhookSender(webhooks=store.webhooks, client=client, clock=clock, pace=lambda seconds: seconds / 100_000)

    async def record() -> None:
        for _ in range(100_000):
            event = Event(EventKind.ACCESS_GRANTED, clock.wall().micros, clock_trusted=True, description="card")
            recorded = await store.journal.record(Entry(events=(event,)))
            sys.stdout.write(f"recorded {recorded.event_ids[0]}\n")
            sys.stdout.flush()
            await asyncio.sleep(0.003)  # the pace of the site

    async with asyncio.TaskGroup() as group:
        group.create_task(sender.run())
        group.create_task(record())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
