"""Camera events as records that central also keeps: central's ids, and the changeable fields.

Steps within a running transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

from gateway.domain.writes import JsonObject
from gateway.store.outbox.central_ids import disown, is_one_given, newest_given, owners_of


class CameraEventIds:
    """Camera events keep the site's id and learn central's beside it."""

    def site_id(self, connection: sqlite3.Connection, record_id: int) -> int:
        """Return the site's own id."""
        row = connection.execute(
            "SELECT id FROM camera_event WHERE id = ?1 OR central_id = ?1 ORDER BY id = ?1 DESC LIMIT 1", (record_id,)
        ).fetchone()
        return int(row[0]) if row else record_id

    def central_id(self, connection: sqlite3.Connection, record_id: int) -> int | None:
        """Return central's id of a record, None while central has given none."""
        row = connection.execute(
            "SELECT central_id FROM camera_event WHERE id = ?1"
            " UNION ALL SELECT central_id FROM camera_event_gone WHERE id = ?1",
            (record_id,),
        ).fetchone()
        return None if row is None or row[0] is None else int(row[0])

    def learn(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> int:
        """Note central's id beside the site's, also for a record that was deleted here before central's answer
        came.
        """
        self.learn_together(connection, {record_id: central_id})
        return record_id

    def learn_together(self, connection: sqlite3.Connection, given: Mapping[int, int]) -> None:
        """Note central's ids of many records, by the site's ids."""
        left = len(given)
        for table in ("camera_event", "camera_event_gone"):
            if left:
                left -= connection.execute(
                    f"UPDATE OR IGNORE {table} SET central_id = given.central_id FROM"
                    " (SELECT value ->> 0 AS id, value ->> 1 AS central_id FROM json_each(?)) AS given"
                    f" WHERE {table}.id = given.id",
                    (json.dumps(tuple(given.items())),),
                ).rowcount

    def given(self, connection: sqlite3.Connection, most: int) -> tuple[int, ...]:
        """Return the newest of central's ids."""
        return newest_given(connection, "camera_event", most)

    def is_given(self, connection: sqlite3.Connection, central_id: int) -> bool:
        """Return whether central gave this id to a record of this site, also to a deleted one."""
        return any(is_one_given(connection, table, central_id) for table in ("camera_event", "camera_event_gone"))

    def owners(self, connection: sqlite3.Connection, central_ids: Sequence[int]) -> dict[int, int]:
        """Return the site's ids by central's, of existing records."""
        return owners_of(connection, "camera_event", central_ids)

    def disown(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> None:  # noqa: ARG002 (a keeper's form)
        """Do nothing: the camera event stays."""
        disown(connection, "camera_event", record_id)


class CameraEventRecords(CameraEventIds):
    """Camera events. The journal makes them; name, description and class can be changed later."""

    def add(self, connection: sqlite3.Connection, record: JsonObject, *, now: int) -> int:  # noqa: ARG002 (a keeper's form)
        """Raise an error: the journal adds camera events, with their event and footage."""
        raise TypeError("a camera event is recorded by the journal")

    def get(self, connection: sqlite3.Connection, record_id: int) -> JsonObject | None:
        """Return the fields that can be changed."""
        return self._kept(connection, (record_id,)).get(record_id)

    def put(self, connection: sqlite3.Connection, record_id: int, record: JsonObject, *, now: int) -> None:  # noqa: ARG002 (a keeper's form)
        """Apply the changeable fields; unchanged ones cost no write."""
        self.put_together(connection, {record_id: record})

    def put_together(self, connection: sqlite3.Connection, records: Mapping[int, JsonObject]) -> None:
        """Write central's fields of many records, by the site's ids."""
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
        """Remove the record. Its footage is no longer kept; the event stays."""
        connection.execute("DELETE FROM camera_event WHERE id = ?", (record_id,))

    def _kept(self, connection: sqlite3.Connection, record_ids: tuple[int, ...]) -> dict[int, JsonObject]:
        """Return the changeable fields of existing records, as one value, because a thread waits for the
        interpreter at each row.
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
