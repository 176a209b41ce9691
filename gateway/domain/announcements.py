"""Announcements to webhooks: which events, under which type, in which words. Pure.

The interface has five types. Each event is announced under one at most: a connected or lost device and a decision have
types of their own, and every other event that warns or alarms is an alert. Events about webhooks themselves are not
announced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gateway.domain.events import Event, EventKind, RecordedEvent, Severity
from gateway.runtime.clock import iso_utc


class AnnouncedType(StrEnum):
    """Types of announcements, as the interface names them."""

    DEVICE_CONNECTED = "device.connected"
    DEVICE_DISCONNECTED = "device.disconnected"
    ACCESS_GRANTED = "access.granted"
    ACCESS_DENIED = "access.denied"
    ALERT_TRIGGERED = "alert.triggered"


_BY_KIND: Final = {
    EventKind.DEVICE_CONNECTED: AnnouncedType.DEVICE_CONNECTED,
    EventKind.DEVICE_LOST: AnnouncedType.DEVICE_DISCONNECTED,
    EventKind.ACCESS_GRANTED: AnnouncedType.ACCESS_GRANTED,
    EventKind.ACCESS_DENIED: AnnouncedType.ACCESS_DENIED,
}
_OF_WEBHOOKS: Final = frozenset({EventKind.WEBHOOK_DISABLED, EventKind.WEBHOOK_BACKLOG_FULL})


@dataclass(frozen=True, slots=True)
class PlaceNames:
    """Names of lanes by id, and locations of devices by id."""

    lanes: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[int, str] = field(default_factory=dict)

    def of(self, event: Event) -> str | None:
        """Return the location of an event, None when the site file does not name it."""
        return self.lanes.get(event.lane_id) or self.devices.get(event.device_id)


def announced_as(event: Event) -> AnnouncedType | None:
    """Return the type under which an event is announced, None if it is not announced."""
    if event.kind in _OF_WEBHOOKS:
        return None
    alert = AnnouncedType.ALERT_TRIGGERED if event.severity >= Severity.WARNING else None
    return _BY_KIND.get(event.kind, alert)


def announcement(event: Event, *, message_id: str, event_id: int, places: PlaceNames) -> str:
    """Build the JSON body to send, the same in all attempts. Ids of devices and users are text, as in `/api/v1`."""
    user = event.data.get("user_id")
    return json.dumps(
        {
            "id": message_id,
            "type": announced_as(event),
            "timestamp": iso_utc(event.date_at),
            "data": {
                "device_id": str(event.device_id) if event.device_id else None,
                "user_id": str(user) if user else None,
                "location": places.of(event),
                "event_id": event_id,
                "name": event.name,
                "description": event.description,
            },
        },
        separators=(",", ":"),
    )


def as_happened(recorded: RecordedEvent) -> Event | None:
    """Turn a recorded event back into the event as reported; None for an unknown kind or unreadable data."""
    try:
        kind, data = EventKind(recorded.type), json.loads(recorded.data)
    except ValueError:
        return None
    return Event(
        kind=kind,
        date_at=recorded.date_at,
        clock_trusted=recorded.clock_trusted,
        text=recorded.description,
        device_id=recorded.device_id,
        lane_id=recorded.lane_id,
        data=data if isinstance(data, dict) else {},
    )
