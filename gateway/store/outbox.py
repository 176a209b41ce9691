"""The outbox: what must go up to central, kept until central has it, with books that balance at every commit."""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass

from gateway.store.database import Database

_COLUMNS = "id, key, kind, record_id, body, created_at, tries, next_at, parked, error"
_FIRST_OF_RECORD = (
    "NOT EXISTS (SELECT 1 FROM outbox AS earlier WHERE earlier.kind = outbox.kind"
    " AND earlier.record_id = outbox.record_id AND earlier.id < outbox.id)"
)


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One thing to send. `key` is the same over all tries; `next_at` is wall micros."""

    id: int
    key: str
    kind: str
    record_id: int
    body: str
    created_at: int
    tries: int
    next_at: int
    parked: bool
    error: str


@dataclass(frozen=True, slots=True)
class Books:
    """accepted = delivered + dropped + waiting + parked."""

    accepted: int
    delivered: int
    dropped: int
    waiting: int
    parked: int

    def balance(self) -> bool:
        """Whether nothing is missing and nothing is there twice."""
        return self.accepted == self.delivered + self.dropped + self.waiting + self.parked


def insert_outbox(connection: sqlite3.Connection, *, kind: str, record_id: int, body: str, now: int) -> int:
    """Accept something for sending, within a running transaction."""
    cursor = connection.execute(
        "INSERT INTO outbox (key, kind, record_id, body, created_at, next_at) VALUES (?, ?, ?, ?, ?, 0)",
        (secrets.token_urlsafe(18), kind, record_id, body, now),
    )
    connection.execute("UPDATE book SET count = count + 1 WHERE name = 'accepted'")
    return int(cursor.lastrowid or 0)


class Outbox:
    """Rows on their way to central."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def due(self, *, now: int, limit: int = 50) -> tuple[OutboxRow, ...]:
        """Rows to try now, oldest first: of each record only its oldest, so that one parked holds those behind it."""

        def query(connection: sqlite3.Connection) -> tuple[OutboxRow, ...]:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM outbox INDEXED BY outbox_waiting WHERE parked = 0 AND next_at <= ?"
                f" AND {_FIRST_OF_RECORD} ORDER BY id LIMIT ?",
                (now, limit),
            ).fetchall()
            return tuple(_row(row) for row in rows)

        return await self._database.read(query)

    async def next_due(self) -> int | None:
        """When the earliest row may be tried (wall micros), or None when none will be.

        Rows behind another of the same record do not count: they are not due before that one has gone.
        """

        def query(connection: sqlite3.Connection) -> int | None:
            row = connection.execute(
                f"SELECT next_at FROM outbox INDEXED BY outbox_due WHERE parked = 0 AND {_FIRST_OF_RECORD}"
                " ORDER BY next_at LIMIT 1"
            ).fetchone()
            return None if row is None else int(row[0])

        return await self._database.read(query)

    async def delivered(self, row: OutboxRow, *, central_id: int | None) -> None:
        """Central has it: the row goes, and the record learns its central id, in one commit."""

        def job(connection: sqlite3.Connection) -> None:
            gone = connection.execute("DELETE FROM outbox WHERE id = ?", (row.id,)).rowcount
            connection.execute("UPDATE book SET count = count + ? WHERE name = 'delivered'", (gone,))
            if row.kind == "camera_event" and central_id is not None:
                connection.execute(
                    "UPDATE OR IGNORE camera_event SET central_id = ? WHERE id = ?", (central_id, row.record_id)
                )

        await self._database.write(job)

    async def failed(self, row: OutboxRow, *, error: str, next_at: int) -> None:
        """Central could not take it; tried again from `next_at` (wall micros) on."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET tries = tries + 1, next_at = ?, error = ? WHERE id = ?", (next_at, error, row.id)
            )
        )

    async def park(self, row: OutboxRow, *, error: str) -> None:
        """Central refused it: it waits for a person, and so do later rows of the same record."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET tries = tries + 1, parked = 1, error = ? WHERE id = ?", (error, row.id)
            )
        )

    async def retry_now(self) -> None:
        """Central is back: whatever waits may be tried at once."""
        await self._database.write(
            lambda connection: connection.execute("UPDATE outbox SET next_at = 0 WHERE parked = 0 AND next_at > 0")
        )

    async def books(self) -> Books:
        """The books at one moment."""

        def query(connection: sqlite3.Connection) -> Books:
            counts = dict(connection.execute("SELECT name, count FROM book"))
            waiting, parked = connection.execute(
                "SELECT count(*) FILTER (WHERE parked = 0), count(*) FILTER (WHERE parked = 1) FROM outbox"
            ).fetchone()
            return Books(
                accepted=counts["accepted"],
                delivered=counts["delivered"],
                dropped=counts["dropped"],
                waiting=waiting,
                parked=parked,
            )

        return await self._database.read(query)


def _row(row: tuple[int, str, str, int, str, int, int, int, int, str]) -> OutboxRow:
    return OutboxRow(
        id=row[0],
        key=row[1],
        kind=row[2],
        record_id=row[3],
        body=row[4],
        created_at=row[5],
        tries=row[6],
        next_at=row[7],
        parked=bool(row[8]),
        error=row[9],
    )
