"""Refused rows of the outbox: a person lists, retries, edits or drops them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from gateway.domain.errors import CommandRefused
from gateway.domain.events import Event
from gateway.domain.writes import FIRST_PROVISIONAL_ID, JsonObject
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database
from gateway.store.events.events import insert_event
from gateway.store.outbox.outbox import FILES
from gateway.store.outbox.record_kinds import RECORD_KINDS
from gateway.store.outbox.rows import COLUMNS, OutboxRow, as_row, outbox_rows, rewrite, row_of, take_out, try_again

_MOST_REASONS = 20
_MADE_BY_PEOPLE = frozenset({"access_card", "device", "camera"})
"""Kinds of which a record that central will never have is deleted here too."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why rows wait.

    Attributes:
        kind: the kind of their records.
        action: their operation.
        error: the error of their last attempt, "" for rows without an attempt.
        count: the number of rows.
        since: since when the oldest of them waits (wall micros).
    """

    kind: str
    action: str
    error: str
    count: int
    since: int


class RefusedRows:
    """The outbox as a person sees it: parked rows, which are refused or of unknown outcome, and waiting rows.

    Methods that take a row's id raise NotFoundError if there is no such row (any more), and StoreError. Those that
    change a row also raise CommandRefused if the row is not parked. An action and its event are one commit.
    """

    def __init__(self, *, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes

    async def page(
        self, *, after: int = 0, limit: int = 100, refused: bool = True, kind: str = ""
    ) -> tuple[OutboxRow, ...]:
        """Return the next rows with an id above `after`, by id. `refused`: only parked ones; `kind`: "" for any."""
        which = ("parked = 1 AND " if refused else "") + ("kind = ? AND" if kind else "")
        given = (kind, after, limit) if kind else (after, limit)

        def query(connection: sqlite3.Connection) -> tuple[OutboxRow, ...]:
            rows = connection.execute(f"SELECT {COLUMNS} FROM outbox WHERE {which} id > ? ORDER BY id LIMIT ?", given)
            return tuple(as_row(row) for row in rows)

        return await self._database.read(query)

    async def get(self, row_id: int) -> OutboxRow:
        """Return one row, parked or waiting."""
        return await self._database.read(lambda connection: row_of(connection, row_id))

    async def reasons(self) -> tuple[Reason, ...]:
        """Return the reasons why rows that are not parked still wait, the most frequent first; at most 20.

        This reads the whole outbox, so it is only for a person's request.
        """

        def query(connection: sqlite3.Connection) -> tuple[Reason, ...]:
            rows = connection.execute(
                "SELECT kind, action, error, count(*), min(created_at) FROM outbox WHERE parked = 0"
                " GROUP BY kind, action, error ORDER BY count(*) DESC, min(id) LIMIT ?",
                (_MOST_REASONS,),
            )
            return tuple(Reason(*row) for row in rows)

        return await self._database.read(query)

    async def retry(self, row_id: int, event: Event) -> OutboxRow:
        """Make a parked row due at once, unchanged and under the same key; return it as it was."""

        def job(connection: sqlite3.Connection) -> OutboxRow:
            row = _refused(connection, row_id)
            try_again(connection, row_id)
            insert_event(connection, event)
            return row

        return await self._database.write(job, then=self._changes.bump)

    async def edit(self, row_id: int, body: JsonObject, event: Event, *, key: str) -> OutboxRow:
        """Make a parked row due at once with another body; return the row as it was.

        `key`: the key of the row from which the new body was made. If the row has another key by now, somebody else has
        changed it. Raises CommandRefused for that, for rows of files and for rows of unknown outcome.
        """

        def job(connection: sqlite3.Connection) -> OutboxRow:
            row = _refused(connection, row_id)
            if row.key != key:
                raise CommandRefused(f"number {row_id} was changed by somebody else just now: look at it again")
            if row.kind == FILES:
                raise CommandRefused("a file has no fields to edit: send it again, or drop it")
            if row.begun:
                raise CommandRefused("it is not known whether central already has it: settle that first")
            rewrite(connection, row_id, body)
            try_again(connection, row_id)
            insert_event(connection, event)
            return row

        return await self._database.write(job, then=self._changes.bump)

    async def drop(self, row_id: int, event: Event) -> tuple[OutboxRow, bool]:
        """Drop a parked row; with a create, also all later rows of its record.

        Return the row, and whether its record was deleted too. That is so for a card, device or camera that was made
        here and that central now never gets. Entries, camera events and files stay.
        """

        def job(connection: sqlite3.Connection) -> tuple[OutboxRow, bool]:
            row = _refused(connection, row_id)
            behind = outbox_rows(connection, row.kind, row.record_id) if row.action == "create" else (row,)
            take_out(connection, (item.id for item in behind if item.id >= row_id), "dropped")
            gone = row.action == "create" and row.kind in _MADE_BY_PEOPLE and row.record_id >= FIRST_PROVISIONAL_ID
            if gone:
                RECORD_KINDS[row.kind].remove(connection, row.record_id)
            insert_event(connection, event)
            return row, gone

        return await self._database.write(job, then=self._changes.bump)


def _refused(connection: sqlite3.Connection, row_id: int) -> OutboxRow:
    row = row_of(connection, row_id)
    if not row.parked:
        raise CommandRefused(f"number {row_id} goes up by itself: central has not refused it")
    return row
