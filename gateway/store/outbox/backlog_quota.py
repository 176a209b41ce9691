"""Limits on writes queued while central is offline: the disk space of the backlog, and the changes of one record.

Each transaction that changes the outbox also updates the sum of its bytes, so that no write has to add them up. All
rows count, but only writes of people and programs are refused: no passage and no event is ever lost.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gateway.domain.errors import QuotaExceeded
from gateway.domain.writes import FIRST_PROVISIONAL_ID
from gateway.store.engine.database import Database
from gateway.texts import text

GIGABYTE: Final = 1_000_000_000
DEFAULT_BYTES: Final = 2 * GIGABYTE
MOST_OF_RECORD: Final = 10_000
"""The greatest number of waiting changes of one record, because each write looks at all earlier ones."""
MOST_MADE: Final = 1_000
"""The greatest number of devices, or of cameras, that only this site has, because their lists are read as a whole."""
_RESERVE: Final = 2  # writes that take a right away may fill the backlog to this many times the quota
_COUNTED = "SELECT coalesce(sum(bytes), 0) FROM outbox_size"


@dataclass(frozen=True, slots=True)
class Backlog:
    """The disk space of everything that waits for central, and its quota, both in bytes."""

    bytes: int
    most: int

    @property
    def share(self) -> float:
        """The used share of the quota; above 1 if it is exceeded."""
        return self.bytes / self.most


class BacklogQuota:
    """The quota of one store."""

    def __init__(self, *, database: Database, most: int) -> None:
        """Keep the collaborators. `most`: the bytes from which on writes of people and programs are refused."""
        self._database = database
        self.most = most

    async def usage(self) -> Backlog:
        """Read how much of the quota is used."""
        return Backlog(await self._database.read(backlog_bytes), self.most)

    async def admit(self) -> None:
        """Raise QuotaExceeded if the backlog is full; for writes that are not queued by `PendingWrites`."""
        await self._database.read(self.refuse_when_full)

    def refuse_when_full(self, connection: sqlite3.Connection, *, urgent: bool = False) -> None:
        """Raise QuotaExceeded if the backlog is full; `urgent` writes have a reserve. Within a transaction."""
        size = backlog_bytes(connection)
        if size >= self.most * (_RESERVE if urgent else 1):
            raise QuotaExceeded(
                text("refused.backlog_full", amount=f"{size / GIGABYTE:.2f}", most=f"{self.most / GIGABYTE:g}")
            )


def backlog_bytes(connection: sqlite3.Connection) -> int:
    """Read the size of the backlog in bytes. Within a transaction."""
    (size,) = connection.execute("SELECT bytes FROM backlog").fetchone()
    return int(size)


def count_rows(connection: sqlite3.Connection, row_ids: Sequence[int], *, sign: Literal[1, -1]) -> None:
    """Add rows of the outbox to the sum, or subtract them before they are deleted or changed. Within a transaction."""
    connection.execute(
        "UPDATE backlog SET bytes = bytes + ? * (SELECT coalesce(sum(bytes), 0) FROM outbox_size"
        " WHERE id IN (SELECT value FROM json_each(?)))",
        (sign, json.dumps(row_ids)),
    )


def check_backlog(connection: sqlite3.Connection) -> None:
    """Correct the stored sum by the rows, once after opening: after a salvage some rows may be missing."""
    (counted,) = connection.execute(_COUNTED).fetchone()
    if counted != backlog_bytes(connection):
        connection.execute("UPDATE backlog SET bytes = ?", (counted,))


def refuse_more_of_record(connection: sqlite3.Connection, kind: str, record_id: int) -> None:
    """Raise QuotaExceeded if too many changes of one record wait. Within a transaction."""
    (count,) = connection.execute(
        "SELECT count(*) FROM outbox WHERE kind = ? AND record_id = ?", (kind, record_id)
    ).fetchone()
    if count >= MOST_OF_RECORD:
        raise QuotaExceeded(text("refused.too_many_changes", count=f"{count:,}"))


def refuse_one_more(connection: sqlite3.Connection, table: str) -> None:
    """Raise QuotaExceeded if the table has MOST_MADE records that only this site has. Within a transaction."""
    (count,) = connection.execute(f"SELECT count(*) FROM {table} WHERE id >= ?", (FIRST_PROVISIONAL_ID,)).fetchone()
    if count >= MOST_MADE:
        raise QuotaExceeded(f"there are {count:,} {table}s already that only this site has; no more are made here")
