"""Conditions of a decision: the lane's rules, what is uncertain now, and earlier credentials of the visit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.domain.credentials import Card
from gateway.domain.plates import NearPlate
from gateway.domain.presence import Area, Way, card_holder
from gateway.domain.schedules import Calendar, Schedule


class Stance(StrEnum):
    """Behaviour of a lane while something that it relies on is uncertain.

    `SECURE` refuses whatever is in doubt, `USUAL` decides by what is known, `OPEN` grants whatever is in doubt. No
    stance lets a card pass that is suspended, lost or blocked.
    """

    SECURE = "secure"
    USUAL = "usual"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Ladder:
    """A lane's stance for each class of doubt.

    Attributes:
        stale_cards: the stance when the card list is older than allowed; OPEN lets unknown cards pass.
        clock: the stance when the clock is not trusted; OPEN ignores rules about time.
        records: the stance when nothing can be recorded; OPEN is the same as USUAL: records wait.
        no_cards: the stance when the card list cannot be read; USUAL is the same as SECURE.
    """

    stale_cards: Stance = Stance.USUAL
    clock: Stance = Stance.USUAL
    records: Stance = Stance.USUAL
    no_cards: Stance = Stance.SECURE


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Rules of a lane in one direction. By default only a valid card is required.

    Attributes:
        lane_id: the lane.
        zones: the zones whose cards may pass, besides cards that name the lane itself; empty: all cards.
        way: the areas that a passage leaves and enters.
        areas: the site's areas by id.
        calendar: the site's time zone and holidays.
        schedules: the site's schedules by id; empty: schedules of cards are ignored.
        schedule: when the lane itself is open, None for always.
        two_credentials: whether two different cards or plates are needed for one passage.
        near_plates: whether a misread plate may stand for the listed plate that it must be; see
            `gateway.domain.plates`.
        asks_pin: whether a card opens only together with its PIN.
        by_owner: whether anti-passback counts the owner of cards instead of each card.
        ladder: the lane's stance for each doubt.
        stale_after: how old the card list may be, in micros; None for no limit.
    """

    lane_id: str = ""
    zones: frozenset[str] = frozenset()
    way: Way = field(default_factory=Way)
    areas: Mapping[str, Area] = field(default_factory=dict)
    calendar: Calendar = field(default_factory=Calendar)
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    schedule: Schedule | None = None
    two_credentials: bool = False
    near_plates: bool = False
    asks_pin: bool = False
    by_owner: bool = False
    ladder: Ladder = field(default_factory=Ladder)
    stale_after: int | None = None

    def holder(self, card: Card) -> str:
        """Return the name by which presence counts the holder of a card."""
        return holder_of(card, by_owner=self.by_owner)


def holder_of(card: Card, *, by_owner: bool) -> str:
    """Return the name by which presence counts the holder of a card: the owner's, if owners are counted."""
    return f"owner:{card.owner}" if by_owner and card.owner else card_holder(card.card_id)


@dataclass(frozen=True, slots=True)
class Conditions:
    """State of the clock, the card list and the recording at the time of a decision.

    Attributes:
        clock_trusted: whether the wall time is known to be right.
        recording: whether events can be recorded now.
        listed_at: when the card list was last known to be complete (wall micros); None when central does not keep it.
        at_least: the earliest moment that it can be now (wall micros), None for the moment of the decision. A validity
            counts as over only if it ended by then.
        apart: whether the other gateways of shared areas cannot be asked now.
    """

    clock_trusted: bool = True
    recording: bool = True
    listed_at: int | None = None
    at_least: int | None = None
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Coming:
    """A granted vehicle that has not passed yet; its passage will change the counts.

    `lane_id` is its lane, or the other gateway of a shared area that it comes in at.
    """

    lane_id: str
    way: Way
    holder: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """Other facts about the vehicle, and about vehicles on their way in.

    Attributes:
        first: the card that passed every other rule before, when two credentials are needed.
        plates: the cards of the plates that were read of the vehicle.
        near: listed plates that the reading may be a misreading of; empty when a card matches exactly.
        pin: the PIN that was typed after the card, "" for none.
        pin_locked: whether too many wrong PINs were lately typed for this card.
        coming: vehicles that were let in at any lane and have not passed yet.
    """

    first: Card | None = None
    plates: tuple[Card, ...] = ()
    near: tuple[NearPlate, ...] = ()
    pin: str = field(default="", repr=False)
    pin_locked: bool = False
    coming: tuple[Coming, ...] = ()
