"""The tables of a store that the sender of evidence takes."""

from __future__ import annotations

from gateway.store import Store


def tables_of_evidence(store: Store) -> dict[str, object]:
    """Return the tables by the names of the sender's arguments."""
    names = ("evidence", "outbox", "unknown_outcomes", "pending_writes", "journal", "changes")
    return {name: getattr(store, name) for name in names}
