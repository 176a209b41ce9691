"""The states of the lines to the fleet's NATS servers and to the MQTT broker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.wall_time import WallMicros


class ConnectionState(StrEnum):
    """States of the line: connected; away, which mends itself; refused, which a person must mend."""

    CONNECTED = "connected"
    AWAY = "away"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetStatus:
    """State of the line to the fleet.

    Attributes:
        state: whether the line is connected; None before the first answer or failure.
        since: when `state` took its value; before that, the gateway's start.
        reason: why it is away or refused; "" while it is connected.
        name: this gateway's name in the fleet, `site.gateway`.
        server: the server that is connected, or was tried last, `host:port`.
        waiting: the number of events and camera events that are not in the stream yet; at most 10,000 are counted.
        sent_to: the id of the newest event that is in the stream, 0 for none.
    """

    state: ConnectionState | None
    since: WallMicros
    reason: str = ""
    name: str = ""
    server: str = ""
    waiting: int = 0
    sent_to: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerStatus:
    """State of the line to the MQTT broker.

    Attributes:
        state: whether the line is connected; None before the first answer or failure.
        since: when `state` took its value; before that, the gateway's start.
        broker: the broker, `host:port`.
        reason: why it is away or refused; "" while it is connected.
        waiting: the number of events that the broker has not taken yet; at most 10,000 are counted.
    """

    state: ConnectionState | None
    since: WallMicros
    broker: str
    reason: str = ""
    waiting: int = 0
