"""The plan of an outage, a frozen value. The whole run follows from it and its seed."""

from __future__ import annotations

from dataclasses import dataclass

from simulation.far_ends.central.faults import Chances
from simulation.virtual_site.plan import Plan

_POLL_SECONDS = 0.5
BAD_LINE = Chances(
    lost_requests=0.02,
    half_open=0.003,
    unauthenticated=0.01,
    expired_sessions=0.01,
    failures=0.01,
    crashes=0.01,
    lost_answers=0.02,
    torn_answers=0.01,
    silent_answers=0.003,
    slow_bodies=0.01,
    truncated_pages=0.05,
    shifted_pages=0.05,
    duplicated_records=0.05,
    missing_records=0.05,
    wrong_counts=0.05,
)
"""A line on which about one request in ten goes wrong, and one page in four."""


@dataclass(frozen=True, slots=True)
class OutagePlan:
    """The length of an outage, its happenings, and the state of the line when central comes back.

    Attributes:
        days: the number of days without central.
        seed: the seed of all chance.
        lanes: the number of lanes; every second one is an exit.
        vehicles: vehicles per lane and day.
        cuts: power cuts per day.
        restarts: restarts per day.
        files: evidence files per day.
        site_changes: changes of cards by people at the site, per day.
        central_changes: changes of cards by people at central, per day.
        cuts_after: power cuts while the backlog is being sent.
        drains_within: the seconds within which the backlog must be sent once the line is good again.
        honours_keys: whether central recognises a repeated write by its key, which the interface does not promise.
        chances: the faults of the line while the backlog is being sent.
    """

    days: float = 30.0
    seed: int = 1
    lanes: int = 2
    vehicles: int = 20
    cuts: float = 6.0
    restarts: float = 2.0
    files: float = 5.0
    site_changes: float = 8.0
    central_changes: float = 6.0
    cuts_after: int = 12
    drains_within: float = 6 * 3600.0
    honours_keys: bool = True
    chances: Chances = BAD_LINE

    @property
    def site(self) -> Plan:
        """The plan of the site and its traffic, in which nothing is faulty."""
        return Plan(
            days=self.days, lanes=self.lanes, seed=self.seed, vehicles=self.vehicles, faults=0.0, poll=_POLL_SECONDS
        )
