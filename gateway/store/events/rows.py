"""Forms in which events are read: as objects, or directly as the interface's JSON text.

Either form comes out of SQLite as one value, because a thread waits for the interpreter lock at every row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gateway.domain.events import RecordedEvent

COLUMNS = (
    "id, device_id, type, category, subcategory, name, description, date_at, clock_trusted, lane_id, data, recorded_at,"
    " said"
)
_PART = 32 * 1024
_MICROS = "(({moment} % 1000000 + 1000000) % 1000000)"
_ISO = (  # the same as iso_utc: truncated to milliseconds, also before 1970
    f"strftime('%Y-%m-%dT%H:%M:%S', ({{moment}} - {_MICROS}) / 1000000, 'unixepoch')"
    f" || printf('.%03dZ', {_MICROS} / 1000)"
)
_FIELDS = (
    "'id', id, 'device_id', device_id, 'type', type, 'category', category, 'subcategory', subcategory, 'name', name,"
    f" 'description', description, 'date_at', {_ISO.format(moment='date_at')}, 'data', data, 'lane_id', lane_id,"
    " 'clock_trusted', json(iif(clock_trusted, 'true', 'false'))"
)
_RECORD = (
    f"CASE WHEN recorded_at IS NULL THEN json_object({_FIELDS}, 'late', json('false'))"
    f" ELSE json_object({_FIELDS}, 'late', json('true'), 'recorded_at', {_ISO.format(moment='recorded_at')}) END"
)

Row = Sequence[Any]
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class EventForm(Generic[E]):
    """Form in which events are read.

    Attributes:
        sql: two aggregates over rows of `event`, newest first: a JSON list of their ids, and their content.
        made: converts the second aggregate (None without rows) and the greatest number of events to the result.
    """

    sql: str
    made: Callable[[Any, int], E]

    @property
    def empty(self) -> E:
        """The result without any events."""
        return self.made(None, 0)

    def of_row(self, row: Row, limit: int) -> tuple[list[int], E]:
        """Return the ids of all fetched events, newest first, and the first `limit` events."""
        ids, events = row
        return json.loads(ids), self.made(events, limit)


def event_of(row: Row) -> RecordedEvent:
    """Return the event of a row of `COLUMNS`."""
    number, device_id, kind, category, subcategory, name, description, date_at, trusted, lane_id, data, late, said = row
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
        said=said,
    )


def _objects(rows: str | None, limit: int) -> tuple[RecordedEvent, ...]:
    return tuple(event_of(row) for row in json.loads(rows or "[]")[:limit])


def _parts(lines: str | None, limit: int) -> tuple[bytes, ...]:
    """Join lines with commas into parts of about 32 KB, which together are the content of a JSON list.

    One join of very long events would hold the interpreter lock too long.
    """
    parts, part, length = list[bytes](), list[str](), 0
    for line in lines.split("\n")[:limit] if lines else ():
        if length >= _PART:
            parts.append(",".join((*part, "")).encode())
            part, length = [], 0
        part.append(line)
        length += len(line)
    return (*parts, ",".join(part).encode())


RECORDED: EventForm[tuple[RecordedEvent, ...]] = EventForm(
    f"json_group_array(id), json_group_array(json_array({COLUMNS}))", _objects
)
"""Events as objects."""
JSON_TEXTS: EventForm[tuple[bytes, ...]] = EventForm(f"json_group_array(id), group_concat({_RECORD}, char(10))", _parts)
"""Events as JSON text of the interface's `EventRecord`s, in parts to be joined with commas."""
JSON_TEXT = _RECORD
"""SQL for one event as JSON text of the interface's `EventRecord`."""
