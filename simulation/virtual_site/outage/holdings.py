"""Reading of a gateway's data folder, as its next start would read it."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.domain.events import EventKind
from gateway.domain.passages import CameraEvent
from gateway.domain.writes import JsonObject
from gateway.runtime.clock import iso_utc
from gateway.store import Connect, EventFilter, SqliteConnection, Store
from gateway.store.events.parking_entries import EntryFilter
from simulation.virtual_site.outage.reconcile import SiteHolds

_PAGE = 500
_OF_AN_ENTRY = ("type", "date_at", "device_id", "lane", "credential", "plate")
_OF_AN_END = ("exit_at", "exit_device_id", "exit_lane")
_BEFORE_ALL = 2**40  # wall microseconds before any entry, so that none is shown as timed out


async def site_holds(folder: Path, *, connect: Connect = SqliteConnection) -> SiteHolds:
    """Return the records in a data folder that no gateway uses at the moment. Raises StoreError."""
    store = Store(folder=folder, site_name="", sends=True, connect=connect)
    await store.open()
    try:
        camera_events: dict[int, int | None] = {}
        fields: dict[tuple[str, int], JsonObject] = {}
        while len(page := (await store.camera_events.page(offset=len(camera_events), limit=_PAGE)).events):
            camera_events.update((event.id, event.central_id) for event in page)
            fields.update((("camera_event", event.id), _fields_of(event)) for event in page)
        entries: dict[int, tuple[int | None, str]] = {}
        async for batch in store.entries.batches(EntryFilter(), now=_BEFORE_ALL):
            entries.update((entry.id, (entry.central_id, entry.status.value)) for entry in batch)
        for number in entries:
            known = await store.pending_writes.record("entry", number) or {}
            names = _OF_AN_ENTRY if known.get("type") == "exit" else (*_OF_AN_ENTRY, *_OF_AN_END)
            fields["entry", number] = {name: known.get(name) for name in names}
        evidence = await store.evidence.all()
        cards = await store.cards.records()
        return SiteHolds(
            camera_events=camera_events,
            entries=entries,
            files=frozenset((item.camera_event_id, item.sha256) for item in evidence),
            cards={number: json.loads(text) for number, text in cards.items()},
            books=await store.outbox.books(),
            fields=fields,
            drop_events=await _count(store, EventKind.RECORD_DROPPED),
        )
    finally:
        await store.close()


def _fields_of(event: CameraEvent) -> JsonObject:
    return {
        "camera_id": event.camera_id,
        "name": event.name,
        "description": event.description,
        "date_at": iso_utc(event.date_at),
        "start_date": iso_utc(event.pinned_from),
        "end_date": iso_utc(event.pinned_until),
        "clock_trusted": event.clock_trusted,
        "lane": event.lane_id,
    }


async def _count(store: Store, kind: EventKind) -> int:
    """Count the events of a kind."""
    return (await store.events.page(EventFilter(types=(int(kind),)), limit=1)).count
