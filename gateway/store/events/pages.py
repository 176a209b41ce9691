"""Pages of events, found by the counts per range of ids (tables `event_range`, `event_range_count`).

The beginning of a page, even 5,000,000 events deep, and the count of a filter are sums over ranges. Events themselves
are read only in the ranges at the two ends of a time span and in the one where the page begins. A search reads the text
of events, newest first, for at most `SEARCH_SECONDS` for one page.

Everything runs in a reading thread.

Commits keep the counts. A range is 2**17 ids (coarse) or 2**12 ids (fine).
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar

from gateway.store.engine.text_search import search_in
from gateway.store.events.rows import RECORDED, EventForm, Row

COARSE, FINE = 17, 12
_ANY = -1
AT_A_LOOK = 1 << FINE
"""The greatest number of events that one statement looks at."""

Values = tuple[object, ...]

__all__ = ["EXACT_SEARCH", "SEARCH_SECONDS", "EventFilter", "EventPage", "read_page", "read_ranges"]

EXACT_SEARCH = 10_000
"""Up to this number of events a search looks at all of them, so that its count is exact."""
SEARCH_SECONDS = 0.6
"""After this time a search among more events ends, and says how far it looked."""

_DENSE = 20  # if at least one event in 20 matches, reading all is quicker than sorting the results of an index
_HIGHEST = 2**63 - 1

_WHOLE = f"""
SELECT (SELECT coalesce(sum(count), 0) FROM event_range WHERE span = {COARSE}),
 {{form}} FROM ({{rows}} ORDER BY id DESC LIMIT :limit)
"""
_NEXT = "SELECT * FROM event NOT INDEXED WHERE id < :before"
_SKIPPED = """SELECT * FROM event WHERE id IN (
 SELECT id FROM event NOT INDEXED WHERE id < (SELECT high FROM start) ORDER BY id DESC
 LIMIT :limit OFFSET coalesce((SELECT over FROM start), 0))"""
_DEEP = f"""
WITH coarse AS (SELECT number, count, sum(count) OVER (ORDER BY number DESC ROWS UNBOUNDED PRECEDING) AS upto
  FROM event_range WHERE span = {COARSE}),
 around AS (SELECT number << {COARSE - FINE} AS low, :offset - upto + count AS over FROM coarse
  WHERE upto > :offset AND upto - count <= :offset LIMIT 1),
 fine AS (SELECT number, count, sum(count) OVER (ORDER BY number DESC ROWS UNBOUNDED PRECEDING) AS upto
  FROM event_range WHERE span = {FINE} AND number >= (SELECT low FROM around)
  AND number < (SELECT low FROM around) + {1 << (COARSE - FINE)}),
 within AS (SELECT (number + 1) << {FINE} AS high, (SELECT over FROM around) - upto + count AS over,
  count = {AT_A_LOOK} AS whole FROM fine WHERE upto > (SELECT over FROM around)
  AND upto - count <= (SELECT over FROM around) LIMIT 1),
 start AS (SELECT iif(whole, high - over, high) AS high, iif(whole, 0, over) AS over FROM within)
