"""Areas that several gateways share: an entry for each holder, the counts of each gateway, and their merging. Pure.

All gateways see the same changes of these records in the same order, which is that of their revisions. A holder's entry
changes only against the revision that the change was made for. The counts of a gateway are written by itself alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Final, Protocol

from gateway.domain.presence import OUTSIDE, Way, Whereabouts

CLOCKS_AGREE_MICROS: Final = 2_000_000
"""Clocks of gateways that are trusted agree at least so well. Passages closer than this have no certain order."""
STEPS_KEPT: Final = 8
_PROVISIONAL_IDS: Final = 2_000_000_000


@dataclass(frozen=True, slots=True)
class AreaStep:
    """A holder's passage as the gateways share it, or a person's forgiveness, after which the place is unknown.

    Attributes:
        at: when, by the clock of its gateway (wall micros).
        by: the gateway.
        leaves: the shared area that was left, "" for none.
        enters: the shared area that was entered, "" for none.
        trusted: whether the gateway's clock was trusted.
        forgiven: whether it is a forgiveness.
    """

    at: int
    by: str
    leaves: str = OUTSIDE
    enters: str = OUTSIDE
    trusted: bool = True
    forgiven: bool = False

    @property
    def way(self) -> Way:
        """The way of the passage."""
        return Way(leaves=self.leaves, enters=self.enters)

    def contradicts(self, before: AreaStep) -> bool:
        """Return whether this cannot have come right after `before`: entered twice, or left without being inside."""
        if self.forgiven or before.forgiven:
            return False
        twice = self.enters != OUTSIDE and self.enters == before.enters
        return twice or self.leaves not in (OUTSIDE, before.enters)

    def is_certainly_after(self, before: AreaStep) -> bool:
        """Return whether the clocks tell the order of both for certain."""
        if self.by == before.by:
            return True
        return self.trusted and before.trusted and self.at - before.at > CLOCKS_AGREE_MICROS


@dataclass(frozen=True, slots=True)
class Claim:
    """A gateway's claim: its gate may open to this holder. `at`: wall micros of the gateway `by`."""

    id: str
    by: str
    at: int
    leaves: str = OUTSIDE
    enters: str = OUTSIDE

    @property
    def way(self) -> Way:
        """The way that the holder is let pass."""
        return Way(leaves=self.leaves, enters=self.enters)


@dataclass(frozen=True, slots=True)
class HolderEntry:
    """The shared record of one holder: the last passages in the order of the clocks, and open claims."""

    steps: tuple[AreaStep, ...] = ()
    claims: tuple[Claim, ...] = ()

    @property
    def place(self) -> Whereabouts | None:
        """The holder's last known place, None for unknown."""
        last = self.steps[-1] if self.steps else None
        return None if last is None or last.forgiven else Whereabouts(last.enters, last.at)

    def with_steps(self, steps: Iterable[AreaStep]) -> HolderEntry:
        """Return the entry with more passages, each in its place by the clocks."""
        return replace(self, steps=tuple(_in_order((*self.steps, *steps))[-STEPS_KEPT:]))

    def lacks(self, step: AreaStep) -> bool:
        """Return whether a passage is not here, and not too old to count."""
        return step not in self.steps and step in self.with_steps([step]).steps

    def with_claims(self, by: str, claims: Iterable[Claim]) -> HolderEntry:
        """Return the entry with these claims of a gateway in place of its others."""
        return replace(self, claims=(*(one for one in self.claims if one.by != by), *claims))


