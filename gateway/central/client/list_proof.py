"""Proof that a walk over one of central's lists was complete. Pure.

Records that a walk finds are always stored. Records that it lacks are removed only if the walk was complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LARGE_SHARE: Final = 0.2
"""A removal of more than this share of a list is large."""


class Tally:
    """Totals of one walk over a list, and the check that its pages agree.

    Attributes:
        ids: the ids of the records that came.
        without_id: how many records came without a usable id.
    """

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._received = 0
        self.without_id = 0
        self._counts: set[int | None] = set()
        self._fault = ""
        self.ids: set[int] = set()

    def take(self, ids: Sequence[int | None], count: int | None) -> tuple[int, ...]:
        """Count a page; return its ids that are new.

        `ids`: the id of every record, None for one without a usable id. `count`: the list's length, as the page says.
        """
        self._counts.add(count)
        self._received += len(ids)
        known = [found for found in ids if found is not None]
        self.without_id += len(ids) - len(known)
        fresh = tuple(found for found in dict.fromkeys(known) if found not in self.ids)
        self.ids.update(fresh)
        return fresh

    @property
    def count(self) -> int | None:
        """Number of records that the pages state; None when they state none, or different ones."""
        return next(iter(self._counts)) if len(self._counts) == 1 else None

    def fault(self, reason: str) -> None:
        """Note why the walk could not be brought to its end."""
        self._fault = reason

    @property
    def reached_end(self) -> bool:
        """True when the walk came to the end of the list, even if the list is not believed."""
        return not self._fault

    @property
    def problem(self) -> str:
        """Reason why this walk does not prove the whole list; "" when it does."""
        count = next(iter(self._counts), None)
        reasons = (
            (bool(self._fault), self._fault),
            (self.without_id > 0, f"{self.without_id} records without a usable id"),
            (len(self._counts) != 1, "the count changed from page to page"),
            (count is None, "no count"),
            (count != self._received, f"the count says {count}, but {self._received} came"),
            (self._received != len(self.ids), f"{self._received - len(self.ids)} records came twice"),
        )
        return next((f"{self._resource}: {reason}" for wrong, reason in reasons if wrong), "")


@dataclass(frozen=True, slots=True)
class Removal:
    """Verdict on cards that a complete walk did not find.

    Attributes:
        due: the cards that may be removed now.
        waiting: the cards that stay until the next complete walk misses them too.
    """

    due: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()


def is_large(*, known: int, missing: int) -> bool:
    """Return whether the list has shrunk so much that the list itself is probably wrong."""
    return missing > known * LARGE_SHARE


def judge_removal(*, many: bool, missing: frozenset[int], waited: frozenset[int]) -> Removal:
    """Decide which missing cards may be removed now: if they are `many`, only those that the last walk missed too.

    `waited` are those that the last walk missed.
    """
    if not many:
        return Removal(due=missing)
    return Removal(due=missing & waited, waiting=missing - waited)


def waiting_text(waiting: frozenset[int]) -> str:
    """Format the ids of cards that wait, for storage."""
    return ",".join(map(str, sorted(waiting)))


def read_waiting(text: str) -> frozenset[int]:
    """Parse what `waiting_text` wrote; return no cards for any other text."""
    numbers = text.split(",") if text else []
    return frozenset(map(int, numbers)) if all(number.isdecimal() for number in numbers) else frozenset()
