"""Read cursors: how far each line that sends lists on has come. Programs that pull bring their own cursor."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from gateway.store.engine.database import Database

ListName = Literal["event", "camera_event", "entry"]
LISTS: Final[tuple[ListName, ...]] = ("event", "camera_event", "entry")
_TABLES: Final[dict[ListName, str]] = {"event": "event", "camera_event": "camera_event", "entry": "parking_entry"}
MOST_COUNTED = 10_000
_COLUMNS = "account, list, filter, read_to, read_at, began_at"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A line that sends a list on, for example `fleet` to its `stream`."""

    account: str
    list: ListName
    filter: str = ""


@dataclass(frozen=True, slots=True)
class ReadCursor:
    """Read mark of a consumer.

    Attributes:
        consumer: whose mark it is.
        read_to: the id up to which the consumer has everything.
        read_at: when the consumer last took records (wall micros).
        began_at: when the cursor was made (wall micros).
    """

    consumer: Consumer
    read_to: int
    read_at: int
    began_at: int

    def holds(self, *, now: int, consumer_days: int) -> bool:
        """Return whether records are kept for this consumer: it took something within the last `consumer_days` days."""
        return self.read_at >= now - consumer_days * 86_400_000_000


class ReadCursors:
    """The cursors of all consumers."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def all(self) -> tuple[ReadCursor, ...]:
        """Return every cursor, by account and list."""
        return await self._database.rows(f"SELECT {_COLUMNS} FROM read_cursor ORDER BY account, list, filter", of=_mark)

    async def save(self, marks: Sequence[ReadCursor]) -> None:
        """Store read marks. The id of a stored mark only rises."""
        values = [
            (mark.consumer.account, mark.consumer.list, mark.consumer.filter, mark.read_to, mark.read_at, mark.began_at)
            for mark in marks
        ]
        await self._database.write(
            lambda connection: connection.executemany(
                f"INSERT INTO read_cursor ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (account, list, filter)"
                " DO UPDATE SET read_to = max(read_to, excluded.read_to), read_at = excluded.read_at",
                values,
            )
        )

    async def forget(self, consumers: Sequence[Consumer]) -> None:
        """Remove the read marks of these consumers."""
        values = [(one.account, one.list, one.filter) for one in consumers]
        await self._database.write(
            lambda connection: connection.executemany(
                "DELETE FROM read_cursor WHERE account = ? AND list = ? AND filter = ?", values
            )
        )

    async def unread(self, marks: Sequence[ReadCursor]) -> tuple[int, ...]:
        """Return the number of records above each mark; at most 10,000 are counted."""

        def query(connection: sqlite3.Connection) -> tuple[int, ...]:
            return tuple(
                connection.execute(
                    f"SELECT count(*) FROM (SELECT 1 FROM {_TABLES[mark.consumer.list]} WHERE id > ? LIMIT ?)",
                    (mark.read_to, MOST_COUNTED),
                ).fetchone()[0]
                for mark in marks
            )

        return await self._database.read(query)


def _mark(row: tuple[Any, ...]) -> ReadCursor:
    return ReadCursor(Consumer(*row[:3]), *row[3:])
