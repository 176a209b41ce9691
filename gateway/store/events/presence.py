"""Presence on disk. The journal writes it with the passage or correction that changes it; it is read at the start."""

from __future__ import annotations

import sqlite3

from gateway.domain.presence import OUTSIDE, Correction, CountCorrection, Forgiveness, Movement, Presence, Whereabouts
from gateway.store.engine.database import Database

_NO_FLOOR = -(2**31)


class PresenceRows:
    """Recorded presence: the count of each area, and the area of each holder."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def load(self) -> Presence:
        """Load the presence of all areas and holders. Raises StoreError if it cannot be read."""

        def query(connection: sqlite3.Connection) -> Presence:
            areas = connection.execute("SELECT area_id, count, opened_at FROM area").fetchall()
            holders = connection.execute("SELECT holder, area_id, since FROM holder")
            return Presence(
                counts={area_id: count for area_id, count, _ in areas},
                opened={area_id: opened_at for area_id, _, opened_at in areas if opened_at is not None},
                holders=((holder, Whereabouts(area_id, since)) for holder, area_id, since in holders),
            )

        return await self._database.read(query)


def record_movement(connection: sqlite3.Connection, movement: Movement) -> None:
    """Apply a movement to the rows as `Presence.move` applies it in memory."""
    way = movement.way
    if not way:
        return
    if way.leaves != OUTSIDE:
        connection.execute(
            "INSERT INTO area (area_id, count) VALUES (?1, max(-1, ?2))"
            " ON CONFLICT (area_id) DO UPDATE SET count = max(count - 1, ?2)",
            (way.leaves, _NO_FLOOR if movement.shared else 0),
        )
    if way.enters != OUTSIDE:
        connection.execute(
            "INSERT INTO area VALUES (?1, 1, ?2) ON CONFLICT (area_id)"
            " DO UPDATE SET count = count + 1, opened_at = coalesce(?2, opened_at)",
            (way.enters, movement.at if movement.opens else None),
        )
    if movement.holder:
        connection.execute(
            "INSERT INTO holder VALUES (?, ?, ?)"
            " ON CONFLICT (holder) DO UPDATE SET area_id = excluded.area_id, since = excluded.since",
            (movement.holder, way.enters, movement.at),
        )


def record_correction(connection: sqlite3.Connection, correction: Correction) -> None:
    """Apply a correction to the rows as `Presence.correct` applies it in memory."""
    match correction:
        case CountCorrection(area_id):
            connection.execute(
                "INSERT INTO area (area_id, count) VALUES (?, ?)"
                " ON CONFLICT (area_id) DO UPDATE SET count = excluded.count",
                (area_id, correction.own),
            )
        case Forgiveness(""):
            connection.execute("DELETE FROM holder")
        case Forgiveness(holder):
            connection.execute("DELETE FROM holder WHERE holder = ?", (holder,))


def record_rename(connection: sqlite3.Connection, holder: str, name: str) -> None:
    """Rename a holder in the rows as `Presence.rename` does in memory."""
    connection.execute("UPDATE OR REPLACE holder SET holder = ? WHERE holder = ?", (name, holder))
