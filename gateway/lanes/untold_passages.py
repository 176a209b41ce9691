"""Passages through shared areas that the other gateways do not know yet, and those that were told lately. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import Final

from gateway.domain.shared_areas import HolderEntry, Step

_REMEMBERED: Final = 256


class UntoldPassages:
    """Passages to tell, by the holder's name among the gateways.

    A passage is told only after the counts that have it: for a moment one too many is counted, never one too few.
    Servers that die together may lose what they acknowledged, so the last passages that were told are compared again.
    """

    def __init__(self) -> None:
        self._steps: dict[str, tuple[Step, ...]] = {}
        self._lately: deque[tuple[str, Step]] = deque(maxlen=_REMEMBERED)
        self._made_apart: set[Step] = set()
        self.uncounted: set[Step] = set()

    def __len__(self) -> int:
        return sum(map(len, self._steps.values()))

    def of(self, name: str) -> tuple[Step, ...]:
        """Return a holder's passages that are to be told."""
        return self._steps.get(name, ())

    def names(self) -> set[str]:
        """Return the holders who have passages that are to be told, or were told lately."""
        return {*self._steps, *(name for name, _ in self._lately)}

    def add(self, name: str, step: Step, *, made_apart: bool) -> None:
        """Add a passage. `made_apart`: the other gateways could not be asked when it was made."""
        self._steps[name] = (*self.of(name), step)
        self.uncounted.add(step)
        if made_apart:
            self._made_apart.add(step)

    def was_apart(self, steps: Iterable[Step]) -> bool:
        """Return whether one of these was made while the other gateways could not be asked."""
        return not self._made_apart.isdisjoint(steps)

    def put_back(self, name: str, entry: HolderEntry) -> None:
        """Tell passages again that were acknowledged, and that the holder's entry lacks."""
        waiting = self.of(name)
        lost = [step for other, step in self._lately if other == name and step not in waiting and entry.lacks(step)]
        if lost:
            self._steps[name] = (*waiting, *lost)

    def told(self, name: str, steps: Collection[Step]) -> None:
        """Take out passages that were acknowledged, or that the entry has or is too full for."""
        self._lately.extend((name, step) for step in steps)
        self._made_apart.difference_update(steps)
        left = tuple(step for step in self._steps.pop(name, ()) if step not in steps)
        if left:
            self._steps[name] = left
