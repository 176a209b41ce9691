"""Rows of the outbox that do not go on by themselves: refused by central, or of unknown outcome.

A refused row waits for a person, who retries, edits or drops it. A row of unknown outcome may have reached central
though no answer came: the record is looked for, and the row is settled by what is found.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass

from gateway.domain.errors import CommandRefused
from gateway.domain.events import Event
from gateway.domain.writes import FIRST_PROVISIONAL_ID, JsonObject
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database
from gateway.store.events.events import insert_event
from gateway.store.outbox.outbox import FILES
from gateway.store.outbox.record_kinds import RECORD_KINDS
from gateway.store.outbox.rows import (
    COLUMNS,
    OutboxRow,
    as_row,
    free_waiting,
    listed_rows,
    outbox_rows,
    rewrite,
    row_of,
    take_out,
    try_again,
)
from gateway.texts import text

_MOST_REASONS = 20
_MADE_BY_PEOPLE = frozenset({"access_card", "device", "camera"})
"""Kinds of which a record that central will never have is deleted here too."""

_CARD = "access_card"
MOST_TOGETHER = 200
"""The greatest number of creates that share one search, because each page is compared with each of them."""


@dataclass(frozen=True, slots=True)
class WaitReason:
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

    async def reasons(self) -> tuple[WaitReason, ...]:
        """Return the reasons why rows that are not parked still wait, the most frequent first; at most 20.

        This reads the whole outbox, so it is only for a person's request.
        """

        def query(connection: sqlite3.Connection) -> tuple[WaitReason, ...]:
            rows = connection.execute(
                "SELECT kind, action, error, count(*), min(created_at) FROM outbox WHERE parked = 0"
                " GROUP BY kind, action, error ORDER BY count(*) DESC, min(id) LIMIT ?",
                (_MOST_REASONS,),
            )
            return tuple(WaitReason(*row) for row in rows)

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
                raise CommandRefused(text("refused.row_changed", number=str(row_id)))
            if row.kind == FILES:
                raise CommandRefused(text("refused.file_edited"))
            if row.begun:
                raise CommandRefused(text("refused.row_unsettled"))
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
        raise CommandRefused(text("refused.row_not_refused", number=str(row_id)))
    return row


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
        raise CommandRefused(text("refused.nothing_to_settle", number=str(row_id), why=why))
    return row


def _is_stated(connection: sqlite3.Connection, row: OutboxRow, central_id: int) -> bool:
    """Return whether a person has stated this id of central for another row."""
    stated = connection.execute(
        "SELECT 1 FROM outbox WHERE kind = ? AND stated_id = ? AND id <> ?", (row.kind, central_id, row.id)
    )
    return stated.fetchone() is not None
