"""Events on disk."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from gateway.domain.events import Event, RecordedEvent, Scalar
from gateway.store.engine.database import Database, is_id
from gateway.store.engine.query_cache import QueryCache
from gateway.store.events.pages import EventFilter, EventPage, IdRanges, read_page, read_ranges
from gateway.store.events.rows import COLUMNS, JSON_TEXT, JSON_TEXTS, RECORDED, EventForm, event_of
from gateway.texts import to_json

_PAGES_KEPT = 16

E = TypeVar("E")

LATE_AFTER = 60_000_000
"""An event recorded more than this many micros after its time is marked as late: it does not describe the present."""


def insert_event(connection: sqlite3.Connection, event: Event, *, now: int | None = None) -> int:
    """Add an event within a running transaction and return its id.

    `now`: the wall time of the recording in micros, to see whether the event is late; None marks no event as late.
    """
    cursor = connection.execute(
        "INSERT INTO event (device_id, type, category, subcategory, name, description, date_at, clock_trusted, lane_id,"
        " data, recorded_at, said) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            now if now is not None and now - event.date_at > LATE_AFTER else None,
            None if (said := to_json(event.text)) is None else _storable(said),
        ),
    )
    return int(cursor.lastrowid or 0)


def json_text(data: Mapping[str, Scalar]) -> str:
    """Encode an event's data as JSON. Numbers that JSON cannot express become null, so that the event is not lost."""
    facts = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in data.items()
    }
    return _storable(json.dumps(facts, separators=(",", ":"), ensure_ascii=False))


