"""Events on disk."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.domain.events import Event, RecordedEvent, Scalar
from gateway.store.database import Database, is_id

EVENT_COLUMNS = "id, device_id, type, category, subcategory, name, description, date_at, clock_trusted, lane_id, data"
"""In the order in which `event_of` takes them."""
_COUNT_OF_ALL = "SELECT count FROM tally WHERE name = 'event'"


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are asked for; empty fields do not filter. Wall micros, from inclusive, until exclusive."""

    device_ids: tuple[int, ...] = ()
    types: tuple[int, ...] = ()
    search: str = ""
    date_from: int | None = None
    date_until: int | None = None
    lane_id: str = ""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events by descending id; `next_cursor` continues into older ones, None at the end; `count` is of all matches."""

    events: tuple[RecordedEvent, ...]
    count: int
    next_cursor: int | None


def insert_event(connection: sqlite3.Connection, event: Event) -> int:
    """Add an event within a running transaction and return its id."""
    cursor = connection.execute(
        "INSERT INTO event (device_id, type, category, subcategory, name, description, date_at, clock_trusted, lane_id,"
        " data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            event.device_id,
            int(event.kind),
            int(event.category),
            int(event.severity),
            event.name,
            _storable(event.description),
            event.date_at,
            event.clock_trusted,
            event.lane_id,
            json_text(event.data),
        ),
    )
    return int(cursor.lastrowid or 0)


def json_text(data: Mapping[str, Scalar]) -> str:
    """Facts as JSON text. What JSON or UTF-8 cannot say must not cost the event: such numbers become null."""
    facts = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in data.items()
    }
    return _storable(json.dumps(facts, separators=(",", ":"), ensure_ascii=False))


def _storable(text: str) -> str:
    """Text that UTF-8 can hold: half a surrogate pair, as a device may send, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Events:
    """The site's events."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def get(self, event_id: int) -> RecordedEvent | None:
        """One event, or None."""

        def query(connection: sqlite3.Connection) -> RecordedEvent | None:
            row = connection.execute(f"SELECT {EVENT_COLUMNS} FROM event WHERE id = ?", (event_id,)).fetchone()
            return event_of(row) if row else None

        return await self._database.read(query) if is_id(event_id) else None

    async def latest(self, *, limit: int) -> tuple[RecordedEvent, ...]:
        """The newest events, by descending id, without counting the rest."""
        return await self._database.read(
            lambda connection: tuple(
                event_of(row)
                for row in connection.execute(f"SELECT {EVENT_COLUMNS} FROM event ORDER BY id DESC LIMIT ?", (limit,))
            )
        )

    async def page(self, wanted: EventFilter, *, before: int = 0, offset: int = 0, limit: int = 25) -> EventPage:
        """Events by descending id.

        Args:
            wanted: the filter.
            before: only ids below this; 0 starts at the newest.
            offset: how many matching rows to pass over first (page-wise reading).
            limit: at most this many.

        Raises StoreError when a number of the filter does not fit into 64 bits.
        """
        limit = max(limit, 0)
        where, values = _where(wanted)

        def query(connection: sqlite3.Connection) -> EventPage:
            counting = f"SELECT count(*) FROM event WHERE {where}" if values else _COUNT_OF_ALL
            (count,) = connection.execute(counting, values).fetchone()
            bound = " AND id < ?" if before else ""
            rows = connection.execute(
                f"SELECT {EVENT_COLUMNS} FROM event WHERE {where}{bound} ORDER BY id DESC LIMIT ? OFFSET ?",
                (*values, *((before,) if before else ()), limit + 1, offset),
            ).fetchall()
            more = len(rows) > limit > 0
            events = tuple(event_of(row) for row in rows[:limit])
            return EventPage(events=events, count=count, next_cursor=events[-1].id if more else None)

        return await self._database.read(query)


def _where(wanted: EventFilter) -> tuple[str, tuple[object, ...]]:
    """The condition, made only of our own words with a place for each value."""
    parts: list[str] = ["1"]
    values: list[object] = []
    if wanted.device_ids:
        parts.append(f"device_id IN ({', '.join('?' * len(wanted.device_ids))})")
        values += wanted.device_ids
    if wanted.types:
        parts.append(f"type IN ({', '.join('?' * len(wanted.types))})")
        values += wanted.types
    if wanted.search:
        parts.append("(name LIKE ? ESCAPE '\\' OR description LIKE ? ESCAPE '\\')")
        pattern = "%" + wanted.search.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        values += [pattern, pattern]
    if wanted.date_from is not None:
        parts.append("date_at >= ?")
        values.append(wanted.date_from)
    if wanted.date_until is not None:
        parts.append("date_at < ?")
        values.append(wanted.date_until)
    if wanted.lane_id:
        parts.append("lane_id = ?")
        values.append(wanted.lane_id)
    return " AND ".join(parts), tuple(values)


def event_of(row: tuple[int, int, int, int, int, str, str, int, int, str, str]) -> RecordedEvent:
    """The event of a row."""
    return RecordedEvent(
        id=row[0],
        device_id=row[1],
        type=row[2],
        category=row[3],
        subcategory=row[4],
        name=row[5],
        description=row[6],
        date_at=row[7],
        clock_trusted=bool(row[8]),
        lane_id=row[9],
        data=row[10],
    )
