"""When a walk over one of central's lists may be believed. Pure.

What a walk brings may always be taken over; what it does not bring is removed only when the walk was whole.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from gateway.sync.answers import CentralFailed, JsonObject
from gateway.sync.field_map import record_id

LARGE_SHARE: Final = 0.2
"""A removal of more than this share of the cards is large."""

Page = tuple[tuple[int, JsonObject], ...]


class Tally:
    """What one walk over a list has brought so far, and whether its pages agree with each other."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._received = 0
        self._without_id = 0
        self._counts: set[int | None] = set()
        self._fault = ""
        self.ids: set[int] = set()

    def take(self, answer: JsonObject) -> Page:
        """The records of a page that were not there before, with their ids.

        Raises CentralFailed when the answer holds no list of records.
        """
        records = answer.get(self._resource)
        if not isinstance(records, list):
            raise CentralFailed(f"central's answer has no list {self._resource!r}")
        count = answer.get("count")
        self._counts.add(count if isinstance(count, int) and not isinstance(count, bool) else None)
        self._received += len(records)
        page: list[tuple[int, JsonObject]] = []
        for record in records:
            found = record_id(record) if isinstance(record, dict) else None
            if found is None or not isinstance(record, dict):
                self._without_id += 1
            elif found not in self.ids:
                self.ids.add(found)
                page.append((found, record))
        return tuple(page)

    def fault(self, reason: str) -> None:
        """The walk could not be brought to its end."""
        self._fault = reason

    @property
    def problem(self) -> str:
        """Why this walk does not show the whole list; "" when it does."""
        count = next(iter(self._counts), None)
        reasons = (
            (bool(self._fault), self._fault),
            (self._without_id > 0, f"{self._without_id} records without a usable id"),
            (len(self._counts) != 1, "the count changed from page to page"),
            (count is None, "no count"),
            (count != self._received, f"the count says {count}, but {self._received} came"),
            (self._received != len(self.ids), f"{self._received - len(self.ids)} records came twice"),
        )
        return next((f"{self._resource}: {reason}" for wrong, reason in reasons if wrong), "")


@dataclass(frozen=True, slots=True)
class Removal:
    """What is to become of cards that two agreeing walks did not bring.

    Attributes:
        remove: these go now.
        pending: the mark of a large removal that waits for the next pull; "" for none.
        held_back: how many cards wait with it.
    """

    remove: frozenset[int] = frozenset()
    pending: str = ""
    held_back: int = 0


def judge_removal(*, known: int, missing: frozenset[int], pending: str) -> Removal:
    """A large removal waits until the next pull asks for exactly the same one; `pending` is the mark that waits."""
    if len(missing) <= known * LARGE_SHARE:
        return Removal(remove=missing)
    mark = hashlib.sha256(",".join(map(str, sorted(missing))).encode()).hexdigest()[:32]
    return Removal(remove=missing) if mark == pending else Removal(pending=mark, held_back=len(missing))
