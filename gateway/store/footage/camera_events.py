"""Camera events: the footage of an event, kept until its time is over and central has the camera event.

Central keeps camera events too: `CameraEventRecords` holds central's ids and the fields that may change there, as steps
within a running transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.domain.passages import CameraEvent
from gateway.domain.writes import JsonObject, source_id
from gateway.runtime.clock import iso_utc
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database, is_id
from gateway.store.engine.text_search import search_in
from gateway.store.footage.event_footage import LONGEST_PIN
from gateway.store.outbox.central_ids import OwnIds

_COLUMNS = (
    "id, central_id, camera_id, event_id, lane_id, name, description, date_at, pinned_from, pinned_until,"
    " clock_trusted, ready, incident, boot_id, clock_offset, box"
)

_NEWEST = 500


@dataclass(frozen=True, slots=True)
class CameraEventFilter:
    """Filter for camera events; empty fields do not filter.

    Attributes:
        camera_ids: camera events of any of these cameras.
        event_ids: camera events of any of these events.
        search: text within the name, the description or the lane.
        date_from: the earliest time (wall micros, inclusive).
        date_until: the end of the time span (wall micros, exclusive).
        incident: True for incidents only, False for all others.
    """

    camera_ids: tuple[int, ...] = ()
    event_ids: tuple[int, ...] = ()
    search: str = ""
    date_from: int | None = None
    date_until: int | None = None
    incident: bool | None = None

    def condition(self) -> tuple[str, tuple[object, ...]]:
        """Return the filter as an SQL condition with the values of its parameters."""
        parts, values = ["1"], list[object]()
        for column, numbers in (("camera_id", self.camera_ids), ("event_id", self.event_ids)):
            if numbers:
                parts.append(f"{column} IN ({', '.join('?' * len(numbers))})")
                values += numbers
        if self.search:
            match = search_in(self.search, texts=("name", "description", "lane_id"))
            parts.append(match.sql)
            values += match.values
        for bound, place in ((">=", self.date_from), ("<", self.date_until)):
            if place is not None:
                parts.append(f"date_at {bound} ?")
                values.append(place)
        if self.incident is not None:
            parts.append("incident = ?")
            values.append(self.incident)
        return " AND ".join(parts), tuple(values)


@dataclass(frozen=True, slots=True)
class CameraEventPage:
    """A page of camera events by descending id.

    Attributes:
        events: the camera events of the page.
        count: the number of all matches.
    """

    events: tuple[CameraEvent, ...]
    count: int


class CameraEvents:
    """The site's camera events. The journal adds them."""

    def __init__(self, *, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes

    async def get(self, camera_event_id: int) -> CameraEvent | None:
        """Return one camera event by the site's id or by central's, or None."""

        def query(connection: sqlite3.Connection) -> CameraEvent | None:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM camera_event WHERE id = ?1 OR central_id = ?1 ORDER BY id = ?1 DESC LIMIT 1",
                (camera_event_id,),
            ).fetchone()
            return _camera_event(row) if row else None

        return await self._database.read(query) if is_id(camera_event_id) else None

    async def page(
        self, wanted: CameraEventFilter | None = None, *, before: int = 0, offset: int = 0, limit: int = 25
    ) -> CameraEventPage:
        """Return a page of camera events by descending id, from below `before` (0: the newest) on."""
        condition, values = (wanted or CameraEventFilter()).condition()
        limit = max(limit, 0)

        def query(connection: sqlite3.Connection) -> CameraEventPage:
            (count,) = connection.execute(f"SELECT count(*) FROM camera_event WHERE {condition}", values).fetchone()
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM camera_event WHERE {condition} AND (? = 0 OR id < ?)"
                " ORDER BY id DESC LIMIT ? OFFSET ?",
                (*values, before, before, limit, offset),
            ).fetchall()
            return CameraEventPage(tuple(_camera_event(row) for row in rows), int(count))

        return await self._database.read(query)

    async def recorded(
        self, *, camera_id: int | None, start: int, end: int, offset: int = 0, limit: int = 100
    ) -> tuple[tuple[CameraEvent, ...], int]:
        """Return a page of camera events whose pinned time begins in `[start, end)`, and the number of all of them.

        Times are wall micros; the newest come first. `camera_id`: None for all cameras.
        """
        cameras = "(SELECT id FROM camera)" if camera_id is None else "(?)"
        where = f"camera_id IN {cameras} AND pinned_from >= ? AND pinned_from < ?"
        values = (*(() if camera_id is None else (camera_id,)), start, end)

        def query(connection: sqlite3.Connection) -> tuple[tuple[CameraEvent, ...], int]:
            (count,) = connection.execute(f"SELECT count(*) FROM camera_event WHERE {where}", values).fetchone()
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM camera_event WHERE {where} ORDER BY id DESC LIMIT ? OFFSET ?",
                (*values, max(limit, 0), offset),
            )
            return tuple(_camera_event(row) for row in rows), int(count)

        return await self._database.read(query)

    async def of_events(self, event_ids: tuple[int, ...]) -> tuple[CameraEvent, ...]:
        """Return the camera events of these events, by ascending id."""
        places = ", ".join("?" * len(event_ids))
        return await self._database.rows(
            f"SELECT {_COLUMNS} FROM camera_event WHERE event_id IN ({places}) ORDER BY id", event_ids, of=_camera_event
        )

    async def after(self, camera_event_id: int, *, limit: int) -> tuple[CameraEvent, ...]:
        """Return the oldest camera events above an id, by ascending id. Raises StoreError."""
        return await self._database.rows(
            f"SELECT {_COLUMNS} FROM camera_event WHERE id > ? ORDER BY id LIMIT ?",
            (camera_event_id, limit),
            of=_camera_event,
        )

    async def awaiting(self, *, now: int, boot_id: str = "", uptime: int = 0) -> tuple[CameraEvent, ...]:
        """Return camera events whose pinned time has passed and that are not marked ready: the oldest 100.

        `now` is wall micros. For camera events recorded in the present boot `boot_id`, `uptime` (monotonic micros)
        decides instead, which no change of the clock affects.
        """
        return await self._database.rows(
            f"SELECT {_COLUMNS} FROM camera_event WHERE ready = 0 AND CASE WHEN boot_id <> '' AND boot_id = ?"
            " THEN pinned_until - clock_offset <= ? ELSE pinned_until <= ? END ORDER BY id LIMIT 100",
            (boot_id, uptime, now),
            of=_camera_event,
        )

    async def stamped_in(self, boot_id: str, *, pinned_after: int) -> tuple[CameraEvent, ...]:
        """Return camera events of a boot whose pin ends after these monotonic micros, whatever the wall clock says.

        Only the newest 500 of all camera events are searched.
        """
        return await self._database.rows(
            f"SELECT {_COLUMNS} FROM camera_event WHERE id > (SELECT max(id) FROM camera_event) - ?"
            " AND boot_id <> '' AND boot_id = ? AND pinned_until - clock_offset > ? ORDER BY id",
            (_NEWEST, boot_id, pinned_after),
            of=_camera_event,
        )

    async def pinned_since(self, camera_ids: Iterable[int], since: int) -> tuple[CameraEvent, ...]:
        """Return the camera events of these cameras whose pinned time ends after `since` (wall micros)."""
        return await self._database.read(
            lambda connection: tuple(
                _camera_event(row)
                for camera_id in camera_ids
                for row in connection.execute(
                    f"SELECT {_COLUMNS} FROM camera_event WHERE camera_id = ? AND pinned_from > ? AND pinned_until > ?",
                    (camera_id, since - LONGEST_PIN, since),
                )
            )
        )

    async def mark_ready(self, camera_event_id: int) -> None:
        """Mark a camera event's footage as complete."""
        await self._database.write(
            lambda connection: connection.execute("UPDATE camera_event SET ready = 1 WHERE id = ?", (camera_event_id,)),
            then=self._changes.bump,
        )


