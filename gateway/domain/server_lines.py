"""The states of the lines to central, to the fleet's NATS servers and the MQTT broker, and the gateways seen there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.problems import ProblemKind
from gateway.domain.wall_time import WallMicros
from gateway.texts import Words


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
    reason: Words = ""
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class CentralNotice:
    """Something that a technician should know about central: its kind, and words for people.

    `subject` tells notices of one kind apart, "" if there can only be one.
    """

    kind: ProblemKind
    text: Words
    subject: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CentralStatus:
    """State of the link to central. Times are wall micros UTC.

    Attributes:
        reachable: whether the last exchange reached central; None before the first.
        since: when `reachable` took its value; before the first exchange, when the link was made: at the
            gateway's start, or when [central] of the site file changed.
        error: why the last exchange failed; "" after a success.
        last_sign_in: time of the last successful sign-in, None for never.
        pulled_at: when the last pull ended, None for never.
        pulled: what the last pull fetched, in words.
        progress: how far the running pull or comparison is; between pulls, the lists still to fetch anew, or "".
        refreshing: whether a full fetch runs or is due.
        reconciling: whether a comparison of sent records runs or is due.
        reconciled: result of the last comparison, in words.
        incomplete: whether the last pull lacks a list, or rejected one.
        notices: what a technician should know.
        clock_ahead: by how many seconds at most central's clock is ahead of this machine's; None while central does not
            answer, since either clock may be set meanwhile.
    """

    reachable: bool | None
    since: WallMicros
    error: str = ""
    last_sign_in: WallMicros | None = None
    pulled_at: WallMicros | None = None
    pulled: str = ""
    progress: str = ""
    refreshing: bool = False
    reconciling: bool = False
    reconciled: str = ""
    incomplete: bool = False
    notices: tuple[CentralNotice, ...] = ()
    clock_ahead: float | None = None


@dataclass(frozen=True, slots=True)
class ProblemSeen:
    """A problem of a gateway."""

    severity: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewaySeen:
    """A gateway as its last heartbeat tells.

    Attributes:
        name: its name in the fleet, `site.gateway`.
        at: when the server took the heartbeat.
        site: the name of its site.
        problems: the worst problems; `problem_count` counts all.
        last_event: the id of its newest event, 0 for none.
        last_event_at: when that happened; None for none, and for gateways of an older version.
        waiting: the number of records that are not in the stream yet.
    """

    name: str
    at: WallMicros
    site: str
    version: str
    ready: bool
    headline: str
    problem_count: int
    problems: tuple[ProblemSeen, ...]
    last_event: int
    last_event_at: WallMicros | None
    waiting: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetSeen:
    """The gateways of the fleet that have changed since a mark.

    Attributes:
        mark: stands for all that is known; the next question names it.
        anew: True if `seen` is everything, because the mark was of another run.
        seen: the gateways that changed.
        gone: the names of gateways that were taken out of the bucket.
        complete: whether the bucket has been read to its end.
        fault: why nothing new is seen, "" if it is.
        away_seconds: the age of a heartbeat from which its gateway is away.
    """

    mark: str
    anew: bool
    seen: tuple[GatewaySeen, ...]
    gone: tuple[str, ...]
    complete: bool
    fault: str
    away_seconds: float
