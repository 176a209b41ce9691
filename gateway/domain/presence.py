"""Presence: the count of each area, and the last known place of each holder. No I/O.

An area is a part of the site that lanes lead into and out of; "" is the world outside. Decisions only read the
presence. It changes with passages (a vehicle that backed out has not passed) and with an operator's corrections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

OUTSIDE = ""


class AntiPassback(StrEnum):
    """Reaction when a holder enters an area twice, or leaves one without having entered.

    `SOFT` grants and records it, `HARD` refuses, `TIMED` refuses within the area's minutes after the last passage.
    """

    OFF = "off"
    SOFT = "soft"
    HARD = "hard"
    TIMED = "timed"


class Apart(StrEnum):
    """Rule of a shared area for vehicles that enter while the other gateways cannot be asked.

    `ALLOW` lets them in without a look at who is inside, `DENY` refuses, `LOCAL` decides by what this gateway knows.
    """

    ALLOW = "allow"
    DENY = "deny"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the site.

    Attributes:
        area_id: its name in the site file.
        limit: how many may be inside, or None for no limit.
        anti_passback: the reaction to holders who enter or leave twice.
        minutes: for how long a timed anti-passback refuses.
        first_person: whether nobody may enter before a holder who may open the area has entered on the same local day.
        by_owner: whether anti-passback counts the owner of cards, not each card.
        shared: whether the gateways of the fleet's site share it.
        apart: the rule of a shared area while the other gateways cannot be asked.
    """

    area_id: str
    limit: int | None = None
    anti_passback: AntiPassback = AntiPassback.OFF
    minutes: float = 0
    first_person: bool = False
    by_owner: bool = False
    shared: bool = False
    apart: Apart = Apart.LOCAL


@dataclass(frozen=True, slots=True)
class Way:
    """Direction of a passage: out of one area and into another; "" is the outside world."""

    leaves: str = OUTSIDE
    enters: str = OUTSIDE

    @property
    def back(self) -> Way:
        """The same way in the other direction."""
        return Way(leaves=self.enters, enters=self.leaves)

    def __bool__(self) -> bool:
        """Return whether the way leads to another area."""
        return self.leaves != self.enters


@dataclass(frozen=True, slots=True)
class Movement:
    """Change of presence by a passage at `at` (wall micros). `opens`: the holder opens the area to others.

    `holder` is the name by which presence counts the holder, "" when unknown. `shared`: the area that is left is
    shared, so that its count here is this gateway's share, which may fall below 0.
    """

    way: Way
    at: int
    holder: str = ""
    opens: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class CountCorrection:
    """A person's correction of an area's count. `elsewhere`: how many of them other gateways of the area count."""

    area_id: str
    count: int
    elsewhere: int = 0

    def __post_init__(self) -> None:
        """Refuse a negative count."""
        if self.count < 0:
            raise ValueError("a count is 0 or more")

    @property
    def own(self) -> int:
        """This gateway's share after it."""
        return self.count - self.elsewhere


@dataclass(frozen=True, slots=True)
class Forgiveness:
    """A person's reset of anti-passback for a holder; "" means all holders."""

    holder: str = ""


Correction = CountCorrection | Forgiveness


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The area into which a holder passed last ("" outside), and when (wall micros)."""

    area_id: str
    since: int


def card_holder(card_id: int) -> str:
    """Return the name by which presence counts a card's holder if cards are counted, not owners."""
    return f"card:{card_id}"


class Presence:
    """Counts of areas and last places of holders.

    The caller writes every change to the store too; see `gateway.store.events.presence`. A count never falls below 0: a
    vehicle that would take it there was not counted when it came. The shares of other gateways in shared areas, and the
    places of holders that they saw, are kept in memory alone.
    """

    def __init__(
        self,
        *,
        counts: Mapping[str, int] | None = None,
        opened: Mapping[str, int] | None = None,
        holders: Iterable[tuple[str, Whereabouts]] = (),
    ) -> None:
        self._counts = dict(counts or {})
        self._opened = dict(opened or {})
        self._holders = dict(holders)
        self._elsewhere: Mapping[str, int] = {}
        self._opened_elsewhere: Mapping[str, int] = {}

    def count(self, area_id: str) -> int:
        """Return the number of vehicles in the area."""
        return max(0, self.own(area_id) + self.elsewhere(area_id))

    def own(self, area_id: str) -> int:
        """Return this gateway's share of the area's count: all of it, unless the area is shared."""
        return self._counts.get(area_id, 0)

    def elsewhere(self, area_id: str) -> int:
        """Return the shares of the other gateways of a shared area."""
        return self._elsewhere.get(area_id, 0)

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts of all areas that were ever entered or corrected."""
        return MappingProxyType(self._counts)

    def opened_at(self, area_id: str) -> int | None:
        """Return when a holder who may open the area last entered (wall micros), None for never."""
        times = [one[area_id] for one in (self._opened, self._opened_elsewhere) if area_id in one]
        return max(times, default=None)

    def opened_here_at(self, area_id: str) -> int | None:
        """Return when a holder who may open the area last entered at this gateway (wall micros), None for never."""
        return self._opened.get(area_id)

    def holders(self) -> Mapping[str, Whereabouts]:
        """Return the last known place of each holder."""
        return MappingProxyType(self._holders)

    def whereabouts(self, holder: str) -> Whereabouts | None:
        """Return the holder's last known place; None when it is unknown."""
        return self._holders.get(holder)

    def move(self, movement: Movement) -> None:
        """Apply a passage to the counts and the holder's place. A lane that leads to no other area changes nothing."""
        way = movement.way
        if not way:
            return
        if way.leaves != OUTSIDE:
            left = self.own(way.leaves) - 1
            self._counts[way.leaves] = left if movement.shared else max(0, left)
        if way.enters != OUTSIDE:
            self._counts[way.enters] = self.own(way.enters) + 1
            if movement.opens:
                self._opened[way.enters] = movement.at
        if movement.holder:
            self._holders[movement.holder] = Whereabouts(way.enters, movement.at)

    def learn(self, *, elsewhere: Mapping[str, int], opened: Mapping[str, int]) -> None:
        """Take over the other gateways' shares of the shared areas, and when they opened them."""
        self._elsewhere, self._opened_elsewhere = elsewhere, opened

    def place(self, holder: str, whereabouts: Whereabouts | None) -> None:
        """Take over a holder's place as the gateways of a shared area know it; None for unknown."""
        if whereabouts is None:
            self._holders.pop(holder, None)
        else:
            self._holders[holder] = whereabouts

    def rename(self, holder: str, name: str) -> None:
        """Move a holder's place to another name."""
        if (whereabouts := self._holders.pop(holder, None)) is not None:
            self._holders[name] = whereabouts

    def correct(self, correction: Correction) -> None:
        """Apply an operator's correction."""
        match correction:
            case CountCorrection(area_id):
                self._counts[area_id] = correction.own
            case Forgiveness(""):
                self._holders.clear()
            case Forgiveness(holder):
                self._holders.pop(holder, None)
