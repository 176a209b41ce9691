"""A card's trial: the decision that it would get at a lane now, and the event that says so. Nothing is opened."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.access import Decision
from gateway.domain.credentials import Credential
from gateway.domain.events import Event, EventKind
from gateway.domain.grants import listed_id
from gateway.lanes.machine.transition import named
from gateway.runtime.clock import Stamp
from gateway.texts import Words


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of a trial. `hindered`: why even a granted card would open nothing now, "" if it would open."""

    decision: Decision
    hindered: Words

    @property
    def opens(self) -> bool:
        """True if the lane would open for the card."""
        return self.decision.granted and not self.hindered

    def words(self) -> Words:
        """Write the reason for people."""
        return self.hindered or self.decision.words()

    def event(self, credential: Credential, *, lane_id: str, by: str, stamp: Stamp) -> Event:
        """Return the event that records the trial, marked as a test."""
        verdict = "would be let in" if self.opens else "would be refused"
        return Event(
            kind=EventKind.CARD_TESTED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            description=f"test by {by}: {named(credential)} {verdict}: {self.words()}",
            lane_id=lane_id,
            data={
                "test": True,
                "by": by,
                "credential": credential.shown(),
                "card_id": listed_id(self.decision.card),
                "granted": self.opens,
                "reason": self.decision.reason,
                "trace": self.decision.traced(),
            },
        )
