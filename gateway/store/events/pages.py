"""Pages of events, found by the counts per range of ids (tables `event_range`, `event_range_count`).

The beginning of a page, even 5,000,000 events deep, and the count of a filter are sums over ranges. Events themselves
are read only in the ranges at the two ends of a time span and in the one where the page begins. A search reads the text
of events, newest first, and of at most `MOST_SEARCHED` events for one page: of candidates where there is an index
(`text_index`), else of all.

Everything runs in a reading thread.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Generic, TypeVar

from gateway.store.engine.text_search import search_in
from gateway.store.events.id_ranges import (
    AT_A_LOOK,
    COARSE,
    FINE,
    EventFilter,
    IdRange,
    IdRanges,
    Values,
    conditions,
    finer,
    listed,
    one_value,
    places,
    read_ranges,
)
from gateway.store.events.rows import RECORDED, Form, Row
from gateway.store.events.text_index import Candidates

__all__ = ["EXACT_SEARCH", "MOST_SEARCHED", "EventFilter", "EventPage", "read_page", "read_ranges"]

EXACT_SEARCH = 10_000
"""Up to this number of events a search looks at all of them, so that its count is exact."""
MOST_SEARCHED = 200_000
"""The greatest number of events that a search looks at for one page."""

_DENSE = 20  # if at least one event in 20 matches, reading all is quicker than sorting the results of an index
_HIGHEST = 2**63 - 1
_CANDIDATE_COST = 10  # candidates are apart on the disk: reading one takes about as long as 10 events in a row

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


def read_page(
    connection: sqlite3.Connection,
    wanted: EventFilter,
    passing: IdRanges | None,
    *,
    before: int,
    offset: int,
    limit: int,
    form: Form[E] = RECORDED,  # type: ignore[assignment]  # mypy takes it for the default of every E
) -> EventPage[E]:
    """Return a page of events by descending id, from below `before` (0: the newest) on, skipping `offset` of them.

    `passing`: the result of `read_ranges` for the same filter without its search, in the same snapshot. None for an
    empty filter: such a page is one statement, and therefore consistent even outside a transaction.
    """
    if before and offset and not wanted.search:
        raise ValueError("a cursor and an offset exclude each other")
    if wanted.is_empty or passing is None:
        return _of_all(connection, form, before=before, offset=offset, limit=limit)
    read = _searched if wanted.search else _filtered
    return read(connection, wanted, passing.all, form, before=before, offset=offset, limit=limit)


def _of_all(connection: sqlite3.Connection, form: Form[E], *, before: int, offset: int, limit: int) -> EventPage[E]:
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
    form: Form[E],
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


def _page(form: Form[E], row: Row, limit: int, count: int) -> EventPage[E]:
    """Make a page of a row that was fetched with one event more than `limit`, to see whether there are more."""
    ids, events = form.of_row(row, limit)
    last = ids[min(limit, len(ids)) - 1] if ids and limit else None
    return EventPage(events=events, last=last, count=count, next_cursor=last if len(ids) > limit else None)


def _of_ids(connection: sqlite3.Connection, form: Form[E], ids: str, values: Values) -> Row:
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
    form: Form[E],
    *,
    before: int,
    offset: int,
    limit: int,
) -> EventPage[E]:
    """Search for text until the page is full or MOST_SEARCHED events were looked at."""
    is_exact = sum(id_range.passing for id_range in ranges) <= EXACT_SEARCH
    top = _HIGHEST if is_exact or not before else before
    wish = offset + limit + 1
    found: list[int] = []
    looked, reached, complete = 0, 0, True
    for look in _looks(connection, wanted, ranges, top, None if is_exact else Candidates(connection, wanted.search)):
        if not is_exact and (looked >= MOST_SEARCHED or (looked >= EXACT_SEARCH and len(found) >= wish)):
            complete = False
            break
        found += _matching(connection, wanted, look)
        looked += look.cost
        reached = look.low
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


@dataclass(frozen=True, slots=True)
class _Look:
    """A part of a search, small enough for one statement.

    Attributes:
        low: the search has looked at everything down to this id once it is done.
        high: the id after the last.
        cost: the number of events to look at; a candidate counts as several.
        path: the SQL clause for the index by which they are found.
        candidates: their ids; None for all events that pass the filter.
    """

    low: int
    high: int
    cost: int
    path: str = "NOT INDEXED"
    candidates: tuple[int, ...] | None = None


def _looks(
    connection: sqlite3.Connection,
    wanted: EventFilter,
    ranges: tuple[IdRange, ...],
    top: int,
    candidates: Candidates | None,
) -> Iterator[_Look]:
    """Yield the parts of a search, newest first, with ids below `top` only."""
    for id_range in ranges:
        for part in _searchable(connection, wanted, id_range, candidates):
            high = min(part.high, top)
            if high <= part.low:
                continue
            within = replace(part, high=high)
            if candidates is None or not candidates.serves(part):
                yield _Look(part.low, high, part.passing, _path(connection, wanted, within))
                continue
            found = candidates.within(within)
            while some := tuple(islice(found, AT_A_LOOK // _CANDIDATE_COST)):
                yield _Look(some[-1], high, _CANDIDATE_COST * len(some), candidates=some)
            yield _Look(part.low, part.low, 0)


def _searchable(
    connection: sqlite3.Connection, wanted: EventFilter, id_range: IdRange, candidates: Candidates | None
) -> Iterator[IdRange]:
    """Yield a range as it is if it is indexed or has few events, else its fine ranges, newest first."""
    if id_range.passing <= AT_A_LOOK or (candidates is not None and candidates.serves(id_range)):
        yield id_range
    else:
        yield from (fine for fine in finer(connection, wanted, id_range) if fine.passing)


def _matching(connection: sqlite3.Connection, wanted: EventFilter, look: _Look) -> list[int]:
    """Return the ids of a search's matches in one of its parts, newest first."""
    if not look.cost:
        return []
    where, values = conditions(wanted)
    match = search_in(wanted.search, texts=("description",), names=("name",))
    which = "id >= ? AND id < ?"
    bounds: Values = (look.low, look.high)
    if look.candidates is not None:
        which, bounds = "id IN (SELECT value FROM json_each(?))", (json.dumps(look.candidates),)
    found = one_value(
        connection,
        f"SELECT json_group_array(id) FROM event {look.path} WHERE {which}{where} AND {match.sql}",
        (*bounds, *values, *match.values),
    )
    return sorted(json.loads(found), reverse=True)
