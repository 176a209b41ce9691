"""What a gateway's data folder holds, read as its next start would."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.simulation.outage.reconcile import SiteHolds
from gateway.store import Store
from gateway.store.parking_entries import EntryFilter

_PAGE = 500
_BEFORE_ALL = 2**40  # wall micros before any entry: none is shown as timed out


async def site_holds(folder: Path) -> SiteHolds:
    """What is in it. No gateway may run there. Raises StoreError."""
    store = Store(folder=folder, site_name="", sends=True)
    await store.open()
    try:
        camera_events: dict[int, int | None] = {}
        while len(page := (await store.camera_events.page(offset=len(camera_events), limit=_PAGE)).events):
            camera_events.update((event.id, event.central_id) for event in page)
        entries: dict[int, tuple[int | None, str]] = {}
        async for batch in store.entries.batches(EntryFilter(), now=_BEFORE_ALL):
            entries.update((entry.id, (entry.central_id, entry.status.value)) for entry in batch)
        exhibits = await store.exhibits.all()
        cards = await store.cards.records()
        return SiteHolds(
            camera_events=camera_events,
            entries=entries,
            files=frozenset((item.camera_event_id, item.sha256) for item in exhibits),
            cards={number: json.loads(text) for number, text in cards.items()},
            books=await store.outbox.books(),
        )
    finally:
        await store.close()