"""  # in a whole range no id is missing, so that no row has to be skipped one by one

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class EventPage(Generic[E]):
    """A page of events by descending id.

    Attributes:
        events: the events in the form that was asked for.
        last: the id of the last event of the page, None for an empty page.
        count: the number of all matches; if not `complete`, of the matches among the events that were looked at.
        next_cursor: the `before` of the next page, None at the end. A page that is not full may have one too.
        complete: whether every event was looked at; False only for a search among many events.
    """

    events: E
    last: int | None
    count: int
    next_cursor: int | None
    complete: bool = True


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


def read_page(
    connection: sqlite3.Connection,
    wanted: EventFilter,
    passing: IdRanges | None,
    *,
    before: int,
    offset: int,
    limit: int,
    form: EventForm[E] = RECORDED,  # type: ignore[assignment]  # mypy takes it for the default of every E
    monotonic: Callable[[], float] = time.monotonic,
) -> EventPage[E]:
    """Return a page of events by descending id, from below `before` (0: the newest) on, skipping `offset` of them.

    `passing`: the result of `read_ranges` for the same filter without its search, in the same snapshot. None for an
    empty filter: such a page is one statement, and therefore consistent even outside a transaction.
    """
    if before and offset and not wanted.search:
        raise ValueError("a cursor and an offset exclude each other")
    if wanted.is_empty or passing is None:
        return _of_all(connection, form, before=before, offset=offset, limit=limit)
    if not wanted.search:
        return _filtered(connection, wanted, passing.all, form, before=before, offset=offset, limit=limit)
    over = monotonic() + SEARCH_SECONDS
    return _searched(
        connection,
        wanted,
        passing.all,
        form,
        before=before,
        offset=offset,
        limit=limit,
        is_over=lambda: monotonic() >= over,
    )


def _of_all(
    connection: sqlite3.Connection, form: EventForm[E], *, before: int, offset: int, limit: int
) -> EventPage[E]:
    sql = _whole(form.sql, is_deep=offset > 0)
    place = {"before": before or _HIGHEST, "offset": offset, "limit": limit + 1}
    count, *row = connection.execute(sql, place).fetchone()
    return _page(form, row, limit, count)


@cache
def _whole(form: str, *, is_deep: bool) -> str:
    return _DEEP + _WHOLE.format(form=form, rows=_SKIPPED) if is_deep else _WHOLE.format(form=form, rows=_NEXT)


def _filtered(
    connection: sqlite3.Connection,
    wanted: EventFilter,
    ranges: tuple[IdRange, ...],
    form: EventForm[E],
    *,
    before: int,
    offset: int,
    limit: int,
) -> EventPage[E]:
    count = sum(id_range.passing for id_range in ranges)
    if limit == 0 or offset >= count:
        return EventPage(events=form.empty, last=None, count=count, next_cursor=None)
    high, over = (before, 0) if before else _start_of(connection, wanted, ranges, offset)
    enough = _enough(connection, wanted, ranges, high, over + limit + 1)
    where, values = conditions(wanted)
    path = _path(connection, wanted, enough)
    ids = f"SELECT id FROM event {path} WHERE id >= ? AND id < ?{where} ORDER BY id DESC LIMIT ? OFFSET ?"
    row = _of_ids(connection, form, ids, (enough.low, enough.high, *values, limit + 1, over))
    return _page(form, row, limit, count)


def _page(form: EventForm[E], row: Row, limit: int, count: int) -> EventPage[E]:
    """Make a page of a row that was fetched with one event more than `limit`, to see whether there are more."""
    ids, events = form.of_row(row, limit)
    last = ids[min(limit, len(ids)) - 1] if ids and limit else None
    return EventPage(events=events, last=last, count=count, next_cursor=last if len(ids) > limit else None)


def _of_ids(connection: sqlite3.Connection, form: EventForm[E], ids: str, values: Values) -> Row:
    """Fetch the events of these ids, newest first. `ids`: SQL, with `values` for its parameters."""
    row: Row = connection.execute(
        f"SELECT {form.sql} FROM (SELECT * FROM event WHERE id IN ({ids}) ORDER BY id DESC LIMIT {_HIGHEST})", values
    ).fetchone()
    return row


def _start_of(
    connection: sqlite3.Connection, wanted: EventFilter, ranges: tuple[IdRange, ...], offset: int
) -> tuple[int, int]:
    """Return the id below which the page at `offset` begins, and how many matches to skip from there."""
    for id_range in ranges:
        if offset < id_range.passing:
            for fine in finer(connection, wanted, id_range):
                if offset < fine.passing:
                    return fine.high, offset
                offset -= fine.passing
        offset -= id_range.passing
    return 0, 0


def _enough(
    connection: sqlite3.Connection, wanted: EventFilter, ranges: tuple[IdRange, ...], high: int, wish: int
) -> IdRange:
    """Return the range from `high` down that is large enough for `wish` matching events."""
    events = passing = 0
    low = high
    for id_range in ranges:
        if id_range.low >= high:
            continue
        whole = passing + id_range.passing < wish and id_range.high <= high
        for part in (id_range,) if whole else finer(connection, wanted, id_range):
            if part.low >= high or passing >= wish:
                continue
            low = part.low
            events += part.events
            if part.high <= high:
                passing += part.passing
        if passing >= wish:
            break
    return IdRange(low, high, events, passing)


def _path(connection: sqlite3.Connection, wanted: EventFilter, within: IdRange) -> str:
    """Return the SQL clause for the index with which the matches of a range are found quickest."""
    if not wanted.device_ids and not wanted.types:
        return "NOT INDEXED"
    if within.passing * _DENSE >= within.events and within.events:
        return "NOT INDEXED"
    if not wanted.types:
        return "INDEXED BY event_by_device"
    if not wanted.device_ids:
        return "INDEXED BY event_by_type"
    of_devices, of_types = (
        sum(id_range.passing for id_range in listed(connection, one, FINE, within))
        for one in (EventFilter(device_ids=wanted.device_ids), EventFilter(types=wanted.types))
    )
    return "INDEXED BY event_by_device" if of_devices <= of_types else "INDEXED BY event_by_type"


def _searched(
    connection: sqlite3.Connection,
    wanted: EventFilter,
    ranges: tuple[IdRange, ...],
    form: EventForm[E],
    *,
    before: int,
    offset: int,
    limit: int,
    is_over: Callable[[], bool],
) -> EventPage[E]:
    """Search for text until the page is full or the time is over."""
    is_exact = sum(id_range.passing for id_range in ranges) <= EXACT_SEARCH
    top = _HIGHEST if is_exact or not before else before
    wish = offset + limit + 1
    found: list[int] = []
    looked, reached, complete = 0, 0, True
    for part in _searchable(connection, wanted, ranges, top):
        if not is_exact and looked > EXACT_SEARCH and (len(found) >= wish or is_over()):
            complete = False
            break
        found += _matching(connection, wanted, part)
        looked += part.passing
        reached = part.low
    below = [number for number in found if not before or number < before]
    page = below[offset : offset + limit]
    following = None if complete else reached
    if len(below) > offset + limit:
        following = page[-1] if page else None
    _, events = form.of_row(_of_ids(connection, form, places(page), tuple(page)), limit)
    return EventPage(
        events=events,
        last=page[-1] if page else None,
        count=len(found),
        next_cursor=following,
        complete=complete and (is_exact or not before),
    )


def _searchable(
    connection: sqlite3.Connection, wanted: EventFilter, ranges: tuple[IdRange, ...], top: int
) -> Iterator[IdRange]:
    """Yield the parts of a search, newest first, each small enough for one statement, with ids below `top` only."""
    for id_range in ranges:
        is_small = id_range.passing <= AT_A_LOOK
        for part in (id_range,) if is_small else finer(connection, wanted, id_range):
            if part.passing and part.low < top:
                yield replace(part, high=min(part.high, top))


def _matching(connection: sqlite3.Connection, wanted: EventFilter, part: IdRange) -> list[int]:
    """Return the ids of a search's matches in one of its parts, newest first."""
    where, values = conditions(wanted)
    match = search_in(wanted.search, texts=("description",), names=("name",))
    found = one_value(
        connection,
        f"SELECT json_group_array(id) FROM event {_path(connection, wanted, part)} WHERE id >= ? AND id < ?{where}"
        f" AND {match.sql}",
        (part.low, part.high, *values, *match.values),
    )
    return sorted(json.loads(found), reverse=True)