def _storable(text: str) -> str:
    """Replace characters that UTF-8 cannot encode (lone surrogates) by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class _PageOfEvents:
    """A page of the list: its filter, beginning and length."""

    wanted: EventFilter
    before: int
    offset: int
    limit: int

    def read(self, connection: sqlite3.Connection, *, form: EventForm[E], passing: IdRanges | None) -> EventPage[E]:
        return read_page(
            connection, self.wanted, passing, before=self.before, offset=self.offset, limit=self.limit, form=form
        )


class Events:
    """The site's events."""

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._pages: QueryCache[_PageOfEvents, EventPage[tuple[RecordedEvent, ...]]] = QueryCache(
            database=database, most=_PAGES_KEPT
        )
        self._json_pages: QueryCache[_PageOfEvents, EventPage[tuple[bytes, ...]]] = QueryCache(
            database=database, most=_PAGES_KEPT
        )
        self._ranges: QueryCache[EventFilter, IdRanges] = QueryCache(database=database, most=_PAGES_KEPT)

    async def get(self, event_id: int) -> RecordedEvent | None:
        """Return one event, or None."""

        def query(connection: sqlite3.Connection) -> RecordedEvent | None:
            row = connection.execute(f"SELECT {COLUMNS} FROM event WHERE id = ?", (event_id,)).fetchone()
            return event_of(row) if row else None

        return await self._database.read(query) if is_id(event_id) else None

    async def latest(self, *, limit: int) -> tuple[RecordedEvent, ...]:
        """Return the newest events by descending id."""
        return await self._database.rows(f"SELECT {COLUMNS} FROM event ORDER BY id DESC LIMIT ?", (limit,), of=event_of)

    async def json_after(self, event_id: int, *, limit: int) -> tuple[tuple[int, str], ...]:
        """Return the oldest events above an id, by ascending id: each id with the JSON text of the interface's record.

        Raises StoreError.
        """
        return await self._database.rows(
            f"SELECT id, {JSON_TEXT} FROM event NOT INDEXED WHERE id > ? ORDER BY id LIMIT ?",
            (event_id, limit),
            of=tuple,
        )

    async def extent(self) -> tuple[int, int | None]:
        """Return the number of events and the time of the oldest (wall micros, None without events), quickly."""

        def query(connection: sqlite3.Connection) -> tuple[int, int | None]:
            (count,) = connection.execute("SELECT coalesce(sum(count), 0) FROM event_range WHERE span = 17").fetchone()
            oldest = connection.execute("SELECT date_at FROM event NOT INDEXED ORDER BY id LIMIT 1").fetchone()
            return count, oldest[0] if oldest else None

        return await self._database.read(query)

    async def newest(self, *, types: Iterable[int], lane_id: str) -> RecordedEvent | None:
        """Return the newest event of one of these types in a lane, or None."""

        def query(connection: sqlite3.Connection) -> RecordedEvent | None:
            rows = (
                connection.execute(
                    f"SELECT {COLUMNS} FROM event INDEXED BY event_by_type WHERE type = ? AND lane_id = ?"
                    " ORDER BY id DESC LIMIT 1",
                    (kind, lane_id),
                ).fetchone()
                for kind in types
            )
            return max((event_of(row) for row in rows if row), key=lambda event: event.id, default=None)

        return await self._database.read(query)

    async def lately(
        self, *, types: Iterable[int], limit: int, lane_id: str = "", among: int | None = None
    ) -> tuple[RecordedEvent, ...]:
        """Return the newest events of these types, at most `limit` of each, by ascending id.

        Args:
            types: the types.
            limit: the greatest number of events of a type.
            lane_id: the lane, "" for all lanes.
            among: how many of a type's newest events are looked at, of whatever lane; None for all. No index has the
                lane: to learn that a lane has no event of a frequent type takes a second among ten million events.
        """
        further = " AND lane_id = :lane_id" if lane_id else ""
        if among is not None:
            further += (
                " AND id > coalesce((SELECT id FROM event INDEXED BY event_by_type WHERE type = :type"
                " ORDER BY id DESC LIMIT 1 OFFSET :among), 0)"
            )

        def query(connection: sqlite3.Connection) -> tuple[RecordedEvent, ...]:
            rows = (
                row
                for kind in types
                for row in connection.execute(
                    f"SELECT {COLUMNS} FROM event INDEXED BY event_by_type WHERE type = :type{further}"
                    " ORDER BY id DESC LIMIT :limit",
                    {"type": kind, "lane_id": lane_id, "among": among, "limit": limit},
                )
            )
            return tuple(sorted((event_of(row) for row in rows), key=lambda event: event.id))

        return await self._database.read(query)

    async def page(
        self, wanted: EventFilter, *, before: int = 0, offset: int = 0, limit: int = 25
    ) -> EventPage[tuple[RecordedEvent, ...]]:
        """Return a page of events by descending id.

        Args:
            wanted: the filter.
            before: only ids below this; 0 starts at the newest.
            offset: how many matching events to skip; with `before` only for searches.
            limit: the greatest number of events.

        Raises StoreError if a number of the filter does not fit into 64 bits.
        """
        return await self._page(self._pages, RECORDED, _PageOfEvents(wanted, before, offset, max(limit, 0)))

    async def json_page(
        self, wanted: EventFilter, *, before: int = 0, offset: int = 0, limit: int = 25
    ) -> EventPage[tuple[bytes, ...]]:
        """Return the page that `page` returns as JSON text of its records with commas between them, in parts."""
        return await self._page(self._json_pages, JSON_TEXTS, _PageOfEvents(wanted, before, offset, max(limit, 0)))

    async def _page(
        self, kept: QueryCache[_PageOfEvents, EventPage[E]], form: EventForm[E], place: _PageOfEvents
    ) -> EventPage[E]:
        generation = self._database.generation
        if (same := kept.known(place)) is not None:
            return same
        if place.wanted.is_empty:
            page = await self._database.read(partial(place.read, form=form, passing=None), alone=True)
            kept.keep(place, page, generation=generation)
            return page
        plain = replace(place.wanted, search="")
        known = self._ranges.known(plain)

        def query(connection: sqlite3.Connection) -> tuple[EventPage[E], IdRanges]:
            ranges = read_ranges(connection, plain, known)
            return place.read(connection, form=form, passing=ranges), ranges

        page, ranges = await self._database.read(query, lengthy=bool(place.wanted.search))
        kept.keep(place, page, generation=generation)
        self._ranges.keep(plain, ranges, generation=generation)
        return page
