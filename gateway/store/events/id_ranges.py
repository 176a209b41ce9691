"""Counts of events per range of ids (tables `event_range`, `event_range_count`), to find events without counting rows.

A range is 2**17 ids (coarse) or 2**12 ids (fine).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

COARSE, FINE = 17, 12
_ANY = -1
AT_A_LOOK = 1 << FINE
"""The greatest number of events that one statement looks at."""

Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filter for events; empty fields do not filter. `date_from` is inclusive, `date_until` exclusive (wall micros)."""

    device_ids: tuple[int, ...] = ()
    types: tuple[int, ...] = ()
    search: str = ""
    date_from: int | None = None
    date_until: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if every event passes."""
        return self == _EMPTY


_EMPTY = EventFilter()


@dataclass(frozen=True, slots=True)
class IdRange:
    """A range of ids.

    Attributes:
        low: the first id.
        high: the id after the last.
        events: the number of events in the range.
        passing: the number of those that pass the filter. If `is_cut`, dates do not count for it in the ranges of
            `listed`, but do in those of `read_ranges`.
        is_cut: whether some of the events are within the filter's dates and others are not.
    """

    low: int
    high: int
    events: int
    passing: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class IdRanges:
    """The ranges with events that pass a filter, newest first: coarse ones, and fine ones where dates cut a coarse one.

    `newest` is the last range's number and event count; it differs as soon as there are newer events.
    """

    newest: tuple[int, int] | None
    all: tuple[IdRange, ...]


def read_ranges(connection: sqlite3.Connection, wanted: EventFilter, known: IdRanges | None = None) -> IdRanges:
    """Return all ranges with events that pass the filter; the `known` ones unless there are newer events by now."""
    newest = connection.execute(
        f"SELECT number, count FROM event_range WHERE span = {FINE} ORDER BY number DESC LIMIT 1"
    ).fetchone()
    if known is not None and known.newest == newest:
        return known
    found: list[IdRange] = []
    for coarse in listed(connection, wanted, COARSE):
        if not coarse.is_cut:
            found.append(coarse)
            continue
        fines = finer(connection, wanted, coarse)
        found += (_counted(connection, wanted, fine) if fine.is_cut else fine for fine in fines)
    return IdRanges(newest, tuple(id_range for id_range in found if id_range.passing))


def listed(
    connection: sqlite3.Connection, wanted: EventFilter, span: int, within: IdRange | None = None
) -> Iterator[IdRange]:
    """Yield the id ranges of a span (COARSE or FINE) that are not wholly outside the filter's dates, newest first.

    `within`: only those inside this range.
    """
    passing, values = _passing(wanted)
    dates, bounds = _dated(wanted, "date_max >= ?", "date_min < ?")
    inside, ends = (
        (" AND number >= ? AND number < ?", (within.low >> span, within.high >> span)) if within else ("", ())
    )
    known = one_value(
        connection,
        f"SELECT json_group_array(json_array(number, count, {passing}, date_min, date_max)) FROM event_range"
        f" WHERE span = {span}{inside}{dates}",
        (*values, *ends, *bounds),
    )
    since, until = wanted.date_from, wanted.date_until
    for place, events, passes, earliest, latest in sorted(json.loads(known), reverse=True):
        cut = (since is not None and earliest < since) or (until is not None and latest >= until)
        yield IdRange(place << span, (place + 1) << span, events, passes or 0, cut)


def _passing(wanted: EventFilter) -> tuple[str, Values]:
    """Return the SQL for the number of a range's events that pass, without regard to dates, and its values."""
    if not wanted.device_ids and not wanted.types:
        return "count", ()
    devices, types = wanted.device_ids or (_ANY,), wanted.types or (_ANY,)
    return (
        "(SELECT sum(share.count) FROM event_range_count AS share WHERE share.span = event_range.span"
        " AND share.number = event_range.number"
        f" AND share.device_id IN ({places(devices)}) AND share.type IN ({places(types)}))"
    ), (*devices, *types)


def finer(connection: sqlite3.Connection, wanted: EventFilter, coarse: IdRange) -> Iterator[IdRange]:
    """Yield the fine ranges of a coarse one; a fine range is yielded as it is."""
    if coarse.high - coarse.low <= AT_A_LOOK:
        yield coarse
    else:
        yield from listed(connection, wanted, FINE, coarse)


def _counted(connection: sqlite3.Connection, wanted: EventFilter, fine: IdRange) -> IdRange:
    """Return a range that the dates cut, with the exact number of its events that pass."""
    where, values = conditions(wanted)
    passing = one_value(
        connection,
        f"SELECT count(*) FROM event NOT INDEXED WHERE id >= ? AND id < ?{where}",
        (fine.low, fine.high, *values),
    )
    return replace(fine, passing=passing)


def conditions(wanted: EventFilter) -> tuple[str, Values]:
    """Return the SQL condition of a filter without its search, and the values of its parameters.

    The SQL has no text from outside.
    """
    parts, values = [""], list[object]()
    if wanted.device_ids:
        parts.append(f"device_id IN ({places(wanted.device_ids)})")
        values += wanted.device_ids
    if wanted.types:
        parts.append(f"type IN ({places(wanted.types)})")
        values += wanted.types
    dates, bounds = _dated(wanted, "date_at >= ?", "date_at < ?")
    return " AND ".join(parts) + dates, (*values, *bounds)


def _dated(wanted: EventFilter, since: str, until: str) -> tuple[str, Values]:
    asked = ((since, wanted.date_from), (until, wanted.date_until))
    parts = [(part, moment) for part, moment in asked if moment is not None]
    return "".join(f" AND {part}" for part, _ in parts), tuple(moment for _, moment in parts)


def places(values: Sequence[int]) -> str:
    """Return the SQL parameter marks for these values: "?, ?"."""
    return ", ".join("?" * len(values))


def one_value(connection: sqlite3.Connection, sql: str, values: Values) -> Any:
    """Return the only value of a statement with one row of one column."""
    return connection.execute(sql, values).fetchone()[0]
