"""What a lane knows of vehicles: the one whose turn it is, and those that nobody let in. Frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.access import Decision
from gateway.domain.credentials import Credential
from gateway.lanes.machine.rules import Side
from gateway.runtime.clock import Stamp


@dataclass(frozen=True, slots=True)
class Visit:
    """One vehicle's time in the lane, or an opening without one.

    Attributes:
        arrived: when it was first noticed.
        credential: what was read last, None before.
        decision: the decision on it, None before.
        opened_by: who had the gate opened without a card, "" for none.
        vehicle_seen: whether the arming loop was on in this visit.
        arming_released: whether the arming loop has been released since the grant.
        side: from where it comes.
        followed: another vehicle came onto the arming loop while this one was under the gate.
        followers: vehicles that went on from there while the closing loop was never free.
        asked_by: the reader that read the credential, 0 for none.
        against: it came over the closing loop to the arming loop: it goes against the lane's direction.
    """

    arrived: Stamp
    credential: Credential | None = None
    decision: Decision | None = None
    opened_by: str = ""
    vehicle_seen: bool = False
    arming_released: bool = False
    side: Side = Side.NEAR
    followed: bool = False
    followers: int = 0
    asked_by: int = 0
    against: bool = False

    @property
    def granted(self) -> bool:
        """Whether this visit may pass."""
        return bool(self.opened_by) or (self.decision is not None and self.decision.granted)


@dataclass(frozen=True, slots=True)
class Intruder:
    """Something on the closing loop without a right of way.

    Attributes:
        visit: what is known of it.
        at: when it was noticed, on the closing loop or before.
        first: whether it came onto the closing loop before any arming loop.
        moved_on: whether the arming loop was released for it, which tells it from the vehicle before.
        drops_out: the closing loop was free for a moment only: it may be the vehicle before.
        reached_arming: whether it came onto the arming loop from there.
        shut: the gate has been closed all the while, so that it cannot have passed.
    """

    visit: Visit
    at: float
    first: bool
    moved_on: bool = False
    drops_out: bool = False
    reached_arming: bool = False
    shut: bool = False


@dataclass(frozen=True, slots=True)
class MovedOn:
    """A vehicle that nobody let in left the arming loop, perhaps forwards."""

    visit: Visit
    at: float


@dataclass(frozen=True, slots=True)
class Leaving:
    """The vehicle that has passed may still come onto this side's loop, which means nothing until then."""

    side: Side
    until: float
