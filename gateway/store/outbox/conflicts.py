"""Conflicts: a record that was changed both here and at central.

Each waiting change has a base: the values of its fields before the change. They show what central changed too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from pydantic import TypeAdapter

from gateway.domain.conflicts import READS, Settled
from gateway.domain.writes import JsonObject
from gateway.store.outbox.backlog_quota import count_rows
from gateway.store.outbox.rows import OutboxRow, body_text, keep_centrals, outbox_rows, rewrite, take_out

_BODY = TypeAdapter(JsonObject)


def base_of(
    connection: sqlite3.Connection, kind: str, record_id: int, fields: Collection[str], was: JsonObject | None
) -> JsonObject:
    """Return the base of a change of these fields: central's values before it, {} if they are unknown.

    These are the record's values here (`was`). For a field that a refused change has, it is the value before that
    change, which central never got. Within a transaction.
    """
    if was is None or kind not in READS:
        return {}
    base = {name: was.get(name) for name in fields if name != "id"}
    rows = connection.execute(
        "SELECT body, base FROM outbox WHERE kind = ? AND record_id = ? AND parked = 1 AND base <> '' ORDER BY id DESC",
        (kind, record_id),
    )
    for body, before in rows:
        refused, known = _BODY.validate_json(body), _BODY.validate_json(before)
        base |= {name: known[name] for name in refused.keys() & known.keys() & base.keys()}
    return base


def note_base(connection: sqlite3.Connection, row_id: int, base: JsonObject) -> None:
    """Store the base of a waiting change, unless it is empty. Within a transaction."""
    if base:
        count_rows(connection, (row_id,), sign=-1)
        connection.execute("UPDATE outbox SET base = ? WHERE id = ?", (body_text(base), row_id))
        count_rows(connection, (row_id,), sign=1)


def settle_row(
    connection: sqlite3.Connection, row: OutboxRow, settled: Settled, theirs: JsonObject, *, now: int
) -> OutboxRow | None:
    """Store the outcome of a comparison of a waiting change with central's record. Within a transaction.

    Fields for which central's value counts are dropped from the change. The rest is laid over central's record
    (`theirs`), which becomes the site's. Return the row as it is now, None if nothing is left of it.
    """
    if settled.body.keys() <= {"id"}:
        take_out(connection, (row.id,), "dropped" if settled.conflicts else "replaced")
    elif body_text(settled.body) != row.body:
        rewrite(connection, row.id, settled.body)
    note_base(connection, row.id, {name: theirs[name] for name in settled.body if name in theirs})
    rights = {conflict.field: conflict.was for conflict in settled.conflicts if conflict.of_rights}
    _judge_later(connection, row, rights)
    keep_centrals(connection, row.kind, row.record_id, theirs, now=now)
    return next((item for item in outbox_rows(connection, row.kind, row.record_id) if item.id == row.id), None)


def _judge_later(connection: sqlite3.Connection, row: OutboxRow, rights: JsonObject) -> None:
    """Correct the bases of later changes of the record in these fields, because they were the site's values."""
    later = connection.execute(
        "SELECT id, base FROM outbox WHERE kind = ? AND record_id = ? AND id > ? AND base <> ''",
        (row.kind, row.record_id, row.id),
    ).fetchall()
    for number, text in later:
        base = _BODY.validate_json(text)
        note_base(connection, number, base | {name: was for name, was in rights.items() if name in base})
