"""The parts that work with the fleet, built over one store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from gateway.domain.fleet_status import FleetStatus
from gateway.fleet.connection import FleetConnection, FleetServer
from gateway.fleet.events_up import EventsUp
from gateway.fleet.heartbeat import Heartbeat
from gateway.fleet.names import FleetName
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock
from gateway.site import FleetSection, Secrets
from gateway.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetParts:
    """The connection to the fleet, and the sender of events, which tells how far it is."""

    connection: FleetConnection
    events: EventsUp

    @classmethod
    def of(
        cls,
        fleet: FleetSection,
        *,
        site_name: str,
        version: str,
        secrets: Secrets,
        store: Store,
        verdict: Callable[[], Verdict],
        clock: Clock,
    ) -> Self:
        """Build them. Raises ConfigError for a missing secret."""
        name = FleetName(fleet.site, fleet.gateway)
        credentials = secrets.get(fleet.credentials) if fleet.credentials else ""
        events = EventsUp(
            name=name,
            site_name=site_name,
            events=store.events,
            camera_events=store.camera_events,
            read_cursors=store.read_cursors,
            box_number=store.box_number,
            changes=store.changes,
            clock=clock,
        )
        heartbeat = Heartbeat(
            fleet_name=name,
            site_name=site_name,
            version=version,
            verdict=verdict,
            events=store.events,
            waiting=lambda: events.waiting,
            changes=store.changes,
            clock=clock,
        )
        servers = [
            FleetServer(
                url=f"{url.partition('://')[0]}://{endpoint}",
                credentials=credentials,
                ca_file=fleet.ca_file,
                name=f"edge-gateway {name}",
            )
            for url, endpoint in zip(fleet.urls, fleet.endpoints(), strict=True)
        ]
        connection = FleetConnection(
            servers=servers, name=name, parts=(events, heartbeat), clock=clock, changed=store.changes.bump
        )
        return cls(connection=connection, events=events)

    def status(self) -> FleetStatus:
        """Return the state of the line, with what waits for it. Never waits."""
        return replace(self.connection.status(), waiting=self.events.waiting, sent_to=self.events.sent_to)
