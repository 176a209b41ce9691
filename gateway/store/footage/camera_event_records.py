"""Camera events as records that central also has: central's ids, and the changeable fields.

All methods are steps within a running transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from gateway.domain.writes import JsonObject
from gateway.store.outbox.central_ids import OwnIds


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
