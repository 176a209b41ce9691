"""Which records were written at central while a pull was under way: what the pull brings of them may be older."""

from __future__ import annotations


class RecentWrites:
    """Ids of records by kind, kept from the beginning of one pull to that of the next."""

    def __init__(self) -> None:
        self._ids: dict[str, set[int]] = {}

    def begin(self, kind: str) -> set[int]:
        """A pull of a kind begins; the set that is given grows as records are written."""
        self._ids[kind] = set()
        return self._ids[kind]

    def note(self, kind: str, *record_ids: int) -> None:
        """Central has just written these."""
        self._ids.setdefault(kind, set()).update(record_ids)
