"""The vehicle in the lane, the vehicles that are owed a passage, and those that were let in before a restart."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.domain.access import Decision
from gateway.domain.credentials import Credential
from gateway.domain.grants import without_code
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import Side
from gateway.lanes.snapshots import Phase
from gateway.runtime.clock import Stamp


@dataclass(frozen=True, slots=True)
class Visit:
    """One vehicle's time in the lane, or an opening without one.

    Attributes:
        arrived: when it was first noticed.
        credential: the last reading, None before the first.
        decision: the decision on that reading, None before.
        opened_by: who opened the gate without a card, "" for nobody.
        vehicle_seen: whether the arming loop was on in this visit.
        arming_released: whether the arming loop has been released since the grant.
        side: the side from which it comes.
        followed: whether another vehicle came onto the arming loop while this one was under the gate.
        followers: number of vehicles that followed from the arming loop while the closing loop was never free.
        asked_by: the reader that read the credential, 0 for none.
        against: whether it came over the closing loop to the arming loop, against the lane's direction.
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
    def shown(self) -> str:
        """The last reading for people, "" before the first."""
        return self.credential.shown() if self.credential is not None else ""

    @property
    def granted(self) -> bool:
        """True when this visit may pass."""
        return bool(self.opened_by) or (self.decision is not None and self.decision.granted)

    def released_loop(self, *, vehicle: bool) -> Visit:
        """Return the visit once its arming loop was released. If a `vehicle` stood behind, it becomes a follower."""
        followers = self.followers + (self.followed and vehicle)
        return replace(self, arming_released=True, followed=False, followers=followers)

    def opening(self, *, by: str = "") -> Visit:
        """Return the visit as the gate is opened for it, by a person where one is named."""
        return replace(self, opened_by=by or self.opened_by, arming_released=False)

    def asking(self, credential: Credential, reader_id: int) -> Visit:
        """Return the visit with a reading that is to be decided on."""
        return replace(self, credential=credential, decision=None, asked_by=reader_id)

    def decided(self, decision: Decision) -> Visit:
        """Return the visit with its decision, and without a grant's code, which no record may hold: it opens gates."""
        credential = None if self.credential is None else without_code(self.credential, decision.card)
        return replace(self, decision=decision, credential=credential)

    def from_side(self, side: Side) -> Visit:
        """Return the visit as one from this side."""
        return replace(self, side=side)


@dataclass(frozen=True, slots=True)
class Leaving:
    """A vehicle that has passed and may hold this side's loop. The loop is ignored until `until`."""

    side: Side
    until: float


@dataclass(frozen=True, slots=True)
class Visits:
    """The vehicle in the lane and those whose passages are settled already.

    `phase` is the vehicle's: IDLE, ARMED, DECIDING, OPENING, OPEN or PASSING. Behind a vehicle that has gone the gate
    is still to be closed, which `LaneState.closing` shows.

    Attributes:
        since: when the phase began.
        present: the visit whose turn it is.
        owed: in a counted lane, granted visits that are still to pass after the present one.
        queued: in a counted lane, the vehicle behind the present one, with the number of the decision that it awaits.
        leaving: the vehicle that has just passed, while it may hold a loop.
        granted_before: vehicles let in before the restart.
    """

    phase: Phase = Phase.IDLE
    since: float = float("-inf")
    present: Visit | None = None
    owed: tuple[Visit, ...] = ()
    queued: tuple[int, Visit] | None = None
    leaving: Leaving | None = None
    granted_before: tuple[m.GrantRemembered, ...] = ()

    def let_in_before(self, now: float) -> m.GrantRemembered | None:
        """Return the first vehicle that was let in before the restart and may still be on its way."""
        return next((grant for grant in self.granted_before if now < grant.until), None)

    def entered(self, phase: Phase, visit: Visit | None, now: m.Now) -> Visits:
        """Return the visits in another phase."""
        return replace(self, phase=phase, since=now.at, present=visit)

    def with_present(self, visit: Visit) -> Visits:
        """Return the visits with more known of the present one."""
        return replace(self, present=visit)

    def owing_one_less_to(self, source: str) -> Visits:
        """Return the visits without the last passage that an open of this person was to give."""
        last = next((visit for visit in reversed(self.owed) if visit.opened_by == source), None)
        return replace(self, owed=tuple(visit for visit in self.owed if visit is not last))

    def owing_nothing(self) -> Visits:
        """Return the visits with no passage owed any more."""
        return replace(self, owed=())

    def with_queued(self, queued: tuple[int, Visit] | None) -> Visits:
        """Return the visits with this vehicle waiting for its decision behind the present one, None for none."""
        return replace(self, queued=queued)

    def with_leaving(self, leaving: Leaving | None) -> Visits:
        """Return the visits with this vehicle on its way out, None once its loop counts again."""
        return replace(self, leaving=leaving)

    def remembering(self, grant: m.GrantRemembered) -> Visits:
        """Return the visits with one more vehicle that was let in before the restart."""
        return replace(self, granted_before=(*self.granted_before, grant))

    def without_grant(self, gone: m.GrantRemembered) -> Visits:
        """Return the visits once this vehicle from before the restart has passed."""
        return replace(self, granted_before=tuple(grant for grant in self.granted_before if grant is not gone))

    def without_grant_of(self, visit: Visit) -> Visits:
        """Return the visits without grants from before the restart for the credential of this one, let in again."""
        if not self.granted_before:
            return self
        still = tuple(grant for grant in self.granted_before if grant.credential != visit.shown)
        return replace(self, granted_before=still)
