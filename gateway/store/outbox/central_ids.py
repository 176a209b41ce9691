"""Central's ids in tables that have them beside the site's ids. All functions are steps within a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Literal

Table = Literal["camera_event", "camera_event_gone", "parking_entry"]


def newest_given(connection: sqlite3.Connection, table: Table, most: int) -> tuple[int, ...]:
    """Return the highest `most` of central's ids in a table, the highest first."""
    rows = connection.execute(
        f"SELECT central_id FROM {table} WHERE central_id IS NOT NULL ORDER BY central_id DESC LIMIT ?", (most,)
    )
    return tuple(number for (number,) in rows)


def is_one_given(connection: sqlite3.Connection, table: Table, central_id: int) -> bool:
    """Return whether a record of the table has this id of central."""
    found = connection.execute(f"SELECT 1 FROM {table} WHERE central_id = ?", (central_id,)).fetchone()
    return found is not None


def owners_of(
    connection: sqlite3.Connection, table: Table | Literal["provisional"], central_ids: Sequence[int], kind: str = ""
) -> dict[int, int]:
    """Return the site's ids by central's, of records that have one of these ids of central.

    `kind`: only records of this kind; "" for all records of the table.
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
