"""Rows that may have reached central though nobody heard so: what they are judged by, and what becomes of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from gateway.domain.errors import CommandRefused
from gateway.domain.events import Event
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database
from gateway.store.events.events import insert_event
from gateway.store.outbox.record_kinds import IDS
from gateway.store.outbox.rows import OutboxRow, free_waiting, listed_rows, row_of, try_again

_CARD = "access_card"
MOST_TOGETHER = 200
"""So many creates share one search at the most: each page is compared with each of them."""


class UnknownOutcomes:
    """Known ids of central's, and the rows of which nobody knows whether central has them.

    Such a row waits for its next look, or for a person: then it is parked like one that central refused, but `begun`.
    """

    def __init__(self, *, database: Database, cards: Database, changes: Changes) -> None:
        self._database = database
        self._cards = cards
        self._changes = changes

    async def given(self, kind: str, *, most: int = 3) -> tuple[int, ...]:
        """Return the newest ids that central is known to have given to records of this site."""
        return await self._database.read(lambda connection: IDS[kind].given(connection, most))

    async def is_given(self, kind: str, central_id: int) -> bool:
        """Return whether an id of central's belongs to a record that went up from this site."""
        return await self._database.read(lambda connection: IDS[kind].is_given(connection, central_id))

    async def given_among(self, kind: str, central_ids: Collection[int]) -> frozenset[int]:
        """Return those of central's ids that belong to records of this site."""
        return await self._database.read(lambda connection: frozenset(IDS[kind].owners(connection, tuple(central_ids))))

    async def was_here(self, kind: str, central_id: int, before: int) -> bool:
        """Return whether the site had a record of central's before a moment (wall micros), so before a later write.

        That the record has changed since makes it as good as new.
        """
        if kind not in {_CARD, "device", "camera"}:
            return False
        table, database = ("card", self._cards) if kind == _CARD else (kind, self._database)
        return await database.read(
            lambda connection: (
                connection.execute(
                    f"SELECT 1 FROM {table} WHERE id = ? AND updated_at < ?", (central_id, before)
                ).fetchone()
                is not None
            )
        )

    async def begun_creates(self, kind: str) -> tuple[OutboxRow, ...]:
        """Return the oldest waiting creates of a kind that central may have carried out, at most `MOST_TOGETHER`."""
        return await self._database.read(
            lambda connection: listed_rows(
                connection,
                "SELECT * FROM outbox INDEXED BY outbox_waiting WHERE parked = 0 AND begun = 1 AND kind = ?"
                " AND action = 'create' ORDER BY id LIMIT ?",
                (kind, MOST_TOGETHER),
            )
        )

    async def look_later(self, row: OutboxRow, *, reason: str, next_at: int) -> None:
        """Put off the next look to `next_at` (wall micros). A look is no try of sending."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET next_at = ?, error = ? WHERE id = ?", (next_at, reason, row.id)
            )
        )

    async def leave_to_a_person(self, row: OutboxRow, *, reason: str) -> bool:
        """Park a row that looking did not settle: a person decides. Return whether it was still there."""

        def job(connection: sqlite3.Connection) -> int:
            free_waiting(connection, (row.id,))
            return connection.execute("UPDATE outbox SET parked = 1, error = ? WHERE id = ?", (reason, row.id)).rowcount

        parked = await self._database.write(job)
        self._changes.bump()
        return parked > 0

    async def send_unseen(self, row_id: int, event: Event) -> OutboxRow:
        """Send a row again, under its key: a person says that central does not have it.

        Raises NotFoundError, CommandRefused for a row that does not wait for that, StoreError.
        """

        def job(connection: sqlite3.Connection) -> OutboxRow:
            row = unknown_row(connection, row_id)
            connection.execute("UPDATE outbox SET begun = 0 WHERE id = ?", (row_id,))
            try_again(connection, row_id)
            insert_event(connection, event)
            return row

        return await self._database.write(job, then=self._changes.bump)

    async def take_as(self, row_id: int, central_id: int, event: Event) -> OutboxRow:
        """Note the id under which central has it, as a person says: it counts as delivered when its turn comes.

        Raises as `send_unseen`, also for an id that belongs to another record of the site.
        """

        def job(connection: sqlite3.Connection) -> OutboxRow:
            row = unknown_row(connection, row_id)
            ids = IDS.get(row.kind)
            if (ids is not None and ids.is_given(connection, central_id)) or _is_stated(connection, row, central_id):
                raise CommandRefused(f"central's {row.kind} {central_id} is another one of this site")
            connection.execute("UPDATE outbox SET stated_id = ? WHERE id = ?", (central_id, row_id))
            try_again(connection, row_id)
            insert_event(connection, event)
            return row

        return await self._database.write(job, then=self._changes.bump)


def unknown_row(connection: sqlite3.Connection, row_id: int) -> OutboxRow:
    """Return a row that waits for a person to say whether central has it. Raises NotFoundError, CommandRefused."""
    row = row_of(connection, row_id)
    if not (row.parked and row.begun):
        why = "central has refused it" if row.parked else "it goes up by itself"
        raise CommandRefused(f"number {row_id} has nothing to settle: {why}")
    return row


def _is_stated(connection: sqlite3.Connection, row: OutboxRow, central_id: int) -> bool:
    """Return whether a person has said of another row that it is this record."""
    stated = connection.execute(
        "SELECT 1 FROM outbox WHERE kind = ? AND stated_id = ? AND id <> ?", (row.kind, central_id, row.id)
    )
    return stated.fetchone() is not None
