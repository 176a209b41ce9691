"""Ids of records written at central during a pull, because the pull may bring older versions of them."""

from __future__ import annotations


class RecentWrites:
    """Ids by kind of record, from the beginning of one pull to the beginning of the next."""

    def __init__(self) -> None:
        self._ids: dict[str, set[int]] = {}

    def begin(self, kind: str) -> set[int]:
        """Begin a pull of a kind. The returned set grows as records of that kind are written."""
        self._ids[kind] = set()
        return self._ids[kind]

    def note(self, kind: str, *record_ids: int) -> None:
        """Add records that were just written at central."""
        self._ids.setdefault(kind, set()).update(record_ids)
