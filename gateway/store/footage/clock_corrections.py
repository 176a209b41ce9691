"""Corrections of the wall times of footage and pins, once the error of the clock that stamped them is known."""

from __future__ import annotations

import json
import sqlite3
from functools import partial

from gateway.domain.footage import TOUCHING_MICROS
from gateway.runtime.clock import ClockOffset, iso_utc
from gateway.store.engine.database import Database
from gateway.store.outbox.backlog_quota import count_rows
from gateway.store.outbox.rows import body_text

AT_A_TIME = 500
_FOLLOWING = 200


class ClockCorrections:
    """Corrector of footage and pins with an untrusted time stamp, boot by boot."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def correct(self, offset: ClockOffset) -> int:
        """Correct the times that an untrusted clock stamped, and return the number of corrected segments.

        `offset` is the true offset of the present boot. Earlier boots whose true offset is stored are completed too.
        The pins move first, in the commit that stores the offset; segments follow in batches. After a power cut in
        between, the next call completes the rest. Until then no footage may be deleted.
        """
        if not await self._database.read(lambda connection: _untrusted(connection, offset.boot_id)):
            boots = await self._database.read(_unfinished)
        else:
            boots = await self._database.write(lambda connection: move_pins(connection, offset))
        moved = 0
        for boot_id in boots:
            while count := await self._database.write(partial(move_some, boot_id=boot_id)):
                moved += count
        return moved


def _untrusted(connection: sqlite3.Connection, boot_id: str) -> bool:
    return any(
        connection.execute(
            f"SELECT 1 FROM {table} WHERE clock_trusted = 0 AND boot_id = ? LIMIT 1", (boot_id,)
        ).fetchone()
        for table in ("segment", "camera_event")
    )


def _unfinished(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the boots whose true offset is stored and that still have uncorrected rows."""
    known = connection.execute("SELECT boot_id FROM clock_offset").fetchall()
    return tuple(boot_id for (boot_id,) in known if _untrusted(connection, boot_id))


def move_pins(connection: sqlite3.Connection, offset: ClockOffset) -> tuple[str, ...]:
    """Store the true offset of a boot and move its pins by it; return the boots that still have uncorrected rows."""
    connection.execute(
        "INSERT INTO clock_offset (boot_id, micros) VALUES (?, ?)"
        " ON CONFLICT (boot_id) DO UPDATE SET micros = excluded.micros",
        (offset.boot_id, offset.micros),
    )
    pins = connection.execute(
        "SELECT id, clock_offset, date_at, pinned_from, pinned_until FROM camera_event"
        " WHERE clock_trusted = 0 AND boot_id = ?",
        (offset.boot_id,),
    ).fetchall()
    for pin_id, stamped_by, *times in pins:
        date_at, begin, until = (time + offset.micros - stamped_by for time in times)
        connection.execute(
            "UPDATE camera_event SET date_at = ?, pinned_from = ?, pinned_until = ?, clock_offset = ?,"
            " clock_trusted = 1 WHERE id = ?",
            (date_at, begin, until, offset.micros, pin_id),
        )
        _retell(connection, pin_id, date_at=date_at, start_date=begin, end_date=until)
    return _unfinished(connection)


def _retell(connection: sqlite3.Connection, camera_event_id: int, **times: int) -> None:
    """Correct the times in the outbox rows of a camera event, which central does not have yet."""
    rows = connection.execute(
        "SELECT id, body FROM outbox WHERE kind = 'camera_event' AND record_id = ?", (camera_event_id,)
    ).fetchall()
    for row_id, body in rows:
        told = json.loads(body) | {name: iso_utc(micros) for name, micros in times.items()} | {"clock_trusted": True}
        count_rows(connection, (row_id,), sign=-1)
        connection.execute("UPDATE outbox SET body = ? WHERE id = ?", (body_text(told), row_id))
        count_rows(connection, (row_id,), sign=1)


def move_some(connection: sqlite3.Connection, *, boot_id: str) -> int:
    """Correct a batch of a boot's segments and return their number; remove a clock gap that this closes."""
    (micros,) = connection.execute("SELECT micros FROM clock_offset WHERE boot_id = ?", (boot_id,)).fetchone()
    moved = connection.execute(
        "UPDATE segment SET started_at = monotonic + ?, clock_trusted = 1 WHERE id IN"
        " (SELECT id FROM segment WHERE clock_trusted = 0 AND boot_id = ? LIMIT ?) RETURNING id",
        (micros, boot_id, AT_A_TIME),
    ).fetchall()
    if moved:
        connection.execute(
            "UPDATE segment SET gap = 'none' WHERE gap = 'clock' AND id BETWEEN ? AND ? AND boot_id = ? AND EXISTS"
            " (SELECT 1 FROM segment AS before WHERE before.camera_id = segment.camera_id"
            " AND before.id < segment.id AND before.id > segment.id - 200 AND before.boot_id = segment.boot_id"
            " AND abs(before.monotonic + before.duration - segment.monotonic) <= ?)",
            (min(moved)[0], max(moved)[0] + _FOLLOWING, boot_id, TOUCHING_MICROS),
        )
    return len(moved)
