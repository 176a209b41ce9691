"""What a technician wants fetched anew: on disk until the whole of it was looked at, however often that breaks off."""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal, get_args

from gateway.store import Store

Part = Literal["access cards", "devices", "cameras"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)

_NAME = "to_fetch_anew"
_MOST_DOUBTFUL = 5


class Refresh:
    """The parts that are still to be fetched anew. Every method raises StoreError, and has changed nothing then."""

    def __init__(self, *, store: Store) -> None:
        self._store = store
        self._left: tuple[Part, ...] = ()
        self._doubtful: Counter[Part] = Counter()

    @property
    def left(self) -> tuple[Part, ...]:
        """What is still to be fetched, in the order in which it is."""
        return self._left

    async def recall(self) -> None:
        """What was left at the last stop."""
        noted = (await self._store.cards.remembered(_NAME) or "").split(",")
        self._left = tuple(part for part in PARTS if part in noted or part in self._left)

    async def ask(self) -> None:
        """Everything, from now on."""
        await self._keep(PARTS)
        self._doubtful.clear()

    async def fetched(self, part: Part, *, problem: str = "") -> None:
        """Central's list was walked. `problem`: it cannot be believed, and is walked once more, but not for ever."""
        if problem and self._doubtful[part] + 1 < _MOST_DOUBTFUL:
            self._doubtful[part] += 1
            return
        await self._keep(tuple(other for other in self._left if other != part))

    async def _keep(self, left: tuple[Part, ...]) -> None:
        await self._store.cards.remember(_NAME, ",".join(left))
        self._left = left
        self._store.changes.bump()