def camera_event_of(row: Mapping[str, Any]) -> CameraEvent:
    """Return the camera event of a row, given by the names of its columns."""
    return _camera_event(tuple(row[name.strip()] for name in _COLUMNS.split(",")))


def camera_event_body(event: CameraEvent, *, site_name: str) -> JsonObject:
    """Build the body that creates a camera event at central."""
    return {
        "camera_id": event.camera_id,
        "name": event.name,
        "description": event.description,
        "date_at": iso_utc(event.date_at),
        "start_date": iso_utc(event.pinned_from),
        "end_date": iso_utc(event.pinned_until),
        "clock_trusted": event.clock_trusted,
        "lane": event.lane_id,
        "source_event_id": event.event_id,
        "source_id": source_id(event.box, event.id),
        "source_name": site_name,
    }


def _camera_event(row: tuple[Any, ...]) -> CameraEvent:
    return CameraEvent(
        id=row[0],
        central_id=row[1],
        camera_id=row[2],
        event_id=row[3],
        lane_id=row[4],
        name=row[5],
        description=row[6],
        date_at=row[7],
        pinned_from=row[8],
        pinned_until=row[9],
        clock_trusted=bool(row[10]),
        ready=bool(row[11]),
        incident=bool(row[12]),
        boot_id=row[13],
        clock_offset=row[14],
        box=row[15],
    )


