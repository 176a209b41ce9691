"""How much is held of what people and programs write while central is away. What the site itself has to tell is not
bounded here: no passage is ever lost for it.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from gateway.domain.errors import NoRoom
from gateway.domain.writes import FIRST_PROVISIONAL_ID

MOST_WAITING: Final = 10_000
MOST_WAITING_BYTES: Final = 32 * 1024 * 1024
MOST_MADE: Final = 1_000
"""Devices, or cameras, that were made here and that central does not have. Their lists come whole."""
_RESERVE: Final = 2  # for what takes a right away: so many times as much is held of it


def refuse_without_room(connection: sqlite3.Connection, *, urgent: bool = False) -> None:
    """Raises NoRoom when as many writes wait as are held; `urgent` ones have a reserve. Within a transaction."""
    count, size = connection.execute(
        "SELECT count(*), coalesce(sum(asked_bytes), 0) FROM outbox INDEXED BY outbox_asked WHERE asked_bytes > 0"
    ).fetchone()
    times = _RESERVE if urgent else 1
    if count >= MOST_WAITING * times or size >= MOST_WAITING_BYTES * times:
        raise NoRoom(f"{count:,} changes ({size / 1e6:.1f} MB) wait for central already; this one was not taken")


def refuse_one_more(connection: sqlite3.Connection, table: str) -> None:
    """Raises NoRoom when as many records were made here as are kept of that kind. Within a transaction."""
    (count,) = connection.execute(f"SELECT count(*) FROM {table} WHERE id >= ?", (FIRST_PROVISIONAL_ID,)).fetchone()
    if count >= MOST_MADE:
        raise NoRoom(f"there are {count:,} {table}s already that only this site has; no more are made here")
