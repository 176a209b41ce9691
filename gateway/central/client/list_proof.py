"""Proof that a walk over one of central's lists was complete. Pure.

Records that a walk finds are always stored. Records that it lacks are removed only if the walk was complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.central.client.answers import CentralFailed, JsonObject
from gateway.central.pull.field_map import record_id

LARGE_SHARE: Final = 0.2
"""A removal of more than this share of a list is large."""

Page = tuple[tuple[int, JsonObject], ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Content of one page of a list.

    Attributes:
        ids: the id of every record in the page's order; None for a record without a usable id.
        count: the number of records in the whole list, as the page says; None if it does not.
        records: the records with an id, by their ids; of several with the same id, the first.
    """

    ids: tuple[int | None, ...]
    count: int | None
    records: dict[int, JsonObject]


def read_listing(answer: JsonObject, resource: str) -> Listing | None:
    """Read the list of this name from an answer; None when it holds none."""
    listed = answer.get(resource)
    if not isinstance(listed, list):
        return None
    count = answer.get("count")
    ids: list[int | None] = []
    records: dict[int, JsonObject] = {}
    for record in listed:
        found = record_id(record) if isinstance(record, dict) else None
        ids.append(found)
        if found is not None and isinstance(record, dict):
            records.setdefault(found, record)
    return Listing(tuple(ids), count if isinstance(count, int) and not isinstance(count, bool) else None, records)


@dataclass(frozen=True, slots=True)
class Met:
    """Content of a page that an earlier walk had: its records' ids, each once, and the count that it stated."""

    ids: tuple[int, ...]
    count: int | None


class Tally:
    """Totals of one walk over a list, and the check that its pages agree."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._received = 0
        self._without_id = 0
        self._counts: set[int | None] = set()
        self.last_count: int | None = None
        self._fault = ""
        self.ids: set[int] = set()

    def take(self, answer: JsonObject) -> Page:
        """Count a page; return its records that are new, with their ids.

        Raises CentralFailed when the answer holds no list of records.
        """
        listing = read_listing(answer, self._resource)
        if listing is None:
            raise CentralFailed(f"central's answer has no list '{self._resource}'")
        return tuple((found, listing.records[found]) for found in self.take_ids(listing.ids, listing.count))

    def take_ids(self, ids: Sequence[int | None], count: int | None) -> tuple[int, ...]:
        """Count a page that was parsed elsewhere; return its ids that are new.

        `ids`: the id of every record, None for one without a usable id. `count`: the list's length, as the page says.
        """
        self.last_count = count
        self._counts.add(count)
        self._received += len(ids)
        known = [found for found in ids if found is not None]
        self._without_id += len(ids) - len(known)
        fresh = tuple(found for found in dict.fromkeys(known) if found not in self.ids)
        self.ids.update(fresh)
        return fresh

    def again(self, met: Met) -> tuple[int, ...]:
        """Count a page that an earlier walk had; return its ids that are new in this walk."""
        self._counts.add(met.count)
        self._received += len(met.ids)
        fresh = tuple(found for found in met.ids if found not in self.ids)
        self.ids.update(fresh)
        return fresh

    @property
    def received(self) -> int:
        """Number of records that came, duplicates included."""
        return self._received

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
            (self._without_id > 0, f"{self._without_id} records without a usable id"),
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