class CameraEventRecords(OwnIds):
    """Keeper of camera events. The journal adds them; `name`, `description` and `incident` can be changed later.

    The ids of deleted ones are known until the record and its deletion have reached central.
    """

    def __init__(self) -> None:
        super().__init__("camera_event")

    def central_id(self, connection: sqlite3.Connection, record_id: int) -> int | None:
        """Return central's id of a record, also of a deleted one; None while central has given none."""
        row = connection.execute(
            "SELECT central_id FROM camera_event WHERE id = ?1"
            " UNION ALL SELECT central_id FROM camera_event_gone WHERE id = ?1",
            (record_id,),
        ).fetchone()
        return None if row is None or row[0] is None else int(row[0])

    def learn(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> int:
        """Store central's id beside the site's, and return the site's id, which stays valid.

        The record may have been deleted here before central's answer came.
        """
        self.learn_together(connection, {record_id: central_id})
        return record_id

    def learn_together(self, connection: sqlite3.Connection, given: Mapping[int, int]) -> None:
        """Store central's ids of many records. `given`: central's ids by the site's."""
        left = len(given)
        for table in ("camera_event", "camera_event_gone"):
            if left:
                left -= connection.execute(
                    f"UPDATE OR IGNORE {table} SET central_id = given.central_id FROM"
                    " (SELECT value ->> 0 AS id, value ->> 1 AS central_id FROM json_each(?)) AS given"
                    f" WHERE {table}.id = given.id",
                    (json.dumps(tuple(given.items())),),
                ).rowcount

    def is_given(self, connection: sqlite3.Connection, central_id: int) -> bool:
        """Return whether central gave this id to a record of this site, also to a deleted one."""
        gone = connection.execute("SELECT 1 FROM camera_event_gone WHERE central_id = ?", (central_id,))
        return super().is_given(connection, central_id) or gone.fetchone() is not None

    def add(self, connection: sqlite3.Connection, record: JsonObject, *, now: int) -> int:  # noqa: ARG002 (a keeper's form)
        """Raise TypeError: only the journal adds camera events, with their event and footage."""
        raise TypeError("a camera event is recorded by the journal")

    def get(self, connection: sqlite3.Connection, record_id: int) -> JsonObject | None:
        """Return the changeable fields of a record, or None."""
        return self._kept(connection, (record_id,)).get(record_id)

    def put(self, connection: sqlite3.Connection, record_id: int, record: JsonObject, *, now: int) -> None:  # noqa: ARG002 (a keeper's form)
        """Store the changeable fields of a record; nothing is written if they are unchanged."""
        self.put_together(connection, {record_id: record})

    def put_together(self, connection: sqlite3.Connection, records: Mapping[int, JsonObject]) -> None:
        """Store the changeable fields of many records. `records`: central's records by the site's ids."""
        for record_id, kept in self._kept(connection, tuple(records)).items():
            record = records[record_id]
            fresh = {name: record[name] for name, value in kept.items() if isinstance(record.get(name), type(value))}
            if fresh.items() <= kept.items():
                continue
            now_so = {**kept, **fresh}
            connection.execute(
                "UPDATE camera_event SET name = ?, description = ?, incident = ? WHERE id = ?",
                (now_so["name"], now_so["description"], now_so["incident"], record_id),
            )

    def remove(self, connection: sqlite3.Connection, record_id: int) -> None:
        """Delete the record. Its footage is no longer kept from deletion; its event stays."""
        connection.execute("DELETE FROM camera_event WHERE id = ?", (record_id,))

    def _kept(self, connection: sqlite3.Connection, record_ids: tuple[int, ...]) -> dict[int, JsonObject]:
        """Return the changeable fields of existing records, by id.

        The query gives one row, because the thread waits for the interpreter lock at each row.
        """
        (found,) = connection.execute(
            "SELECT json_group_array(json_array(id, name, description, incident)) FROM camera_event"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(record_ids),),
        ).fetchone()
        return {
            record_id: {"name": name, "description": description, "incident": bool(incident)}
            for record_id, name, description, incident in json.loads(found)
        }
