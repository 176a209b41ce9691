"""Claims of a holder's way among the gateways of a shared area, and what becomes of them in a lane."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.domain.passages import MOVED
from gateway.domain.presence import Way
from gateway.domain.shared_areas import Claim, SharedRecords
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.visits import HAS_RIGHT_OF_WAY


class ClaimOutcome(StrEnum):
    """Outcome of a claim. `OVERTAKEN`: another gateway changed the holder's entry first."""

    CLAIMED = "claimed"
    FULL = "full"
    OVERTAKEN = "overtaken"
    AWAY = "away"


@dataclass(slots=True, eq=False)
class OwnClaim:
    """A claim of this gateway.

    Attributes:
        claim: as it is written.
        holder: the holder's name among the gateways.
        seen: the revision of the holder's entry for which it was decided.
        limit: the limit of the area that is entered, None for none.
        outcome: its outcome, once that is known.
        decides: whether the decision still waits for it.
        until: when it is given back by itself (monotonic seconds); None for one that a lane holds.
        is_foreign: whether another box with this gateway's name made it.
    """

    claim: Claim
    holder: str
    seen: int
    limit: int | None
    outcome: asyncio.Future[ClaimOutcome] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    decides: bool = True
    until: float | None = None
    is_foreign: bool = False

    def judged(self, records: SharedRecords) -> ClaimOutcome:
        """Judge it by the records at the revision at which it was taken, as every gateway would."""
        if self.limit is None or records.taken(self.claim.enters) <= self.limit:
            return ClaimOutcome.CLAIMED
        return ClaimOutcome.FULL

    @property
    def shown(self) -> str:
        """The claim for people: who, where, and its number."""
        where = f"into {self.claim.enters}" if self.claim.enters else f"out of {self.claim.leaves}"
        return f"{self.holder} {where}, {self.claim.id}"

    @property
    def is_overtaken(self) -> bool:
        """True if another gateway changed the holder's entry first."""
        return self.outcome.done() and self.outcome.result() is ClaimOutcome.OVERTAKEN

    def ends_as(self, outcome: ClaimOutcome) -> None:
        """Set the outcome; the first counts."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class OwnClaims(dict[str, OwnClaim]):
    """The claims of this gateway, by their ids."""

    def of(self, holder: str) -> list[OwnClaim]:
        """Return a holder's claims, the oldest first."""
        return [one for one in self.values() if one.holder == holder]

    def undecided(self, holder: str) -> list[OwnClaim]:
        """Return a holder's claims whose outcome is not known."""
        return [one for one in self.of(holder) if not one.outcome.done()]

    def remembered(self, holder: str) -> list[OwnClaim]:
        """Return a holder's claims of an earlier run."""
        return [one for one in self.of(holder) if one.until is not None and not one.is_foreign]

    def remember(self, claim: Claim, holder: str, *, until: float, is_foreign: bool) -> None:
        """Take over a claim of an earlier run, or of another box with this name, until a monotonic instant."""
        self[claim.id] = own = OwnClaim(claim, holder, 0, None, decides=False, until=until, is_foreign=is_foreign)
        own.ends_as(ClaimOutcome.CLAIMED)

    def expired(self, now: float) -> list[OwnClaim]:
        """Return the claims that are to be given back at a monotonic instant."""
        return [one for one in self.values() if one.until is not None and now >= one.until]

    def settle(self, holder: str, way: Way) -> None:
        """Drop the claim with which a holder has passed."""
        for own in [one for one in self.of(holder) if one.claim.way == way][:1]:
            del self[own.claim.id]
            own.ends_as(ClaimOutcome.CLAIMED)


class LaneClaims:
    """The claims of one lane whose gate may open. `release` gives one back that nobody used."""

    def __init__(self, *, release: Callable[[str], None]) -> None:
        self._release = release
        self._held: dict[str, str] = {}

    def stepped(self, event: m.LaneEvent, state: LaneState, commands: Iterable[m.LaneCommand]) -> None:
        """Take in a step of the machine. A claim stands as long as its vehicle has the right of way.

        A vehicle that has passed settles its claim once that is on disk. Any other that is not let in any more gives it
        back, and so does a decision that nobody awaited.
        """
        if isinstance(event, m.Decided) and event.decision.claim:
            self._held[event.decision.claim] = event.decision.holder
        if not self._held:
            return
        visits = state.visits
        present = (visits.present,) if visits.present is not None and visits.phase in HAS_RIGHT_OF_WAY else ()
        used = {visit.decision.claim for visit in (*present, *visits.owed) if visit.decision is not None}
        passed = [
            command.entry.passage.holder
            for command in commands
            if isinstance(command, m.Record) and command.entry.passage and command.entry.passage.outcome in MOVED
        ]
        for claim_id, holder in list(self._held.items()):
            if claim_id in used:
                continue
            del self._held[claim_id]
            if holder in passed:
                passed.remove(holder)
            else:
                self._release(claim_id)
