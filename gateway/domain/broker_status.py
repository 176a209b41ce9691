"""The state of the line to the MQTT broker."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.fleet_status import FleetState
from gateway.domain.wall_time import WallMicros


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerStatus:
    """State of the line to the MQTT broker, which is connected, away or refused like that to the fleet.

    Attributes:
        state: whether the line is connected; None before the first answer or failure.
        since: when `state` took its value; before that, the gateway's start.
        broker: the broker, `host:port`.
        reason: why it is away or refused; "" while it is connected.
        waiting: the number of events that the broker has not taken yet; at most 10,000 are counted.
    """

    state: FleetState | None
    since: WallMicros
    broker: str
    reason: str = ""
    waiting: int = 0
