"""Footage of a camera event, even if the clock was set during recording or later.

Wall and monotonic time are stored with footage and events. If they agree, wall times decide. If the clock was set in
between, the monotonic time decides, provided that both are of the same boot.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gateway.domain.events import EventKind
from gateway.domain.footage import GapReason, Missing, left_out, missing_between
from gateway.domain.passages import CameraEvent
from gateway.store.engine.faults import refused
from gateway.store.footage.segment_rows import COLUMNS, Segment, segment_of

LONGEST_SEGMENT = 120_000_000
"""The longest segment that is written, in micros. It bounds look-ups by time."""

LONGEST_PIN = 3_600_000_000
"""The longest time that a camera event pins, in micros. It bounds the look-up of a segment's pins."""

_CLOCK_WAS_SET = 1_000_000
"""If wall and monotonic time differ by more than this many micros within an event, somebody set the clock."""
_MOST_OF_EVENT = 5_000

_IS_SET_APART = (
    "pin.boot_id = segment.boot_id AND pin.boot_id <> ''"
    f" AND abs(segment.monotonic + pin.clock_offset - segment.started_at) > {_CLOCK_WAS_SET}"
)
_KEEPS = (
    "(pin.date_at >= CASE pin.incident WHEN 0 THEN :transactions_from ELSE :incidents_from END"
    " OR (pin.boot_id = :boot_id AND :boot_id <> '' AND pin.date_at - pin.clock_offset"
    " >= CASE pin.incident WHEN 0 THEN :transactions_uptime ELSE :incidents_uptime END)"
    " OR EXISTS (SELECT 1"
    " FROM outbox WHERE outbox.kind = 'camera_event' AND outbox.record_id = pin.id))"
)
HELD = (
    "(EXISTS (SELECT 1 FROM camera_event AS pin INDEXED BY camera_event_by_pin WHERE pin.camera_id = segment.camera_id"
    f" AND pin.pinned_from > segment.started_at - {LONGEST_PIN}"
    " AND pin.pinned_from < segment.started_at + segment.duration"
    f" AND pin.pinned_until > segment.started_at AND NOT ({_IS_SET_APART}) AND {_KEEPS})"
    " OR EXISTS (SELECT 1 FROM camera_event AS pin INDEXED BY camera_event_by_uptime"
    f" WHERE pin.camera_id = segment.camera_id AND {_IS_SET_APART}"
    f" AND pin.pinned_from - pin.clock_offset > segment.monotonic - {LONGEST_PIN}"
    " AND pin.pinned_from - pin.clock_offset < segment.monotonic + segment.duration"
    f" AND pin.pinned_until - pin.clock_offset > segment.monotonic AND {_KEEPS}))"
)
"""SQL condition: a row of `segment` is footage of a camera event that still keeps it, by the rules of `footage_of`.

A camera event keeps its footage while central does not have it. It also does if it is younger than the limit of its
class: the parameters `transactions_from` and `incidents_from` (wall micros), or, for camera events of the boot
`boot_id`, `transactions_uptime` and `incidents_uptime` (monotonic micros).
"""


def held_files(site_database: Path) -> tuple[str, ...]:
    """Return the files of footage that camera events hold, relative to the media folder. Blocks on the disk.

    `site_database` is a copy of `site.db` that nobody writes. Raises StoreError when it cannot be read.
    """
    always = dict.fromkeys(("transactions_from", "incidents_from", "transactions_uptime", "incidents_uptime"), 0)
    try:
        with closing(sqlite3.connect(site_database)) as connection:
            rows = connection.execute(
                f"SELECT path FROM segment WHERE garbage = 0 AND {HELD} ORDER BY id", always | {"boot_id": ""}
            )
            return tuple(path for (path,) in rows)
    except sqlite3.Error as error:
        raise refused(site_database, error, "it cannot be read") from error


def missing_of(connection: sqlite3.Connection, item: CameraEvent) -> tuple[Missing, ...]:
    """Return the spans of a camera event that have no footage, or footage in another codec than its clip, in order."""
    edges = [segment.edge for segment in footage_of(connection, item)]
    following = _neighbour(connection, item.camera_id, "started_at >= ?", item.pinned_until, "started_at")
    after = _why_nothing_follows(connection, item.camera_id) if following is None else following.gap
    missing = [
        replace(gap, reason=_why_gone(connection, item.camera_id, gap)) if gap.reason is GapReason.NONE else gap
        for gap in missing_between(edges, item.pinned_from, item.pinned_until, after=after)
    ]
    missing += left_out(edges, item.pinned_from, item.pinned_until)
    return tuple(sorted(missing, key=lambda one: one.begin))


