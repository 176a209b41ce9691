"""Named notes of the synchronisation with central, kept over restarts in the cards' file."""

from __future__ import annotations

import sqlite3
from functools import partial

from gateway.store.engine.database import Database


class Notes:
    """The notes, each a text under a name. Its methods raise StoreError."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def remember(self, name: str, value: str) -> None:
        """Store a note in place of an earlier one of this name."""
        await self._database.write(partial(put_note, name=name, value=value))

    async def remembered(self, name: str) -> str | None:
        """Return the note of this name, or None."""

        def query(connection: sqlite3.Connection) -> str | None:
            row = connection.execute("SELECT value FROM sweep WHERE name = ?", (name,)).fetchone()
            return str(row[0]) if row else None

        return await self._database.read(query)


def put_note(connection: sqlite3.Connection, name: str, value: str) -> None:
    """Store a note in place of an earlier one. Within a transaction."""
    connection.execute(
        "INSERT INTO sweep VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
    )
