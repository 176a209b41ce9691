"""Expiry of events, camera events and parking entries that are too old or too many, also of those that were not sent.

The order of records is that of their ids. A record's age is that of its recording, and is known only if the clock was
trusted. A record with an untrusted time expires together with the next younger record that is known to be old.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

from gateway.domain.events import EventKind
from gateway.domain.passages import LONGEST_STAY
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database
from gateway.store.events.read_cursors import ListName

_STEP = 100  # a commit that removes this many takes about 20 ms, and the lanes' commits wait for it
_DAY_MICROS: Final = 86_400_000_000
# Lanes restore their state after a restart from the newest event of each of these (gateway.lanes.restored_state).
_REMEMBERED = (EventKind.ORDER_BEGAN, EventKind.ORDER_ENDED, EventKind.STOP_BEGAN, EventKind.STOP_ENDED)
_ENOUGH_BELOW = 0.99  # remove down to this share of the limit, so that not every new event exceeds it again


@dataclass(frozen=True, slots=True)
class _List:
    """A list's table, with the SQL for the time of a row's recording and the condition that nothing needs the row."""

    table: str
    at: str
    free: str


_LISTS: Final[dict[ListName, _List]] = {
    "event": _List(
        table="event",
        at="coalesce(recorded_at, date_at)",
        free="NOT EXISTS (SELECT 1 FROM camera_event WHERE camera_event.event_id = event.id)"
        f" AND NOT (type IN ({', '.join(str(int(kind)) for kind in _REMEMBERED)}) AND NOT EXISTS"
        " (SELECT 1 FROM event AS later INDEXED BY event_by_type WHERE later.type = event.type AND later.id > event.id"
        " AND later.lane_id = event.lane_id))",
    ),
    "camera_event": _List(
        table="camera_event",
        at="date_at",
        free="ready = 1 AND date_at < CASE incident WHEN 0 THEN :transactions_from ELSE :incidents_from END"
        " AND NOT EXISTS"
        " (SELECT 1 FROM outbox WHERE outbox.kind = 'camera_event' AND outbox.record_id = camera_event.id)"
        " AND NOT EXISTS (SELECT 1 FROM evidence WHERE evidence.camera_event_id = camera_event.id AND garbage = 0)",
    ),
    "entry": _List(
        table="parking_entry",
        at="at",
        free="(status <> 'open' OR at < :open_from)"
        " AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.kind = 'entry' AND outbox.record_id = parking_entry.id)",
    ),
}


@dataclass(frozen=True, slots=True)
class ExpiryLimits:
    """Limits of age and number.

    Attributes:
        days: how long every record is kept; it is kept longer while a consumer does not have it.
        most_days: the greatest age of a record, sent or not.
        most_events: the greatest number of events, whatever their age.
        transaction_days: how long footage of ordinary camera events is kept; the camera events expire no sooner.
        incident_days: the same for footage of incidents.
    """

    days: int
    most_days: int
    most_events: int
    transaction_days: int
    incident_days: int


@dataclass(frozen=True, slots=True)
class Range:
    """Records of a list from id `low` to id `high`, both included: their number and first and last wall micros."""

    low: int
    high: int
    count: int
    first_at: int
    last_at: int


class Expiry:
    """Deletion of expired records. `now` is wall micros, None while the clock is not trusted: nothing expires then."""

    def __init__(self, *, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes

    async def old_to(self, name: ListName, *, limits: ExpiryLimits, now: int | None) -> tuple[int, int]:
        """Return two ids: up to the first, records expire once they are sent; up to the second, in any case.

        0 means that none expire.
        """

        def query(connection: sqlite3.Connection) -> tuple[int, int]:
            soft = hard = 0
            if now is not None:
                soft = _old_to(connection, _LISTS[name], now - limits.days * _DAY_MICROS)
                # by whole days, so that consumers are told of one gap a day and not of one per event
                hard = _old_to(connection, _LISTS[name], (now // _DAY_MICROS - limits.most_days) * _DAY_MICROS)
            return soft, max(hard, _too_many_to(connection, limits.most_events)) if name == "event" else hard

        return await self._database.read(query, lengthy=True)

    async def unread(
        self, name: ListName, *, above: int, to: int, limits: ExpiryLimits, now: int | None
    ) -> Range | None:
        """Return the range of records above id `above` and up to `to` that may be removed; None if there are none."""
        kept = _LISTS[name]

        def query(connection: sqlite3.Connection) -> Range | None:
            low, high, count, first_at, last_at = connection.execute(
                f"SELECT min(id), max(id), count(*), min({kept.at}), max({kept.at}) FROM {kept.table} NOT INDEXED"
                f" WHERE id > :above AND id <= :to AND {kept.free}",
                {"above": above, "to": to} | _values(limits, now),
            ).fetchone()
            return Range(low, high, count, first_at, last_at) if count else None

        return await self._database.read(query, lengthy=True)

    async def remove(
        self, name: ListName, *, above: int, to: int, limits: ExpiryLimits, now: int | None
    ) -> tuple[int, ...]:
        """Remove a batch of the oldest records above `above` and up to `to` that nothing else needs; return their ids.

        An empty tuple means that none are left. An event's passage is removed with it. Each call is one commit.
        """
        kept, values = _LISTS[name], _values(limits, now)

        def choose(connection: sqlite3.Connection) -> list[int]:  # on a reading connection, to hold up no commit
            rows = connection.execute(
                f"SELECT id FROM {kept.table} NOT INDEXED WHERE id > :above AND id <= :to AND {kept.free}"
                " ORDER BY id LIMIT :step",
                {"above": above, "to": to, "step": _STEP} | values,
            )
            return [number for (number,) in rows]

        found = await self._database.read(choose, lengthy=True)

        def job(connection: sqlite3.Connection) -> tuple[int, ...]:
            gone = []
            for number in found:
                still = connection.execute(
                    f"SELECT 1 FROM {kept.table} WHERE id = :id AND {kept.free}", values | {"id": number}
                ).fetchone()
                if still is None:
                    continue
                if name == "event":
                    connection.execute("DELETE FROM passage WHERE event_id = ?", (number,))
                connection.execute(f"DELETE FROM {kept.table} WHERE id = ?", (number,))
                if name == "camera_event":  # no trace of the deletion is needed: central keeps its own record
                    connection.execute("DELETE FROM camera_event_gone WHERE id = ?", (number,))
                gone.append(number)
            return tuple(gone)

        return await self._database.write(job, then=self._changes.bump) if found else ()


def _values(limits: ExpiryLimits, now: int | None) -> dict[str, int]:
    moment = 0 if now is None else now
    return {
        "transactions_from": moment - limits.transaction_days * _DAY_MICROS,
        "incidents_from": moment - limits.incident_days * _DAY_MICROS,
        "open_from": moment - LONGEST_STAY,
    }


def _old_to(connection: sqlite3.Connection, kept: _List, before: int) -> int:
    """Return the highest id of a record known to be older than `before`, below the first known to be younger.

    0 if there is none.
    """
    young = connection.execute(
        f"SELECT id FROM {kept.table} NOT INDEXED WHERE clock_trusted = 1 AND {kept.at} >= ? ORDER BY id LIMIT 1",
        (before,),
    ).fetchone()
    old = connection.execute(
        f"SELECT id FROM {kept.table} NOT INDEXED WHERE clock_trusted = 1 AND {kept.at} < ? AND (?2 IS NULL OR id < ?2)"
        " ORDER BY id DESC LIMIT 1",
        (before, young[0] if young else None),
    ).fetchone()
    return int(old[0]) if old else 0


def _too_many_to(connection: sqlite3.Connection, most: int) -> int:
    """Return the id up to which events expire because there are more than `most`; 0 while there are not."""
    (count,) = connection.execute("SELECT coalesce(sum(count), 0) FROM event_range WHERE span = 17").fetchone()
    if count <= most:
        return 0
    over = count - int(most * _ENOUGH_BELOW)
    row = connection.execute("SELECT id FROM event NOT INDEXED ORDER BY id LIMIT 1 OFFSET ?", (over - 1,)).fetchone()
    return int(row[0]) if row else 0
