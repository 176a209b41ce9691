"""The parts that work with the fleet, built over one store."""

from __future__ import annotations

import hmac
import secrets as randomness
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from pydantic import JsonValue, TypeAdapter

from gateway.domain.server_lines import FleetStatus
from gateway.fleet.commands_down import CardsDown, CommandDesk, CommandsDown
from gateway.fleet.connection import FleetConnection, FleetServer
from gateway.fleet.events_up import EventsUp
from gateway.fleet.heartbeat import GatewaysSeen, Heartbeat
from gateway.fleet.names import FleetName
from gateway.fleet.shared_areas import SharedAreasLine
from gateway.lanes import Lanes
from gateway.lanes.snapshots import DeviceSnapshot, LaneSnapshot
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock
from gateway.site import FleetSection, Secrets
from gateway.store import Store

_LANES = TypeAdapter(tuple[LaneSnapshot, ...])
_DEVICES = TypeAdapter(tuple[DeviceSnapshot, ...])


def site_snapshot(lanes: Lanes, verdict: Verdict) -> JsonValue:
    """Return the lanes, the devices and the problems as JSON values."""
    return {
        "headline": str(verdict.headline),
        "problems": [{"kind": one.kind.value, "text": str(one.sentence)} for one in verdict.problems],
        "lanes": _LANES.dump_python(lanes.lanes(), mode="json"),
        "devices": _DEVICES.dump_python(lanes.devices(), mode="json"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetParts:
    """The connection to the fleet, the sender of events, which tells how far it is, and the gateways that are seen."""

    connection: FleetConnection
    events: EventsUp
    gateways: GatewaysSeen

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
        desk: CommandDesk,
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
            store=store,
            waiting=lambda: events.waiting,
            clock=clock,
        )
        commands = CommandsDown(
            fleet_name=name,
            senders={sender.key: sender.account for sender in fleet.senders},
            desk=desk,
            commands=store.commands,
            changes=store.changes,
            snapshot=lambda: site_snapshot(desk.lanes, verdict()),
            clock=clock,
            seal_key=_seal_key(name, credentials),
        )
        cards = CardsDown(fleet_name=name, taker=desk.notices)
        shared = desk.lanes.areas.shared
        areas = () if shared is None else (SharedAreasLine(fleet_name=name, shared=shared),)
        gateways = GatewaysSeen(clock=clock)
        connection = FleetConnection(
            servers=_servers(fleet, name, credentials),
            name=name,
            parts=(events, heartbeat, commands, cards, gateways, *areas),
            clock=clock,
            changed=store.changes.bump,
        )
        return cls(connection=connection, events=events, gateways=gateways)

    async def recall(self) -> None:
        """Begin the read marks, so that nothing expires unsent. Raises StoreError."""
        await self.events.hold()

    def runs(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return the loop by the name of its task."""
        return {"fleet": self.connection.run}

    def status(self) -> FleetStatus:
        """Return the state of the line, with what waits for it. Never waits."""
        return replace(self.connection.status(), waiting=self.events.waiting, sent_to=self.events.sent_to)


def _seal_key(name: FleetName, credentials: str) -> bytes:
    """Return a secret that lasts as long as the gateway's own key for the fleet; for this run alone without one."""
    if not credentials:
        return randomness.token_bytes(32)
    return hmac.digest(credentials.encode(), f"edits of {name}".encode(), "sha256")


def _servers(fleet: FleetSection, name: FleetName, credentials: str) -> list[FleetServer]:
    return [
        FleetServer(
            url=f"{url.partition('://')[0]}://{endpoint}",
            credentials=credentials,
            ca_file=fleet.ca_file,
            name=f"edge-gateway {name}",
            inbox=name.inbox,
        )
        for url, endpoint in zip(fleet.urls, fleet.endpoints(), strict=True)
    ]
