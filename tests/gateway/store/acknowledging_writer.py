"""Run as a program: opens the store in a folder and records without end, naming on its output what is acknowledged."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.store import Entry, Store


async def main(folder: Path) -> None:
    store = Store(folder=folder, site_name="North", sends=True)
    await store.open()

    async def write(lane: int) -> None:
        number = 0
        while True:
            number += 1
            at = 1_767_268_800_000_000 + number
            moments = (Moment(lane, "Entry", "", at, at + 1, clock_trusted=True),) if number % 3 == 0 else ()
            event = Event(EventKind.VEHICLE_PASSED, at, clock_trusted=True, text=f"{lane}/{number}")
            recorded = await store.journal.record(Entry(events=(event,), moments=moments))
            for row in await store.outbox.due(now=at) if number % 10 == 0 else ():
                await store.outbox.delivered(row, central_id=None)
            sys.stdout.write(f"{recorded.event_ids[0]} {lane}/{number}\n")
            sys.stdout.flush()

    async with asyncio.TaskGroup() as group:
        for lane in range(1, 9):
            group.create_task(write(lane))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
