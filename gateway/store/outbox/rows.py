"""The rows of the outbox, as steps within a running transaction."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from gateway.domain.conflicts import laid_over
from gateway.domain.errors import NotFoundError
from gateway.domain.writes import WRITES, JsonObject, WaitingWrite
from gateway.store.engine.database import is_id
from gateway.store.outbox.backlog_quota import count_rows
from gateway.store.outbox.record_kinds import RECORD_KINDS
from gateway.texts import text

COLUMNS = (
    "id, key, kind, record_id, body, created_at, tries, next_at, parked, error, action, begun, newest_before,"
    " stated_id, begun_at, base, kind = 'evidence' AND parked = 1"
    " AND EXISTS (SELECT 1 FROM evidence AS file WHERE file.id = record_id AND file.missing = 1)"
)
_BODY = TypeAdapter(JsonObject)


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A write to send to central. Times are wall micros.

    Attributes:
        id: the row's id; rows of a record are sent in this order.
        key: the idempotency key, the same in all attempts.
        kind: the kind of the record; `kind` and `action` name the operation.
        record_id: the record's id at the site.
        body: the write's JSON text.
        created_at: when it was queued.
        tries: the number of failed attempts.
        next_at: when the next attempt is due.
        parked: whether it waits for a person.
        error: why the last attempt failed, "" without a failure.
        action: the operation on the record.
        begun: whether the write may have reached central.
        newest_before: the highest id of the kind at central before the first attempt, None if unknown.
        stated_id: central's id of the record, as a person stated it.
        begun_at: when it was last sent, by central's clock (micros), None if unknown.
        base: JSON text of a change's fields before the change, or of the fields that identify a deleted record; "" if
            unknown.
        lost: whether it is parked and its file is missing or unreadable.
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
    newest_before: int | None = None
    stated_id: int | None = None
    begun_at: int | None = None
    base: str = ""
    lost: bool = False


def new_key() -> str:
    """Return a new idempotency key for a write."""
    return secrets.token_urlsafe(18)


def insert_outbox(
    connection: sqlite3.Connection,
    *,
    kind: str,
    record_id: int,
    body: str,
    now: int,
    action: str = "create",
    begun: bool = False,
    file_bytes: int = 0,
) -> int:
    """Queue a write for central and return the id of its row, within a running transaction.

    `now`: wall micros. `begun`: whether central may have it already. `file_bytes`: the size of the file that is sent
    with it, for the backlog quota.
    """
    cursor = connection.execute(
        "INSERT INTO outbox (key, kind, record_id, body, created_at, next_at, action, begun, file_bytes)"
        " VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?)",
        (new_key(), kind, record_id, body, now, action, begun, file_bytes),
    )
    connection.execute("UPDATE book SET count = count + 1 WHERE name = 'accepted'")
    number = int(cursor.lastrowid or 0)
    count_rows(connection, (number,), sign=1)
    return number


def outbox_rows(connection: sqlite3.Connection, kind: str, record_id: int | None = None) -> tuple[OutboxRow, ...]:
    """Return the rows of a kind, or of one record, parked ones included, oldest first. Within a transaction."""
    only = "" if record_id is None else " AND record_id = ?"
    values = (kind,) if record_id is None else (kind, record_id)
    rows = connection.execute(f"SELECT {COLUMNS} FROM outbox WHERE kind = ?{only} ORDER BY id", values)
    return tuple(as_row(row) for row in rows)


def listed_rows(connection: sqlite3.Connection, which: str, values: Sequence[object]) -> tuple[OutboxRow, ...]:
    """Return the rows that the SELECT statement `which` finds, oldest first. Within a transaction.

    They are fetched as one value, because the thread waits for the interpreter lock at every row.
    """
    (found,) = connection.execute(f"SELECT json_group_array(json_array({COLUMNS})) FROM ({which})", values).fetchone()
    return tuple(map(as_row, sorted(json.loads(found))))


def take_out(
    connection: sqlite3.Connection, row_ids: Iterable[int], book: Literal["delivered", "dropped", "replaced"]
) -> int:
    """Delete rows from the outbox, count them in a book, and return how many there were. Within a transaction."""
    numbers = tuple(row_ids)
    if not numbers:
        return 0
    free_waiting(connection, numbers)
    count_rows(connection, numbers, sign=-1)
    gone = connection.execute(
        "DELETE FROM outbox WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(numbers),)
    ).rowcount
    if gone:
        connection.execute("UPDATE book SET count = count + ? WHERE name = ?", (gone, book))
    return gone


def free_waiting(connection: sqlite3.Connection, row_ids: Sequence[int]) -> None:
    """Make rows due that wait for the records of these creates. Within a transaction."""
    connection.execute(
        "UPDATE outbox SET next_at = 0, waits_for = NULL WHERE waits_for IS NOT NULL AND waits_for IN"
        " (SELECT record_id FROM outbox WHERE action = 'create' AND id IN (SELECT value FROM json_each(?)))",
        (json.dumps(row_ids),),
    )


def supersede(
    connection: sqlite3.Connection, kind: str, record_id: int, newer: JsonObject, *, before: int | None = None
) -> None:
    """Remove the fields of a newer write from refused changes of the same record, and changes without fields left.

    Within a transaction. `before`: only changes with smaller row ids.
    """
    emptied: list[int] = []
    refused = connection.execute(
        f"SELECT {COLUMNS} FROM outbox WHERE kind = ? AND record_id = ? AND parked = 1 AND action <> 'create'"
        " ORDER BY id",
        (kind, record_id),
    ).fetchall()
    for row in map(as_row, refused):
        if before is not None and row.id >= before:
            continue
        body = body_object(row.body)
        if body is None or not body.keys() & newer.keys() - {"id"}:
            continue
        left = {name: value for name, value in body.items() if name == "id" or name not in newer}
        if left.keys() <= {"id"}:
            emptied.append(row.id)
        else:
            rewrite(connection, row.id, left)
    take_out(connection, emptied, "replaced")


def rewrite(connection: sqlite3.Connection, row_id: int, body: JsonObject) -> None:
    """Replace the body and the key of a row that is certainly not at central. Within a transaction."""
    count_rows(connection, (row_id,), sign=-1)
    connection.execute(
        "UPDATE outbox SET body = ?, key = ?, begun = 0 WHERE id = ?", (body_text(body), new_key(), row_id)
    )
    count_rows(connection, (row_id,), sign=1)


def try_again(connection: sqlite3.Connection, row_id: int) -> bool:
    """Make a parked row due at once; return whether there was one. Within a transaction."""
    return (
        connection.execute(
            "UPDATE outbox SET parked = 0, tries = 0, next_at = 0, error = '' WHERE id = ? AND parked = 1", (row_id,)
        ).rowcount
        > 0
    )


def body_text(body: JsonObject) -> str:
    """Encode a body as JSON text."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def waiting_writes(rows: Iterable[OutboxRow]) -> tuple[WaitingWrite, ...]:
    """Convert rows to writes, without rows of an unknown operation or with a body that is not a JSON object."""
    writes: list[WaitingWrite] = []
    for row in rows:
        operation = WRITES.get((row.kind, row.action))
        body = body_object(row.body)
        if operation is not None and body is not None:
            refused = row.error if row.parked else ""
            base = (body_object(row.base) if row.base else None) or {}
            writes.append(WaitingWrite(operation, row.record_id, body, begun=row.begun, refused=refused, base=base))
    return tuple(writes)


