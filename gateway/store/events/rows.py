"""Forms in which events are read: as objects, or directly as the interface's JSON text.

Whatever it is comes as one value, because a thread that steps from row to row waits for the interpreter at every row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gateway.domain.events import RecordedEvent

COLUMNS = (
    "id, device_id, type, category, subcategory, name, description, date_at, clock_trusted, lane_id, data, recorded_at"
)
_PART = 32 * 1024
_MICROS = "(({moment} % 1000000 + 1000000) % 1000000)"
_ISO = (  # iso_utc: cut off to the millisecond, also before 1970
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
class Form(Generic[E]):
    """Form in which events are read.

    Attributes:
        sql: two values of all rows of `event` that there are, the first of them a JSON list of their ids. Rows come
            newest first.
        made: what becomes of the second value: of its first so many events, newest first.
    """

    sql: str
    made: Callable[[Any, int], E]

    @property
    def empty(self) -> E:
        """No events."""
        return self.made(None, 0)

    def of_row(self, row: Row, limit: int) -> tuple[list[int], E]:
        """Return the ids of all that was fetched, newest first, and the first `limit` events."""
        ids, events = row
        return json.loads(ids), self.made(events, limit)


def event_of(row: Row) -> RecordedEvent:
    """Return an event of its columns."""
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


def _objects(rows: str | None, limit: int) -> tuple[RecordedEvent, ...]:
    return tuple(event_of(row) for row in json.loads(rows or "[]")[:limit])


def _parts(lines: str | None, limit: int) -> tuple[bytes, ...]:
    """Return parts of some length, so that nobody waits for the interpreter while a page of very long events is
    made.
    """
    parts, part, length = list[bytes](), list[str](), 0
    for line in lines.split("\n")[:limit] if lines else ():
        part.append(line)
        length += len(line)
        if length >= _PART:
            parts.append(",".join(part).encode())
            part, length = [], 0
    if part:
        parts.append(",".join(part).encode())
    return tuple(parts)


RECORDED: Form[tuple[RecordedEvent, ...]] = Form(
    f"json_group_array(id), json_group_array(json_array({COLUMNS}))", _objects
)
"""Events as objects."""
JSON_TEXTS: Form[tuple[bytes, ...]] = Form(f"json_group_array(id), group_concat({_RECORD}, char(10))", _parts)
"""Events as the JSON text of the interface's `EventRecord`s, in parts that are to stand with commas between them."""
