"""Grants: a user may pass a lane until a moment, or permanently. Pure.

A grant works in two ways at its lane. Its code, shown to a reader or typed as text, opens like a card. And the cards
of its user open in spite of their own zones, dates and schedules. Nothing else changes: a card whose status is
suspended, lost, blocked or expired opens nothing, and the lane's own rules apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gateway.domain.credentials import Card, Credential


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant that was not revoked. Moments are wall micros UTC.

    Attributes:
        number: its number, by which decisions and events name it, since they must not show its code.
        access_id: its code.
        user_id: the owner of cards, or the holder's name on cards without an owner, or any other name.
        device_id: the device it was given for.
        lane_id: the lane that the device serves.
        given_at: when it was given.
        valid_until: first microsecond no longer valid, None for permanent.
        given_by: who gave it.
    """

    number: int
    access_id: str = field(repr=False)
    user_id: str
    device_id: int
    lane_id: str
    given_at: int
    valid_until: int | None
    given_by: str

    @property
    def shown(self) -> str:
        """Name of the grant for people, without its code."""
        return f"grant {self.number} of {self.user_id}"

    def card(self) -> Card:
        """Return the grant's code as a card of its lane. It is in no card list, so its id is negative."""
        return Card(
            card_id=-self.number,
            number=_named(self.number),
            valid_until=self.valid_until,
            holder=self.user_id,
            owner=self.user_id,
            zones=(self.lane_id,),
        )


def without_code(credential: Credential, card: Card | None) -> Credential:
    """Return the reading with a grant's code replaced by its number, because the code opens gates."""
    return Credential(text=card.number) if card is not None and card.card_id < 0 else credential


def listed_id(card: Card | None) -> int | None:
    """Return a card's id in the card list; None for a grant's code, which has no card there."""
    return card.card_id if card is not None and card.card_id > 0 else None


def card_id_of(listed: int | None, grant: int | None, credential: str) -> int | None:
    """Return the card id by which presence counts a holder: the listed one, or a grant's (negative) for its code."""
    if listed is None and grant is not None and credential == _named(grant):
        return -grant
    return listed


def _named(number: int) -> str:
    return f"grant {number}"


@dataclass(frozen=True, slots=True)
class LaneGrants:
    """The grants of one lane, by their codes and by their users."""

    by_code: Mapping[str, Grant] = field(default_factory=dict)
    by_user: Mapping[str, tuple[Grant, ...]] = field(default_factory=dict)

    def of_code(self, text: str) -> Grant | None:
        """Return the grant with this code, None if there is none."""
        return self.by_code.get(text.strip()) if text else None

    def of_card(self, card: Card) -> tuple[Grant, ...]:
        """Return the grants of a card's user, the longest first."""
        return self.by_user.get(card.owner or card.holder, ())


def by_lanes(grants: Iterable[Grant]) -> Mapping[str, LaneGrants]:
    """Group grants by lane."""
    lanes: dict[str, list[Grant]] = {}
    for grant in grants:
        lanes.setdefault(grant.lane_id, []).append(grant)
    return {lane_id: _of_lane(given) for lane_id, given in lanes.items()}


def _of_lane(grants: list[Grant]) -> LaneGrants:
    longest_first = sorted(grants, key=lambda grant: (grant.valid_until is None, grant.valid_until or 0), reverse=True)
    users: dict[str, tuple[Grant, ...]] = {}
    for grant in longest_first:
        users[grant.user_id] = (*users.get(grant.user_id, ()), grant)
    return LaneGrants({grant.access_id: grant for grant in grants}, users)