def keep_centrals(connection: sqlite3.Connection, kind: str, record_id: int, record: JsonObject, *, now: int) -> None:
    """Store central's record with the waiting writes of the record laid over it. Within a transaction."""
    keeper = RECORD_KINDS.get(kind)
    if keeper is None:
        return
    shown = laid_over(record, waiting_writes(outbox_rows(connection, kind, record_id)))
    if shown is not None:
        keeper.put(connection, record_id, shown, now=now)


def body_object(text: str) -> JsonObject | None:
    """Parse a body; None if it is not a JSON object."""
    try:
        return _BODY.validate_json(text)
    except ValidationError:
        return None


def row_of(connection: sqlite3.Connection, row_id: int) -> OutboxRow:
    """Return the row with this id. Raises NotFoundError."""
    found = None
    if is_id(row_id):
        found = connection.execute(f"SELECT {COLUMNS} FROM outbox WHERE id = ?", (row_id,)).fetchone()
    if found is None:
        raise NotFoundError(text("refused.row_unknown", number=str(row_id)))
    return as_row(found)


def as_row(
    row: tuple[
        int, str, str, int, str, int, int, int, int, str, str, int, int | None, int | None, int | None, str, int
    ],
) -> OutboxRow:
    """Convert a row of `COLUMNS`, which are in the order of OutboxRow's fields."""
    return OutboxRow(*row[:8], bool(row[8]), row[9], row[10], bool(row[11]), *row[12:16], bool(row[16]))
