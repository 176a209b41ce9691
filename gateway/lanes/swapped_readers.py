"""Detection of swapped readers: a card comes at one lane while the only vehicle that waits is at another. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

_TIMES = 2
"""Once may be chance: a person on foot tries a card while a vehicle waits elsewhere."""


@dataclass(frozen=True, slots=True)
class CardsElsewhere:
    """Cards in a row that came at one lane while a vehicle waited at another.

    Attributes:
        known: by the lane of the card, the lane of the vehicle and how often in a row.
    """

    known: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def after(self, lane_id: str, *, has_vehicle: bool, waiting: Collection[str]) -> CardsElsewhere:
        """Return this after a card at a lane.

        Args:
            lane_id: the lane.
            has_vehicle: whether a vehicle stood there.
            waiting: the other lanes where a vehicle waits and nothing was read.
        """
        others = {one: seen for one, seen in self.known.items() if one != lane_id}
        before, times = self.known.get(lane_id, ("", 0))
        if has_vehicle or not waiting:
            return CardsElsewhere(others)
        if len(waiting) > 1 and before not in waiting:
            return self
        there = before if before in waiting else next(iter(waiting))
        return CardsElsewhere({**others, lane_id: (there, times + 1 if there == before else 1)})

    def found(self) -> Iterator[tuple[str, str, int]]:
        """Yield the lane of the cards, the lane of the vehicles, and how often, where it is no chance."""
        yield from ((lane, there, times) for lane, (there, times) in self.known.items() if times >= _TIMES)
