"""The outbox: what must go up to central, kept until central has it, with books that balance at every commit."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from gateway.domain.writes import WRITES, Effect, JsonObject, WaitingWrite, laid_over
from gateway.store.database import Database
from gateway.store.keepers import IDS, KEEPERS
from gateway.store.recent import RecentWrites

_COLUMNS = "id, key, kind, record_id, body, created_at, tries, next_at, parked, error, action, begun"
_BODY = TypeAdapter(JsonObject)
FILES = "evidence"
"""Rows of files: they go up beside all others, which must not wait for them."""
_OF_THE_SITE = "camera_event"
"""What is proven by footage stays here whether or not central still has it; only a person deletes it."""
_FIRST_OF_RECORD = (
    "NOT EXISTS (SELECT 1 FROM outbox AS earlier WHERE earlier.kind = outbox.kind"
    " AND earlier.record_id = outbox.record_id AND earlier.id < outbox.id"
    " AND (earlier.parked = 0 OR earlier.action = 'create'))"
)
"""A refused change holds up nothing. A refused create does: central has no record that could be changed."""


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One thing to send. `key` is the same over all tries; `next_at` is wall micros.

    `kind` and `action` name the operation; `begun` says that it may have reached central already.
    """

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
    action: str = "create"
    begun: bool = False


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


def new_key() -> str:
    """A key that stays over all tries of a write."""
    return secrets.token_urlsafe(18)


def insert_outbox(
    connection: sqlite3.Connection,
    *,
    kind: str,
    record_id: int,
    body: str,
    now: int,
    action: str = "create",
    key: str = "",
    begun: bool = False,
    asked: bool = False,
) -> int:
    """Accept something for sending, within a running transaction. `asked`: a person or a program wrote it."""
    asked_bytes = len(body.encode()) if asked else 0
    cursor = connection.execute(
        "INSERT INTO outbox (key, kind, record_id, body, created_at, next_at, action, begun, asked_bytes)"
        " VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?)",
        (key or new_key(), kind, record_id, body, now, action, begun, asked_bytes),
    )
    connection.execute("UPDATE book SET count = count + 1 WHERE name = 'accepted'")
    return int(cursor.lastrowid or 0)