@dataclass(frozen=True, slots=True)
class GatewayCounts:
    """A gateway's share of each area's count, and when it last let in somebody who opens the area (wall micros).

    `run` names the run of the gateway that wrote it.
    """

    inside: Mapping[str, int] = field(default_factory=dict)
    opened: Mapping[str, int] = field(default_factory=dict)
    run: str = ""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two passages of one holder that cannot both be true in this order."""

    before: AreaStep
    after: AreaStep

    @property
    def is_certain(self) -> bool:
        """True if the clocks tell the order for certain."""
        return self.after.is_certainly_after(self.before)


class TellContradiction(Protocol):
    """The receiver of contradictions that are found when passages are merged."""

    def __call__(self, holder: str, found: Contradiction, /, *, made_apart: bool) -> None:
        """Tell one of a holder. `made_apart`: one of both passages was made while nobody could be asked."""
        ...


def contradictions(entry: HolderEntry, added: Sequence[AreaStep]) -> Iterator[Contradiction]:
    """Yield the contradictions that these passages make with those of an entry, and among themselves."""
    new = set(added) - set(entry.steps)
    steps = _in_order((*entry.steps, *added))
    for before, after in pairwise(steps):
        if (before in new or after in new) and after.contradicts(before):
            yield Contradiction(before, after)


def _in_order(steps: Iterable[AreaStep]) -> list[AreaStep]:
    return sorted(set(steps), key=lambda step: (step.at, step.by, step.leaves))


def touches(areas: Collection[str], way: Way) -> bool:
    """Return whether a way leads into or out of one of these areas."""
    return bool(way) and (way.leaves in areas or way.enters in areas)


def shared_parts(areas: Collection[str], way: Way) -> tuple[str, str]:
    """Return which of these areas a way leaves and enters, "" for any other place."""
    return way.leaves if way.leaves in areas else OUTSIDE, way.enters if way.enters in areas else OUTSIDE


def unknown_steps(entry: HolderEntry, place: Whereabouts, *, by: str, areas: Collection[str]) -> Iterator[AreaStep]:
    """Yield the passage that led to a place on disk, if the entry does not know it."""
    enters = place.area_id if place.area_id in areas else OUTSIDE
    newest = entry.steps[-1].at if entry.steps else 0
    if place.since > newest and (entry.steps or entry.claims or enters):
        yield AreaStep(place.since, by, enters=enters)


def shared_name(gateway: str, holder: str) -> str:
    """Return a holder's name among the gateways. Ids that a gateway gave itself are marked as its own."""
    number = holder.removeprefix("card:")
    is_listed = not holder.startswith("card:") or (number.isdecimal() and int(number) < _PROVISIONAL_IDS)
    return holder if is_listed else f"{gateway}/{holder}"


def local_name(gateway: str, name: str) -> str:
    """Return the name by which this gateway's presence counts a holder."""
    return name.removeprefix(f"{gateway}/")


@dataclass(frozen=True, slots=True)
class AreaWrite:
    """A change to write, if the record still has the revision `after`. `holder` is "" for this gateway's counts.

    `base` is the entry that it changes, `steps` are the passages that it adds.
    """

    holder: str
    value: HolderEntry | GatewayCounts
    after: int
    base: HolderEntry = field(default_factory=HolderEntry)
    steps: tuple[AreaStep, ...] = ()


class SharedRecords:
    """All entries and counts as they were at one revision. Changes must be applied in the order of their revisions."""

    def __init__(self) -> None:
        self._holders: dict[str, tuple[HolderEntry, int]] = {}
        self._counts: dict[str, tuple[GatewayCounts, int]] = {}
        self._claimed: dict[str, tuple[Claim, ...]] = {}
        self._coming: Counter[str] = Counter()

    def entry(self, holder: str) -> tuple[HolderEntry, int]:
        """Return a holder's entry and its revision; an empty one at revision 0 if there is none."""
        return self._holders.get(holder, (_NO_ENTRY, 0))

    def counts(self, gateway: str) -> tuple[GatewayCounts, int]:
        """Return a gateway's counts and their revision; empty ones at revision 0 if there are none."""
        return self._counts.get(gateway, (_NO_COUNTS, 0))

    def holders(self) -> tuple[str, ...]:
        """Return the holders that have an entry."""
        return tuple(self._holders)

    @property
    def claims(self) -> Mapping[str, tuple[Claim, ...]]:
        """The open claims, by holder."""
        return MappingProxyType(self._claimed)

    def put_entry(self, holder: str, entry: HolderEntry, revision: int) -> None:
        """Apply a change of a holder's entry."""
        self._coming.subtract(claim.enters for claim in self._claimed.pop(holder, ()))
        if entry.claims:
            self._claimed[holder] = entry.claims
            self._coming.update(claim.enters for claim in entry.claims)
        self._holders[holder] = entry, revision

    def put_counts(self, gateway: str, counts: GatewayCounts, revision: int) -> None:
        """Apply a change of a gateway's counts."""
        self._counts[gateway] = counts, revision

    def inside(self, area_id: str) -> int:
        """Return how many are inside: the sum of the gateways' shares."""
        return sum(counts.inside.get(area_id, 0) for counts, _ in self._counts.values())

    def taken(self, area_id: str) -> int:
        """Return how many are inside or have a claim to come in."""
        return self.inside(area_id) + self._coming[area_id]

    def elsewhere(self, own: str) -> GatewayCounts:
        """Return the sums of the other gateways, and when any of them last opened an area."""
        inside: Counter[str] = Counter()
        opened: dict[str, int] = {}
        for gateway, (counts, _) in self._counts.items():
            if gateway != own:
                inside.update(counts.inside)
                opened |= {area: max(at, opened.get(area, 0)) for area, at in counts.opened.items()}
        return GatewayCounts(inside, opened)


_NO_ENTRY: Final = HolderEntry()
_NO_COUNTS: Final = GatewayCounts()
