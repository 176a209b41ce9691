"""Counts per day on disk. The amounts and the id of the last event counted always change in one commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import tzinfo

from gateway.domain.day_counts import COUNTED_EVENTS, DayCount, Measure, counted
from gateway.store.engine.database import Database
from gateway.store.events.rows import COLUMNS, Row, event_of

_STEP = 4096
"""Number of event ids that one read looks through."""


class DayCounts:
    """Amounts by day, measure and part of the site."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def since(self, day: str) -> tuple[DayCount, ...]:
        """Return the amounts of this day and all later ones. `day`: an ISO date."""
        return await self._database.rows(
            "SELECT day, measure, part, amount FROM day_count WHERE day >= ?", (day,), of=_count_of
        )

    async def first_day(self) -> str:
        """Return the oldest day with an amount, "" for none."""
        days = await self._database.rows("SELECT min(day) FROM day_count", (), of=lambda row: row[0])
        return days[0] or ""

    async def count_events(self, zone: tzinfo) -> bool:
        """Count a batch of the events that are not counted yet, oldest first. Return whether there are more."""

        def look(connection: sqlite3.Connection) -> tuple[int, int, int, tuple[DayCount, ...]]:
            (before,) = connection.execute("SELECT event_id FROM day_counted").fetchone()
            oldest, newest = connection.execute("SELECT min(id), max(id) FROM event").fetchone()
            above = max(before, (oldest or 1) - 1)
            upto = min(above + _STEP, newest or 0)
            rows = (
                row
                for kind in COUNTED_EVENTS
                for row in connection.execute(
                    f"SELECT {COLUMNS} FROM event INDEXED BY event_by_type WHERE type = ? AND id > ? AND id <= ?",
                    (kind, above, upto),
                )
            )
            return before, upto, newest or 0, counted(map(event_of, rows), zone)

        before, upto, newest, amounts = await self._database.read(look, lengthy=True)
        if upto <= before:
            return False

        def job(connection: sqlite3.Connection) -> None:
            taken = connection.execute("UPDATE day_counted SET event_id = ? WHERE event_id = ?", (upto, before))
            if taken.rowcount:
                _add(connection, amounts)

        await self._database.write(job)
        return upto < newest

    async def add(self, amounts: Iterable[DayCount]) -> None:
        """Add amounts that cannot be counted from events."""
        if added := tuple(amounts):
            await self._database.write(lambda connection: _add(connection, added))

    async def forget(self, *, before: str, after: str) -> None:
        """Remove days earlier than `before`, which are too old, and later than `after`, which a wrong clock made."""

        def job(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM day_count WHERE day < ? OR day > ?", (before, after))

        await self._database.write(job)


def _add(connection: sqlite3.Connection, amounts: Iterable[DayCount]) -> None:
    connection.executemany(
        "INSERT INTO day_count VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET amount = amount + excluded.amount",
        [(one.day, one.measure.value, one.part, one.amount) for one in amounts],
    )


def _count_of(row: Row) -> DayCount:
    day, measure, part, amount = row
    return DayCount(day, Measure(measure), part, amount)