class Outbox:
    """Rows on their way to central."""

    def __init__(self, *, database: Database, recent: RecentWrites) -> None:
        self._database = database
        self._recent = recent

    async def due(self, *, now: int, limit: int = 50) -> tuple[OutboxRow, ...]:
        """Rows to try now, oldest first: of each record only its oldest that is not a refused change.

        Rows of files are not among them.
        """

        def query(connection: sqlite3.Connection) -> tuple[OutboxRow, ...]:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM outbox INDEXED BY outbox_waiting WHERE parked = 0 AND next_at <= ?"
                f" AND kind <> '{FILES}' AND {_FIRST_OF_RECORD} ORDER BY id LIMIT ?",
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
                f"SELECT next_at FROM outbox INDEXED BY outbox_due WHERE parked = 0 AND kind <> '{FILES}'"
                f" AND {_FIRST_OF_RECORD} ORDER BY next_at LIMIT 1"
            ).fetchone()
            return None if row is None else int(row[0])

        return await self._database.read(query)

    async def begin(self, row: OutboxRow) -> bool:
        """Note that the row may reach central from now on; False when it was taken back meanwhile."""
        if row.begun:
            return True

        def job(connection: sqlite3.Connection) -> bool:
            return connection.execute("UPDATE outbox SET begun = 1 WHERE id = ?", (row.id,)).rowcount > 0

        return await self._database.write(job)

    async def delivered(
        self, row: OutboxRow, *, central_id: int | None, record: JsonObject | None = None, now: int = 0
    ) -> int:
        """Central has it: the row goes, and the record learns its central id, in one commit.

        Rows that wait for the same record go by its new id from then on.

        Args:
            row: what was sent.
            central_id: the id that central gave to a new record, None when it does not say.
            record: central's own words of the record, None when it sent none.
            now: wall micros.

        Returns the id that the site has for the record now.
        """
        operation = WRITES.get((row.kind, row.action))
        creates = operation is None or operation.effect is Effect.CREATE
        deletes = operation is not None and operation.effect is Effect.DELETE

        def job(connection: sqlite3.Connection) -> int:
            if not take_out(connection, (row.id,), "delivered"):
                return row.record_id
            known, ids = row.record_id, IDS.get(row.kind)
            if central_id is not None and creates and ids is not None:
                known = ids.learn(connection, row.record_id, central_id)
                if known != row.record_id:
                    connection.execute(
                        "UPDATE outbox SET record_id = ? WHERE kind = ? AND record_id = ?",
                        (known, row.kind, row.record_id),
                    )
            if deletes:
                take_out(connection, (item.id for item in outbox_rows(connection, row.kind, known)), "dropped")
            else:
                supersede(connection, row.kind, known, _object(row.body) or {}, before=row.id)
            keeper = KEEPERS.get(row.kind)
            if record is not None and keeper is not None and not deletes:
                whole = {**(keeper.get(connection, known) or {}), **record}  # an answer may hold less than that
                keep_centrals(connection, row.kind, known, whole, now=now)
            self._recent.note(row.kind, row.record_id, known)
            return known

        return await self._database.write(job)

    async def drop(self, row: OutboxRow) -> None:
        """It has lost its point: central has the record no more. Counted as dropped, with all others of the record."""

        def job(connection: sqlite3.Connection) -> None:
            take_out(connection, (item.id for item in outbox_rows(connection, row.kind, row.record_id)), "dropped")
            keeper = KEEPERS.get(row.kind)
            if keeper is not None and row.kind != _OF_THE_SITE:
                keeper.remove(connection, row.record_id)

        await self._database.write(job)

    async def failed(self, row: OutboxRow, *, error: str, next_at: int) -> None:
        """Central could not take it; tried again from `next_at` (wall micros) on."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET tries = tries + 1, next_at = ?, error = ? WHERE id = ?", (next_at, error, row.id)
            )
        )

    async def park(self, row: OutboxRow, *, error: str) -> None:
        """Central refused it: it waits for a person; of the same record, later rows wait only behind a create."""
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


def outbox_rows(connection: sqlite3.Connection, kind: str, record_id: int | None = None) -> tuple[OutboxRow, ...]:
    """What waits of a kind, or of one record, parked rows included, oldest first; within a transaction."""
    only = "" if record_id is None else " AND record_id = ?"
    values = (kind,) if record_id is None else (kind, record_id)
    rows = connection.execute(f"SELECT {_COLUMNS} FROM outbox WHERE kind = ?{only} ORDER BY id", values)
    return tuple(_row(row) for row in rows)


def take_out(connection: sqlite3.Connection, row_ids: Iterable[int], book: Literal["delivered", "dropped"]) -> int:
    """Rows leave the outbox and are counted; how many there were. Within a transaction."""
    gone = sum(connection.execute("DELETE FROM outbox WHERE id = ?", (number,)).rowcount for number in row_ids)
    connection.execute("UPDATE book SET count = count + ? WHERE name = ?", (gone, book))
    return gone


def supersede(
    connection: sqlite3.Connection, kind: str, record_id: int, newer: JsonObject, *, before: int | None = None
) -> None:
    """A newer write counts: refused changes of the record lose the fields that it has, and go when none is left.

    Within a transaction. `before`: only those with smaller row numbers.
    """
    emptied: list[int] = []
    for row in outbox_rows(connection, kind, record_id):
        if not row.parked or row.action == "create" or (before is not None and row.id >= before):
            continue
        body = _object(row.body)
        if body is None or not body.keys() & newer.keys() - {"id"}:
            continue
        left = {name: value for name, value in body.items() if name == "id" or name not in newer}
        if left.keys() <= {"id"}:
            emptied.append(row.id)
        else:
            rewrite(connection, row.id, left)
    take_out(connection, emptied, "dropped")


def rewrite(connection: sqlite3.Connection, row_id: int, body: JsonObject) -> None:
    """Another body, and so another key; central has refused the one before. Within a transaction."""
    connection.execute(
        "UPDATE outbox SET body = ?1, key = ?2, begun = 0,"
        " asked_bytes = CASE asked_bytes WHEN 0 THEN 0 ELSE ?3 END WHERE id = ?4",
        (text := body_text(body), new_key(), len(text.encode()), row_id),
    )


def try_again(connection: sqlite3.Connection, row_id: int) -> bool:
    """A refused row goes up again, at once; whether there was such a one. Within a transaction."""
    return (
        connection.execute(
            "UPDATE outbox SET parked = 0, tries = 0, next_at = 0, error = '' WHERE id = ? AND parked = 1", (row_id,)
        ).rowcount
        > 0
    )


def body_text(body: JsonObject) -> str:
    """A body as rows have it."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def waiting_writes(rows: Iterable[OutboxRow]) -> tuple[WaitingWrite, ...]:
    """Rows as writes; those of no known operation, or with a body that is no object, change nothing."""
    writes: list[WaitingWrite] = []
    for row in rows:
        operation = WRITES.get((row.kind, row.action))
        body = _object(row.body)
        if operation is not None and body is not None:
            refused = row.error if row.parked else ""
            writes.append(WaitingWrite(operation, row.record_id, body, begun=row.begun, refused=refused))
    return tuple(writes)


def keep_centrals(connection: sqlite3.Connection, kind: str, record_id: int, record: JsonObject, *, now: int) -> None:
    """Take over central's record, with what still waits for it laid over; within a transaction."""
    keeper = KEEPERS.get(kind)
    if keeper is None:
        return
    shown = laid_over(record, waiting_writes(outbox_rows(connection, kind, record_id)))
    if shown is not None:
        keeper.put(connection, record_id, shown, now=now)


def _object(text: str) -> JsonObject | None:
    try:
        return _BODY.validate_json(text)
    except ValidationError:
        return None


def _row(row: tuple[int, str, str, int, str, int, int, int, int, str, str, int]) -> OutboxRow:
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
        action=row[10],
        begun=bool(row[11]),
    )
