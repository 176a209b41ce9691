"""Run as a program: records under a limit on file sizes until refused, lifts the limit, and looks what is there."""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
from pathlib import Path

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.store import Entry, EventFilter, Store


async def main(folder: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = Store(folder=folder, site_name="North", sends=True)
    await store.open()
    entry = Entry(events=(Event(EventKind.VEHICLE_PASSED, 1, clock_trusted=True, text="x" * 500),))
    acknowledged: set[int] = set()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    refused = False
    while not refused:
        try:
            acknowledged.update((await store.journal.record(entry)).event_ids)
        except StoreError:
            refused = True
    assert store.failing
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    acknowledged.update((await store.journal.record(entry)).event_ids)
    assert not store.failing
    page = await store.events.page(EventFilter(), limit=100_000)
    assert {event.id for event in page.events} == acknowledged
    await store.close()
    sys.stdout.write("kept\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
