"""Readings of the vehicle on the arming loop, and the PIN or second credential that is awaited."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gateway.domain.credentials import Credential
from gateway.lanes.machine.state.plates import Votes

_MOST_REPORTED = 16
_REPORTED_SECONDS = 15.0
_MOST_TOLD = 8


@dataclass(frozen=True, slots=True)
class EarlyCard:
    """A card that was read before its vehicle is seen on the arming loop, and until when the card is held."""

    reader_id: int
    credential: Credential
    until: float


@dataclass(frozen=True, slots=True)
class ToldReading:
    """A record of a card that may still be at its reader: the reader, the card and the reason."""

    reader_id: int
    credential: Credential
    reason: str


@dataclass(frozen=True, slots=True)
class AwaitedPin:
    """A card that waits for its PIN."""

    credential: Credential
    until: float
    keys: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings that no decision has settled yet.

    Attributes:
        decisions: how many decisions were asked for.
        early: a card that is held until its vehicle is seen.
        awaited_pin: the card that waits for its PIN.
        second_until: until when the second credential of this visit is awaited, None when none is.
        votes: plates of the present vehicle.
        votes_behind: plates of the vehicle that came onto the arming loop while this one passes.
        ignored: plates that an event lately reported as ignored, each with its time.
        told: what events said of the last cards, so that a card that is held to the reader is recorded once.
        unseen: number of cards in a row, each another than before, that were read with no vehicle on an arming loop.
        unseen_card: the last of them.
        unread: number of vehicles in a row that waited before the closed gate and left, and nothing was read.
    """

    decisions: int = 0
    early: EarlyCard | None = None
    awaited_pin: AwaitedPin | None = None
    second_until: float | None = None
    votes: Votes = field(default_factory=Votes)
    votes_behind: Votes = field(default_factory=Votes)
    ignored: tuple[tuple[str, float], ...] = ()
    told: tuple[ToldReading, ...] = ()
    unseen: int = 0
    unseen_card: Credential | None = None
    unread: int = 0

    def card_unseen(self, credential: Credential) -> Readings:
        """Return the readings after a card without a vehicle."""
        if credential == self.unseen_card:
            return self
        return replace(self, unseen=self.unseen + 1, unseen_card=credential)

    def vehicle_unread(self) -> Readings:
        """Return the readings after a vehicle that waited and left, and nothing was read."""
        return replace(self, unread=self.unread + 1)

    def vehicle_seen(self) -> Readings:
        """Return the readings once a vehicle is on an arming loop: it works."""
        return replace(self, unseen=0, unseen_card=None) if self.unseen else self

    def something_read(self) -> Readings:
        """Return the readings once a card or plate was read: a reader works."""
        return replace(self, unread=0) if self.unread else self

    def was_reported(self, plate: str, now: float) -> bool:
        """Return whether an event said lately that this plate does not count."""
        return any(plate == told and now < at + _REPORTED_SECONDS for told, at in self.ignored)

    def with_ignored(self, plate: str, now: float) -> Readings:
        """Return the readings with this plate among the ignored ones."""
        lately = tuple(one for one in self.ignored if now < one[1] + _REPORTED_SECONDS)
        return replace(self, ignored=(*lately[1 - _MOST_REPORTED :], (plate, now)))

    def with_told(self, told: ToldReading) -> Readings:
        """Return the readings once an event has said this of a card."""
        return replace(self, told=(*self.told[1 - _MOST_TOLD :], told))

    def presented_anew(self, reader_id: int, credential: Credential) -> Readings:
        """Return the readings once a card was presented that was not at this reader before."""
        told = tuple(one for one in self.told if (one.reader_id, one.credential) != (reader_id, credential))
        return self if told == self.told else replace(self, told=told)

    def asked(self) -> Readings:
        """Return the readings with one more decision asked for."""
        return replace(self, decisions=self.decisions + 1)

    def holding(self, early: EarlyCard | None) -> Readings:
        """Return the readings with this card held until its vehicle is seen, None for none."""
        return self if early is self.early else replace(self, early=early)

    def awaiting_pin(self, awaited: AwaitedPin | None) -> Readings:
        """Return the readings while this card waits for its PIN, None for none."""
        return replace(self, awaited_pin=awaited)

    def awaiting_second(self, until: float | None) -> Readings:
        """Return the readings while a second credential is waited for, None for no waiting."""
        return self if until == self.second_until else replace(self, second_until=until)

    def voted(self, votes: Votes) -> Readings:
        """Return the readings with these plates of the present vehicle."""
        return replace(self, votes=votes)

    def voted_behind(self, votes: Votes) -> Readings:
        """Return the readings with these plates of the vehicle behind."""
        return replace(self, votes_behind=votes)

    def visit_over(self, votes: Votes) -> Readings:
        """Return the readings for the next vehicle, to which `votes` may belong."""
        return replace(self, votes=votes, votes_behind=Votes(), awaited_pin=None, second_until=None)
