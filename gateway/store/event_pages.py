"""Pages of events, found by what stretches of ids hold (tables `event_stretch`, `event_share`), without counting them.

A page 5,000,000 events deep and the count of a filter are sums over stretches; only in the stretches at the two ends of
a span of time, and in the one where a page begins, events themselves are looked at. A search looks at the text of
events, newest first, and at no more than `MOST_SEARCHED` of them for one page.

Everything runs in a reading thread; what is fetched comes as one value, because a thread that steps from row to row
waits for the interpreter at every row.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.domain.events import RecordedEvent

EXACT_SEARCH = 10_000
"""Up to so many events a search looks at all of them, and its count is of all."""
MOST_SEARCHED = 200_000
"""Events that a search looks at for one page at most."""

COLUMNS = (
    "id, device_id, type, category, subcategory, name, description, date_at, clock_trusted, lane_id, data, recorded_at"
)
_COARSE, _FINE = 17, 12
_ANY = -1
_AT_A_LOOK = 1 << _FINE
_DENSE = 20  # one event in so many: looking at each is quicker than sorting what an index finds

Values = tuple[object, ...]
Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are asked for; empty fields do not filter. Wall micros, from inclusive, until exclusive."""

    device_ids: tuple[int, ...] = ()
    types: tuple[int, ...] = ()
    search: str = ""
    date_from: int | None = None
    date_until: int | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events by descending id.

    Attributes:
        count: of all matches; while not `complete`, of those among the events that were looked at.
        next_cursor: continues into older events, None at the end. It may be there when the page is not full.
        complete: whether every event was looked at; only a search among many events may end before.
        newest: the newest id of all events at that moment, 0 for none.
    """

    events: tuple[RecordedEvent, ...]
    count: int
    next_cursor: int | None
    complete: bool = True
    newest: int = 0


@dataclass(frozen=True, slots=True)
class Stretch:
    """Ids from `low` to before `high`: how many events there are, how many pass, and whether the dates cut through."""

    low: int
    high: int
    events: int
    passing: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Stretches:
    """What a filter lets pass, newest first: coarse stretches, and fine ones where the dates cut through.

    `newest` tells this moment of the database from a later one: the last stretch and how many events it holds.
    """

    newest: tuple[int, int] | None
    all: tuple[Stretch, ...]


def read_page(
    connection: sqlite3.Connection,
    wanted: EventFilter,
    passing: Stretches,
    *,
    before: int,
    offset: int,
    limit: int,
) -> EventPage:
    """Events by descending id, from below `before` (0: the newest) on, passing over `offset` of them.

    `passing`: what `read_stretches` says for the same filter, its search aside, at the same moment.
    """
    stretches = passing.all
    if wanted.search:
        return _searched(connection, wanted, stretches, before=before, offset=offset, limit=limit)
    count = sum(stretch.passing for stretch in stretches)
    if limit == 0 or offset >= count:
        return EventPage(events=(), count=count, next_cursor=None)
    high, over = (before, offset) if before else _start_of(connection, wanted, stretches, offset)
    if before and over:
        raise ValueError("a cursor and an offset exclude each other")
    enough = _enough(connection, wanted, stretches, high, over + limit + 1)
    rows = _rows(connection, wanted, enough, over=over, limit=limit + 1)
    events = tuple(event_of(row) for row in rows[:limit])
    return EventPage(events=events, count=count, next_cursor=events[-1].id if len(rows) > limit else None)


def read_stretches(connection: sqlite3.Connection, wanted: EventFilter, known: Stretches | None = None) -> Stretches:
    """All stretches with events that pass: `known` ones, unless there are newer events by now."""
    newest = connection.execute(
        f"SELECT stretch, count FROM event_stretch WHERE span = {_FINE} ORDER BY stretch DESC LIMIT 1"
    ).fetchone()
    if known is not None and known.newest == newest:
        return known
    found: list[Stretch] = []
    for coarse in _listed(connection, wanted, _COARSE):
        if not coarse.is_cut:
            found.append(coarse)
            continue
        finer = _finer(connection, wanted, coarse)
        found += (_counted(connection, wanted, fine) if fine.is_cut else fine for fine in finer)
    return Stretches(newest, tuple(stretch for stretch in found if stretch.passing))


def _listed(
    connection: sqlite3.Connection, wanted: EventFilter, span: int, within: Stretch | None = None
) -> Iterator[Stretch]:
    """Stretches of that span that are not wholly outside the dates, newest first."""
    passing, values = _passing(wanted)
    dates, bounds = _dated(wanted, "date_max >= ?", "date_min < ?")
    inside, ends = (
        (" AND stretch >= ? AND stretch < ?", (within.low >> span, within.high >> span)) if within else ("", ())
    )
    listed = _one(
        connection,
        f"SELECT json_group_array(json_array(stretch, count, {passing}, date_min, date_max)) FROM event_stretch"
        f" WHERE span = {span}{inside}{dates}",
        (*values, *ends, *bounds),
    )
    since, until = wanted.date_from, wanted.date_until
    for place, events, passes, earliest, latest in sorted(json.loads(listed), reverse=True):
        cut = (since is not None and earliest < since) or (until is not None and latest >= until)
        yield Stretch(place << span, (place + 1) << span, events, passes or 0, cut)


def _passing(wanted: EventFilter) -> tuple[str, Values]:
    """How many events of a stretch pass, its dates aside."""
    if not wanted.device_ids and not wanted.types:
        return "count", ()
    devices, types = wanted.device_ids or (_ANY,), wanted.types or (_ANY,)
    return (
        "(SELECT sum(share.count) FROM event_share AS share WHERE share.span = event_stretch.span"
        " AND share.stretch = event_stretch.stretch"
        f" AND share.device_id IN ({_places(devices)}) AND share.type IN ({_places(types)}))"
    ), (*devices, *types)


def _finer(connection: sqlite3.Connection, wanted: EventFilter, coarse: Stretch) -> Iterator[Stretch]:
    """The fine stretches of one that is not fine yet; a fine one is its own."""
    if coarse.high - coarse.low <= _AT_A_LOOK:
        yield coarse
    else:
        yield from _listed(connection, wanted, _FINE, coarse)


def _counted(connection: sqlite3.Connection, wanted: EventFilter, fine: Stretch) -> Stretch:
    """A stretch that the dates cut through, with those counted that pass."""
    where, values = _where(wanted)
    passing = _one(
        connection,
        f"SELECT count(*) FROM event NOT INDEXED WHERE id >= ? AND id < ?{where}",
        (fine.low, fine.high, *values),
    )
    return replace(fine, passing=passing)


def _start_of(
    connection: sqlite3.Connection, wanted: EventFilter, stretches: tuple[Stretch, ...], offset: int
) -> tuple[int, int]:
    """Below which id to begin, and how many to pass over from there."""
    for stretch in stretches:
        if offset < stretch.passing:
            for fine in _finer(connection, wanted, stretch):
                if offset < fine.passing:
                    return fine.high, offset
                offset -= fine.passing
        offset -= stretch.passing
    return 0, 0


def _enough(
    connection: sqlite3.Connection, wanted: EventFilter, stretches: tuple[Stretch, ...], high: int, wish: int
) -> Stretch:
    """From `high` downwards as far as it takes for `wish` events that pass."""
    events = passing = 0
    low = high
    for stretch in stretches:
        if stretch.low >= high:
            continue
        whole = passing + stretch.passing < wish and stretch.high <= high
        for part in (stretch,) if whole else _finer(connection, wanted, stretch):
            if part.low >= high or passing >= wish:
                continue
            low = part.low
            events += part.events
            if part.high <= high:
                passing += part.passing
        if passing >= wish:
            break
    return Stretch(low, high, events, passing)


def _rows(connection: sqlite3.Connection, wanted: EventFilter, within: Stretch, *, over: int, limit: int) -> list[Row]:
    where, values = _where(wanted)
    path = _path(connection, wanted, within)
    ids = f"SELECT id FROM event {path} WHERE id >= ? AND id < ?{where} ORDER BY id DESC LIMIT ? OFFSET ?"
    found = _one(
        connection,
        f"SELECT json_group_array(json_array({COLUMNS})) FROM event WHERE id IN ({ids})",
        (within.low, within.high, *values, limit, over),
    )
    return sorted(json.loads(found), reverse=True)


def _path(connection: sqlite3.Connection, wanted: EventFilter, within: Stretch) -> str:
    """By which index the events of a stretch are gone through."""
    if not wanted.device_ids and not wanted.types:
        return "NOT INDEXED"
    if within.passing * _DENSE >= within.events and within.events:
        return "NOT INDEXED"
    if not wanted.types:
        return "INDEXED BY event_by_device"
    if not wanted.device_ids:
        return "INDEXED BY event_by_type"
    of_devices, of_types = (
        sum(stretch.passing for stretch in _listed(connection, one, _FINE, within))
        for one in (EventFilter(device_ids=wanted.device_ids), EventFilter(types=wanted.types))
    )
    return "INDEXED BY event_by_device" if of_devices <= of_types else "INDEXED BY event_by_type"


def _searched(
    connection: sqlite3.Connection,
    wanted: EventFilter,
    stretches: tuple[Stretch, ...],
    *,
    before: int,
    offset: int,
    limit: int,
) -> EventPage:
    """What a search finds. It ends when the page is full, or enough was looked at."""
    is_exact = sum(stretch.passing for stretch in stretches) <= EXACT_SEARCH
    wish = offset + limit + 1
    found: list[int] = []
    looked, reached, complete = 0, 0, True
    for part in _parts(connection, wanted, stretches):
        high = part.high if is_exact or not before else min(part.high, before)
        if high <= part.low:
            continue
        if not is_exact and (looked >= MOST_SEARCHED or (looked >= EXACT_SEARCH and len(found) >= wish)):
            complete = False
            break
        found += _matching(connection, wanted, replace(part, high=high))
        looked += part.passing
        reached = part.low
    below = [number for number in found if not before or number < before]
    page = below[offset : offset + limit]
    following = None if complete else reached
    if len(below) > offset + limit:
        following = page[-1] if page else None
    return EventPage(
        events=_by_ids(connection, page),
        count=len(found),
        next_cursor=following,
        complete=complete and (is_exact or not before),
    )


def _parts(connection: sqlite3.Connection, wanted: EventFilter, stretches: tuple[Stretch, ...]) -> Iterator[Stretch]:
    """Stretches that can be looked through at once, newest first."""
    for stretch in stretches:
        if stretch.passing <= _AT_A_LOOK:
            yield stretch
        else:
            yield from (fine for fine in _finer(connection, wanted, stretch) if fine.passing)


def _matching(connection: sqlite3.Connection, wanted: EventFilter, part: Stretch) -> list[int]:
    """Ids of what a search finds in a stretch, newest first."""
    where, values = _where(wanted)
    pattern = "%" + wanted.search.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    found = _one(
        connection,
        f"SELECT json_group_array(id) FROM event {_path(connection, wanted, part)} WHERE id >= ? AND id < ?{where}"
        " AND (description LIKE ? ESCAPE '\\' OR name LIKE ? ESCAPE '\\')",
        (part.low, part.high, *values, pattern, pattern),
    )
    return sorted(json.loads(found), reverse=True)


def _by_ids(connection: sqlite3.Connection, ids: list[int]) -> tuple[RecordedEvent, ...]:
    if not ids:
        return ()
    found = _one(
        connection,
        f"SELECT json_group_array(json_array({COLUMNS})) FROM event WHERE id IN ({_places(ids)})",
        tuple(ids),
    )
    return tuple(event_of(row) for row in sorted(json.loads(found), reverse=True))


def _where(wanted: EventFilter) -> tuple[str, Values]:
    """The condition but for the search, made only of our own words with a place for each value."""
    parts, values = [""], list[object]()
    if wanted.device_ids:
        parts.append(f"device_id IN ({_places(wanted.device_ids)})")
        values += wanted.device_ids
    if wanted.types:
        parts.append(f"type IN ({_places(wanted.types)})")
        values += wanted.types
    dates, bounds = _dated(wanted, "date_at >= ?", "date_at < ?")
    return " AND ".join(parts) + dates, (*values, *bounds)


def _dated(wanted: EventFilter, since: str, until: str) -> tuple[str, Values]:
    asked = ((since, wanted.date_from), (until, wanted.date_until))
    parts = [(part, moment) for part, moment in asked if moment is not None]
    return "".join(f" AND {part}" for part, _ in parts), tuple(moment for _, moment in parts)


def _places(values: tuple[int, ...] | list[int]) -> str:
    return ", ".join("?" * len(values))


def _one(connection: sqlite3.Connection, sql: str, values: Values) -> Any:
    """The one value that a statement gives."""
    return connection.execute(sql, values).fetchone()[0]


def event_of(row: Row) -> RecordedEvent:
    """An event of its columns."""
    number, device_id, kind, category, subcategory, name, description, date_at, trusted, lane_id, data, late = row
    return RecordedEvent(
        id=number,
        device_id=device_id,
        type=kind,
        category=category,
        subcategory=subcategory,
        name=name,
        description=description,
        date_at=date_at,
        clock_trusted=bool(trusted),
        lane_id=lane_id,
        data=data,
        recorded_at=late,
    )
