"""Run as a program: keeps evidence without end, naming on its output what is acknowledged."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import KeptAs, Labels
from gateway.domain.passages import Moment
from gateway.recording.evidence_files import EvidenceFiles
from gateway.recording.incoming import EvidenceLimits
from gateway.runtime.clock import SystemClock
from gateway.store import Entry, Store


async def main(folder: Path) -> None:
    store = Store(folder=folder, site_name="North", sends=True)
    await store.open()
    files = EvidenceFiles(
        store=store,
        media=folder,
        clock=SystemClock(),
        fault=lambda: "",
        limits=EvidenceLimits(bytes_each=10_000_000, per_event=1_000_000, floor=0),
    )
    await files.open()
    event = Event(EventKind.VEHICLE_PASSED, 1, clock_trusted=True, text="A vehicle passed.")
    recorded = await store.journal.record(
        Entry(events=(event,), moments=(Moment(1, "", "", 0, 1, clock_trusted=True),))
    )
    camera_event = await store.camera_events.get(recorded.camera_event_ids[0])
    assert camera_event is not None

    async def upload() -> None:
        while True:
            async with files.receive() as incoming:
                for _ in range(random.randint(1, 40)):
                    await incoming.write(os.urandom(65_536))
                await incoming.finish()
                kept = await incoming.keep(camera_event, Labels("a.bin", "", KeptAs.INCIDENT, "chief"))
            sys.stdout.write(f"{kept.id} {kept.sha256} {kept.file}\n")
            sys.stdout.flush()

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(upload())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
