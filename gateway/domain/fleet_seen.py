"""The gateways that are seen over the fleet's line."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.wall_time import WallMicros


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