class _Neighbour(NamedTuple):
    gap: GapReason
    number: int | None


def _neighbour(
    connection: sqlite3.Connection, camera_id: int, where: str, moment: int, order: str
) -> _Neighbour | None:
    row = connection.execute(
        f"SELECT gap, number FROM segment WHERE camera_id = ? AND {where} AND garbage = 0 ORDER BY {order} LIMIT 1",
        (camera_id, moment),
    ).fetchone()
    return None if row is None else _Neighbour(GapReason(row[0]), row[1])


def _why_nothing_follows(connection: sqlite3.Connection, camera_id: int) -> GapReason:
    """Return why a camera has no footage after an event, as far as the store knows."""
    if connection.execute("SELECT 1 FROM segment WHERE camera_id = ? AND garbage = 0 LIMIT 1", (camera_id,)).fetchone():
        return GapReason.AWAY
    recorded = connection.execute("SELECT 1 FROM footage_chain WHERE camera_id = ?", (camera_id,)).fetchone()
    return GapReason.DELETED if recorded else GapReason.NEVER


def _why_gone(connection: sqlite3.Connection, camera_id: int, gap: Missing) -> GapReason:
    """Return why recorded footage is gone; NONE if none was recorded in this span.

    Segments are numbered without gaps as they are recorded, so missing numbers mean that segments were deleted or lost.
    """
    after = _neighbour(connection, camera_id, "started_at >= ?", gap.end, "started_at")
    before = _neighbour(connection, camera_id, "started_at < ?", gap.end, "started_at DESC")
    number = 0 if before is None else before.number
    if after is None or after.number is None or number is None or after.number - number <= 1:
        return GapReason.NONE
    lost = connection.execute(
        "SELECT 1 FROM event WHERE device_id = ? AND type = ? AND json_extract(data, '$.reason') = 'lost'"
        " AND json_extract(data, '$.from') < ? AND json_extract(data, '$.until') > ? LIMIT 1",
        (camera_id, EventKind.FOOTAGE_GAP.value, gap.end, gap.begin),
    ).fetchone()
    return GapReason.LOST if lost else GapReason.DELETED


def footage_of(connection: sqlite3.Connection, event: CameraEvent) -> tuple[Segment, ...]:
    """Return the footage of a camera event, by start, with the times that the event's clock would have shown."""
    found = {
        row[0]: segment_of(row)
        for row in connection.execute(
            f"SELECT {COLUMNS} FROM segment WHERE camera_id = ? AND started_at > ? AND started_at < ?"
            " AND started_at + duration > ? AND garbage = 0",
            (event.camera_id, event.pinned_from - LONGEST_SEGMENT, event.pinned_until, event.pinned_from),
        )
    }
    if event.boot_id:
        found |= {segment.id: segment for segment in _recorded_then(connection, event)}
    footage = (_as_stamped(segment, event) for segment in found.values())
    return tuple(
        sorted(
            (item for item in footage if item.ended_at > event.pinned_from and item.started_at < event.pinned_until),
            key=lambda item: (item.started_at, item.id),
        )
    )


def _recorded_then(connection: sqlite3.Connection, event: CameraEvent) -> Iterator[Segment]:
    """Yield the footage recorded during the event in the same boot, in the order of recording."""
    low, high = connection.execute(
        "SELECT coalesce(min(number), 0), coalesce(max(number), -1) FROM segment"
        " WHERE camera_id = ? AND number IS NOT NULL",
        (event.camera_id,),
    ).fetchone()
    query = (
        f"SELECT {COLUMNS} FROM segment WHERE camera_id = ? AND number >= ? AND number IS NOT NULL AND garbage = 0"
        " ORDER BY number LIMIT ?"
    )
    while low < high:
        middle = (low + high) // 2
        row = connection.execute(query, (event.camera_id, middle, 1)).fetchone()
        if row is not None and _as_stamped(segment_of(row), event).ended_at <= event.pinned_from:
            low = middle + 1
        else:
            high = middle
    for row in connection.execute(query, (event.camera_id, low, _MOST_OF_EVENT)):
        segment = _as_stamped(segment_of(row), event)
        if segment.started_at >= event.pinned_until:
            return
        if segment.boot_id == event.boot_id:
            yield segment_of(row)


def _as_stamped(segment: Segment, event: CameraEvent) -> Segment:
    """Return a segment with the start that the event's clock would have shown; only changed if the clock was set."""
    at = segment.monotonic + event.clock_offset
    if not event.boot_id or segment.boot_id != event.boot_id or abs(at - segment.started_at) <= _CLOCK_WAS_SET:
        return segment
    return replace(segment, started_at=at)
