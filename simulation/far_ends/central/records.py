"""Records of one kind in memory, by id, with both ways to read a list: pages and cursors."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import neg

from simulation.far_ends.central.answers import JsonObject, Refusal

Filter = Callable[[JsonObject], bool] | None
"""A function that returns whether a record matches; None matches all."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A part of a list: its records by descending id, the number of all matches, and where the next part begins."""

    records: list[JsonObject]
    count: int
    next_cursor: int | None


class Table(Mapping[int, JsonObject]):
    """The records by id. Ids grow and are never used twice."""

    def __init__(self, *, noun: str, first_id: int = 1) -> None:
        self._noun = noun
        self._rows: dict[int, JsonObject] = {}
        self.next_id = first_id
        self._newest_first: list[int] | None = None

    def __getitem__(self, record_id: int) -> JsonObject:
        return self._rows[record_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, record_id: int) -> JsonObject:
        """Return the record of that id. Raises Refusal (404)."""
        if record_id not in self._rows:
            raise Refusal(404, f"{self._noun} {record_id} not found")
        return self._rows[record_id]

    def add(self, record: JsonObject) -> JsonObject:
        """Store a new record under the next id; return it."""
        return self.put({**record, "id": self.next_id})

    def put(self, record: JsonObject) -> JsonObject:
        """Store a record that has an id already; return it."""
        record_id = record.get("id")
        if not isinstance(record_id, int):
            raise TypeError(f"{self._noun} without an integer id")
        if record_id not in self._rows:
            self._newest_first = None
        self._rows[record_id] = record
        self.next_id = max(self.next_id, record_id + 1)
        return record

    def change(self, record_id: int, changes: JsonObject) -> JsonObject:
        """Overwrite fields of a record. Raises Refusal (404)."""
        self._rows[record_id] = {**self.find(record_id), **changes}
        return self._rows[record_id]

    def remove(self, record_id: int) -> JsonObject:
        """Delete a record and return it. Raises Refusal (404)."""
        record = self.find(record_id)
        del self._rows[record_id]
        self._newest_first = None
        return record

    def page(self, matches: Filter, *, page: int, limit: int, shift: int = 0) -> Batch:
        """Return page `page` (from 1) of the matching records. Later pages are misplaced by `shift` records."""
        ids = self._matching(matches)
        start = (page - 1) * limit
        start = max(0, start + shift) if start else 0
        chosen = ids[start : start + limit]
        return self._batch(chosen, len(ids))

    def older_than(self, matches: Filter, *, cursor: int, limit: int, shift: int = 0) -> Batch:
        """Return the matching records below the cursor, misplaced by `shift` records."""
        ids = self._matching(matches)
        start = max(0, bisect_left(ids, -cursor + 1, key=neg) + shift)
        chosen = ids[start : start + limit]
        return self._batch(chosen, len(ids))

    def _matching(self, matches: Filter) -> list[int]:
        if self._newest_first is None:
            self._newest_first = sorted(self._rows, reverse=True)
        if matches is None:
            return self._newest_first
        return [record_id for record_id in self._newest_first if matches(self._rows[record_id])]

    def _batch(self, ids: list[int], count: int) -> Batch:
        return Batch([self._rows[record_id] for record_id in ids], count, ids[-1] if ids else None)
