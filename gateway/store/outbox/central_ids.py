"""Central's ids in tables that have them beside the site's ids. All methods are steps within a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Literal


class GivenIds:
    """Ids that central gave to the records of one kind, in the column `central_id` of a table."""

    def __init__(self, table: Literal["camera_event", "parking_entry", "provisional"], *, kind: str = "") -> None:
        """`kind`: only rows of this kind; "" for a table with one kind alone."""
        self._of = table
        self._only = f" AND kind = '{kind}'" if kind else ""

    def given(self, connection: sqlite3.Connection, most: int) -> tuple[int, ...]:
        """Return the newest `most` ids that central gave to records of this site, the highest first."""
        rows = connection.execute(
            f"SELECT central_id FROM {self._of} WHERE central_id IS NOT NULL{self._only}"
            " ORDER BY central_id DESC LIMIT ?",
            (most,),
        )
        return tuple(number for (number,) in rows)

    def is_given(self, connection: sqlite3.Connection, central_id: int) -> bool:
        """Return whether central gave this id to a record of this site."""
        return bool(self.owners(connection, (central_id,)))

    def owners(self, connection: sqlite3.Connection, central_ids: Sequence[int]) -> dict[int, int]:
        """Return the site's ids of the records that have these ids of central, by central's ids."""
        (found,) = connection.execute(
            f"SELECT json_group_array(json_array(central_id, id)) FROM {self._of}"
            f" WHERE central_id IN (SELECT value FROM json_each(?)){self._only}",
            (json.dumps(central_ids),),
        ).fetchone()
        return dict(json.loads(found))

    def disown(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> None:  # noqa: ARG002 (a keeper's form)
        """Take central's id from a record, because central gave it to another one. It counts as not at central."""
        connection.execute(f"UPDATE {self._of} SET central_id = NULL WHERE id = ?", (record_id,))


class OwnIds(GivenIds):
    """Ids of a kind whose records keep the site's id. Central's id is stored beside it."""

    def site_id(self, connection: sqlite3.Connection, record_id: int) -> int:
        """Return the site's id of a record that is named by the site's id or central's; an unknown id as it is."""
        row = connection.execute(
            f"SELECT id FROM {self._of} WHERE id = ?1 OR central_id = ?1 ORDER BY id = ?1 DESC LIMIT 1", (record_id,)
        ).fetchone()
        return int(row[0]) if row else record_id

    def central_id(self, connection: sqlite3.Connection, record_id: int) -> int | None:
        """Return central's id of a record, None while central has given none."""
        row = connection.execute(f"SELECT central_id FROM {self._of} WHERE id = ?", (record_id,)).fetchone()
        return None if row is None or row[0] is None else int(row[0])

    def learn(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> int:
        """Store central's id beside the site's, and return the site's id, which stays valid."""
        connection.execute(f"UPDATE OR IGNORE {self._of} SET central_id = ? WHERE id = ?", (central_id, record_id))
        return record_id
