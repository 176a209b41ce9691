"""Ids that central gave, where a table has them beside the site's own. Steps within a running transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Literal

Table = Literal["camera_event", "camera_event_gone", "parking_entry"]


def newest_given(connection: sqlite3.Connection, table: Table, most: int) -> tuple[int, ...]:
    """Return the highest of them, the highest first."""
    rows = connection.execute(
        f"SELECT central_id FROM {table} WHERE central_id IS NOT NULL ORDER BY central_id DESC LIMIT ?", (most,)
    )
    return tuple(number for (number,) in rows)


def is_one_given(connection: sqlite3.Connection, table: Table, central_id: int) -> bool:
    """Return whether central's id is among them."""
    found = connection.execute(f"SELECT 1 FROM {table} WHERE central_id = ?", (central_id,)).fetchone()
    return found is not None


def owners_of(
    connection: sqlite3.Connection, table: Table | Literal["provisional"], central_ids: Sequence[int], kind: str = ""
) -> dict[int, int]:
    """Return the site's ids of those records that have one of these, by central's. `kind`: of the table's, "" for
    all.
    """
    only, values = (" AND kind = ?", (kind,)) if kind else ("", ())
    (found,) = connection.execute(
        f"SELECT json_group_array(json_array(central_id, id)) FROM {table}"
        f" WHERE central_id IN (SELECT value FROM json_each(?)){only}",
        (json.dumps(central_ids), *values),
    ).fetchone()
    return dict(json.loads(found))


def disown(connection: sqlite3.Connection, table: Table | Literal["provisional"], record_id: int) -> None:
    """Mark the record with this id as not at central."""
    connection.execute(f"UPDATE {table} SET central_id = NULL WHERE id = ?", (record_id,))
