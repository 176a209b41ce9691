"""The fleet's parts over a store, for tests with a real server."""

from __future__ import annotations

from gateway.domain.events import Event, EventKind
from gateway.fleet.connection import FleetConnection, FleetServer
from gateway.fleet.events_up import EventsUp
from gateway.fleet.names import FleetName
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import Entry, Store

NAME = FleetName("north", "gate-1")
SOON = Backoff(first=0.02, longest=0.1)


def gate_opened(text: str) -> Event:
    """An event that happens as this is called."""
    stamp = SystemClock().wall()
    return Event(kind=EventKind.GATE_OPENED, date_at=stamp.micros, clock_trusted=True, text=text, lane_id="entry")


async def happen(store: Store, count: int = 1, *, long: int = 0) -> list[int]:
    """Record events, with so many bytes more in each; return their ids."""
    made = []
    for number in range(count):
        event = gate_opened(f"The gate opened, {number}.{'x' * long}")
        made += (await store.journal.record(Entry(events=(event,)))).event_ids
    return made


def events_up(store: Store, name: FleetName = NAME, *, clock=None, box_number=None) -> EventsUp:
    return EventsUp(
        name=name,
        site_name="North",
        events=store.events,
        camera_events=store.camera_events,
        read_cursors=store.read_cursors,
        box_number=box_number or store.box_number,
        changes=store.changes,
        clock=clock or SystemClock(),
    )


def connection(
    url: str | list[str], *parts, credentials: str = "", ca_file: str | None = None, name: FleetName = NAME
) -> FleetConnection:
    """The line of a gateway to one server, or to any of several."""
    return FleetConnection(
        servers=[
            FleetServer(
                url=one, credentials=credentials, ca_file=ca_file, name=f"edge-gateway {name}", inbox=name.inbox
            )
            for one in ([url] if isinstance(url, str) else url)
        ],
        name=name,
        parts=parts,
        clock=SystemClock(),
        changed=lambda: None,
        backoff=SOON,
    )
