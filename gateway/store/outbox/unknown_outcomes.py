"""Rows of unknown outcome: they may have reached central, but no answer came. Lookups and steps to settle them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from gateway.domain.errors import CommandRefused
from gateway.domain.events import Event
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database
from gateway.store.events.events import insert_event
from gateway.store.outbox.record_kinds import RECORD_KINDS
from gateway.store.outbox.rows import OutboxRow, free_waiting, listed_rows, row_of, try_again

_CARD = "access_card"
MOST_TOGETHER = 200
"""The greatest number of creates that share one search, because each page is compared with each of them."""


class UnknownOutcomes:
    """The rows of unknown outcome, and the ids that central is known to have given.

    Such a row waits for the next look at central, or for a person. In the latter case it is parked like a refused row,
    but marked as `begun`.
    """

    def __init__(self, *, database: Database, cards: Database, changes: Changes) -> None:
        self._database = database
        self._cards = cards
        self._changes = changes

    async def given(self, kind: str, *, most: int = 3) -> tuple[int, ...]:
        """Return the newest ids that central is known to have given to records of this site, the highest first."""
        return await self._database.read(lambda connection: RECORD_KINDS[kind].given(connection, most))

    async def given_among(self, kind: str, central_ids: Collection[int]) -> frozenset[int]:
        """Return those of these ids that central gave to records of this site."""
        ids = RECORD_KINDS[kind]
        return await self._database.read(lambda connection: frozenset(ids.owners(connection, tuple(central_ids))))

    async def was_here(self, kind: str, central_id: int, before: int) -> bool:
        """Return whether the site had this record of central before `before` (wall micros) and unchanged since.

        Such a record cannot be the result of a write after that time.
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
        """Put off the next look at central to `next_at` (wall micros). This does not count as a failed attempt."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET next_at = ?, error = ? WHERE id = ?", (next_at, reason, row.id)
            )
        )

    async def leave_to_a_person(self, row: OutboxRow, *, reason: str) -> bool:
        """Park a row whose outcome could not be found, for a person to decide. Return whether it still existed."""

        def job(connection: sqlite3.Connection) -> int:
            free_waiting(connection, (row.id,))
            return connection.execute("UPDATE outbox SET parked = 1, error = ? WHERE id = ?", (reason, row.id)).rowcount

        parked = await self._database.write(job)
        self._changes.bump()
        return parked > 0

    async def send_unseen(self, row_id: int, event: Event) -> OutboxRow:
        """Send a row again under its key, because a person stated that central does not have it.

        Raises NotFoundError, StoreError, and CommandRefused for a row that does not wait for such a statement.
        """

        def job(connection: sqlite3.Connection) -> OutboxRow:
            row = unknown_row(connection, row_id)
            connection.execute("UPDATE outbox SET begun = 0 WHERE id = ?", (row_id,))
            try_again(connection, row_id)
            insert_event(connection, event)
            return row

        return await self._database.write(job, then=self._changes.bump)

    async def take_as(self, row_id: int, central_id: int, event: Event) -> OutboxRow:
        """Store the id under which central has a row's record, as a person stated; the row then counts as delivered.

        Raises NotFoundError, StoreError, and CommandRefused for a row that does not wait for such a statement or an id
        that belongs to another record of the site.
        """

        def job(connection: sqlite3.Connection) -> OutboxRow:
            row = unknown_row(connection, row_id)
            ids = RECORD_KINDS.get(row.kind)
            if (ids is not None and ids.is_given(connection, central_id)) or _is_stated(connection, row, central_id):
                raise CommandRefused(f"central's {row.kind} {central_id} is another one of this site")
            connection.execute("UPDATE outbox SET stated_id = ? WHERE id = ?", (central_id, row_id))
            try_again(connection, row_id)
            insert_event(connection, event)
            return row

        return await self._database.write(job, then=self._changes.bump)


def unknown_row(connection: sqlite3.Connection, row_id: int) -> OutboxRow:
    """Return a row that waits for a person to state whether central has it.

    Raises NotFoundError for an unknown row, CommandRefused for one that does not wait for that.
    """
    row = row_of(connection, row_id)
    if not (row.parked and row.begun):
        why = "central has refused it" if row.parked else "it goes up by itself"
        raise CommandRefused(f"number {row_id} has nothing to settle: {why}")
    return row


def _is_stated(connection: sqlite3.Connection, row: OutboxRow, central_id: int) -> bool:
    """Return whether a person has stated this id of central for another row."""
    stated = connection.execute(
        "SELECT 1 FROM outbox WHERE kind = ? AND stated_id = ? AND id <> ?", (row.kind, central_id, row.id)
    )
    return stated.fetchone() is not None
