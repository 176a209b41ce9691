"""Access to the records of each kind that central also has, as steps within a running transaction.

A keeper of a kind finds the site's id of a record by any id that it ever had, and central's id by the site's.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC
from types import MappingProxyType
from typing import Literal, Protocol

from pydantic import JsonValue, TypeAdapter

from drivers.plate_text import plain_plate
from gateway.domain.passages import EntryStatus
from gateway.domain.presence import card_holder
from gateway.domain.writes import FIRST_PROVISIONAL_ID, JsonObject
from gateway.runtime.clock import iso_utc, micros_of
from gateway.store.events.presence import record_rename
from gateway.store.footage.camera_events import CameraEventRecords
from gateway.store.outbox.backlog_quota import refuse_one_more
from gateway.store.outbox.central_ids import GivenIds, OwnIds

_RECORD = TypeAdapter(JsonObject)
_LONGEST_NAME = 120
_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False)
_NUMBERS: Mapping[str, str] = MappingProxyType(
    {"device_id": "entry_device_id", "exit_device_id": "exit_device_id", "access_id": "card_id"}
)
_TEXTS: Mapping[str, str] = MappingProxyType(
    {"lane": "entry_lane", "exit_lane": "exit_lane", "area": "area", "credential": "credential"}
)
_KNOWN = frozenset({"id", "type", "date_at", "exit_at", "status", "plate", "clock_trusted", *_NUMBERS, *_TEXTS})


class RecordKind(Protocol):
    """The records of one kind and their ids. Every method runs within a transaction."""

    def site_id(self, connection: sqlite3.Connection, record_id: int) -> int:
        """Return the site's present id of a record, given that id, an earlier one or central's."""
        ...

    def central_id(self, connection: sqlite3.Connection, record_id: int) -> int | None:
        """Return central's id of a record, None while central has given none."""
        ...

    def learn(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> int:
        """Store the id that central gave to a record; return the site's id of it from now on."""
        ...

    def given(self, connection: sqlite3.Connection, most: int) -> tuple[int, ...]:
        """Return the newest `most` ids that central gave to records of this site, the highest first."""
        ...

    def is_given(self, connection: sqlite3.Connection, central_id: int) -> bool:
        """Return whether central gave this id to a record of this site."""
        ...

    def owners(self, connection: sqlite3.Connection, central_ids: Sequence[int]) -> dict[int, int]:
        """Return the site's ids of the records that have these ids of central, by central's ids."""
        ...

    def disown(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> None:
        """Take central's id from a record, because central gave it to another one. It counts as not at central."""
        ...

    def add(self, connection: sqlite3.Connection, record: JsonObject, *, now: int) -> int:
        """Add a record that was made at the site; return its id, from 2,000,000,000 up."""
        ...

    def get(self, connection: sqlite3.Connection, record_id: int) -> JsonObject | None:
        """Return a record as the site has it, or None."""
        ...

    def put(self, connection: sqlite3.Connection, record_id: int, record: JsonObject, *, now: int) -> None:
        """Store a record in place of the present one, or add it."""
        ...

    def remove(self, connection: sqlite3.Connection, record_id: int) -> None:
        """Delete a record; of one that the site file has, only central's fields."""
        ...


class SiteIds(GivenIds):
    """Ids of a kind whose provisional ids are replaced by central's. The old id still leads to the record."""

    def __init__(self, kind: str) -> None:
        super().__init__("provisional", kind=kind)
        self._kind = kind

    def site_id(self, connection: sqlite3.Connection, record_id: int) -> int:
        """Return central's id if it has given one, else the provisional id."""
        return self.central_id(connection, record_id) or record_id

    def central_id(self, connection: sqlite3.Connection, record_id: int) -> int | None:
        """Return central's id of a record, None while central has given none."""
        if record_id < FIRST_PROVISIONAL_ID:
            return record_id
        row = connection.execute(
            "SELECT central_id FROM provisional WHERE id = ? AND kind = ?", (record_id, self._kind)
        ).fetchone()
        return None if row is None or row[0] is None else int(row[0])

    def give(self, connection: sqlite3.Connection) -> int:
        """Return a new provisional id, which was never given before."""
        return int(connection.execute("INSERT INTO provisional (kind) VALUES (?)", (self._kind,)).lastrowid or 0)

    def learn(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> int:
        """Store central's id of a record and return it: it is the site's id of the record from now on."""
        if record_id < FIRST_PROVISIONAL_ID:
            return record_id
        connection.execute(
            "UPDATE OR IGNORE provisional SET central_id = ? WHERE id = ? AND kind = ?",
            (central_id, record_id, self._kind),
        )
        return central_id


class StoredRecords(SiteIds):
    """Keeper of devices or of cameras. What the site file says of one is never changed by central's record."""

    def __init__(self, table: Literal["device", "camera"]) -> None:
        super().__init__(table)
        self._table = table

    def add(self, connection: sqlite3.Connection, record: JsonObject, *, now: int) -> int:
        """Add a record that was made at the site; return its provisional id. Raises QuotaExceeded."""
        refuse_one_more(connection, self._table)
        given = self.give(connection)
        self.put(connection, given, {**record, "id": given}, now=now)
        return given

    def learn(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> int:
        """Move the row to central's id and return that."""
        known = super().learn(connection, record_id, central_id)
        if known != record_id:
            connection.execute(f"UPDATE OR IGNORE {self._table} SET id = ? WHERE id = ?", (known, record_id))
            connection.execute(f"DELETE FROM {self._table} WHERE id = ?", (record_id,))
        return known

    def disown(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> None:
        """Delete the record under this id of central, because the id now belongs to another record.

        A record that the site file has stays.
        """
        super().disown(connection, record_id, central_id)
        connection.execute(f"DELETE FROM {self._table} WHERE id = ? AND at_site = 0", (central_id,))

    def get(self, connection: sqlite3.Connection, record_id: int) -> JsonObject | None:
        """Return central's record, {} for a record that only the site file has, None for an unknown one."""
        row = connection.execute(f"SELECT record FROM {self._table} WHERE id = ?", (record_id,)).fetchone()
        return _RECORD.validate_json(row[0]) if row else None

    def put(self, connection: sqlite3.Connection, record_id: int, record: JsonObject, *, now: int) -> None:
        """Store central's record. The name and kind of a device that the site file has stay as they are."""
        text = record_text(record)
        updated = connection.execute(
            f"UPDATE {self._table} SET record = ?, updated_at = ? WHERE id = ? AND at_site = 1", (text, now, record_id)
        ).rowcount
        if updated:
            return
        connection.execute(f"DELETE FROM {self._table} WHERE id = ?", (record_id,))
        name = record_name(self._table, record_id, record)
        if self._table == "device":
            connection.execute(
                "INSERT INTO device (id, name, kind, at_site, record, updated_at) VALUES (?, ?, ?, 0, ?, ?)",
                (record_id, name, record_kind(record), text, now),
            )
        else:
            connection.execute(
                "INSERT INTO camera (id, name, at_site, record, updated_at) VALUES (?, ?, 0, ?, ?)",
                (record_id, name, text, now),
            )

    def remove(self, connection: sqlite3.Connection, record_id: int) -> None:
        """Delete a record; of one that the site file has, only central's fields."""
        connection.execute(f"DELETE FROM {self._table} WHERE id = ? AND at_site = 0", (record_id,))
        connection.execute(f"UPDATE {self._table} SET record = '{{}}' WHERE id = ?", (record_id,))


class CardIds(SiteIds):
    """Keeper of the ids of access cards, which are in a database file of their own.

    When a card's id changes, its holder's presence moves to the new id.
    """

    def __init__(self) -> None:
        super().__init__("access_card")

    def add(self, connection: sqlite3.Connection, record: JsonObject, *, now: int) -> int:  # noqa: ARG002 (a keeper's form)
        """Return a provisional id for a record that was made at the site."""
        return self.give(connection)

    def get(self, connection: sqlite3.Connection, record_id: int) -> JsonObject | None:  # noqa: ARG002 (a keeper's form)
        """Return None: the record is stored elsewhere."""
        return None

    def put(self, connection: sqlite3.Connection, record_id: int, record: JsonObject, *, now: int) -> None:
        """Do nothing: the record is stored elsewhere."""

    def remove(self, connection: sqlite3.Connection, record_id: int) -> None:
        """Do nothing: the record is stored elsewhere."""

    def learn(self, connection: sqlite3.Connection, record_id: int, central_id: int) -> int:
        """Store central's id of a card and return it, and move the holder's presence to it."""
        known = super().learn(connection, record_id, central_id)
        if known != record_id:
            record_rename(connection, card_holder(record_id), card_holder(known))
        return known


def record_text(record: JsonObject) -> str:
    """Encode a record as JSON text that is the same for the same content."""
    return _ENCODER.encode(record)


def record_name(noun: str, record_id: int, record: JsonObject) -> str:
    """Return the name to show for a record: its own, else its noun and id."""
    name = record.get("name")
    return (name.strip() if isinstance(name, str) else "")[:_LONGEST_NAME] or f"{noun} {record_id}"


def record_kind(record: JsonObject) -> str:
    """Return central's type of a device, "" for none."""
    kind = record.get("type")
    return str(kind)[:_LONGEST_NAME] if isinstance(kind, str | int) else ""


CAMERA_EVENTS = CameraEventRecords()


class EntryRecords(OwnIds):
    """Keeper of parking entries. An entry keeps the site's id; central's id is stored beside it, and shown if known."""

    def __init__(self) -> None:
        super().__init__("parking_entry")

    def add(self, connection: sqlite3.Connection, record: JsonObject, *, now: int) -> int:
        """Add an entry that a person made, and return its id. Without a time in the record, its time is `now`."""
        cursor = connection.execute(
            "INSERT INTO parking_entry (status, at, manual, clock_trusted) VALUES ('open', ?, 1, 1)", (now,)
        )
        made = int(cursor.lastrowid or 0)
        self.put(connection, made, record, now=now)
        return made

    def get(self, connection: sqlite3.Connection, record_id: int) -> JsonObject | None:
        """Return an entry with the interface's field names, without fields that are derived from other records."""
        row = connection.execute(
            "SELECT status, entry_at, exit_at, entry_device_id, exit_device_id, entry_lane, exit_lane, area, card_id,"
            " credential, plate, clock_trusted, record, coalesce(central_id, id) FROM parking_entry WHERE id = ?",
            (self.site_id(connection, record_id),),
        ).fetchone()
        if row is None:
            return None
        status, entry_at, exit_at, device, exit_device, lane, exit_lane, area, card, credential, plate = row[:11]
        trusted, more, shown_id = row[11:]
        is_exit = entry_at is None
        return {
            **_RECORD.validate_json(more),
            "id": shown_id,
            "type": "exit" if is_exit else "entry",
            "status": status,
            "date_at": iso_utc(exit_at if is_exit else entry_at),
            "exit_at": None if exit_at is None else iso_utc(exit_at),
            "device_id": exit_device if is_exit else device,
            "exit_device_id": exit_device,
            "lane": exit_lane if is_exit else lane,
            "exit_lane": exit_lane,
            "area": area,
            "access_id": card,
            "credential": credential,
            "plate": plate,
            "clock_trusted": bool(trusted),
        }

    def put(self, connection: sqlite3.Connection, record_id: int, record: JsonObject, *, now: int) -> None:
        """Store the record's fields in the entry; an entry that is missing here is added."""
        known = self.site_id(connection, record_id)
        row = connection.execute("SELECT exit_at, at FROM parking_entry WHERE id = ?", (known,)).fetchone()
        if row is None:
            central_id = record_id if record_id < FIRST_PROVISIONAL_ID else None
            cursor = connection.execute(
                "INSERT INTO parking_entry (central_id, status, at, manual, clock_trusted) VALUES (?, 'open', ?, 1, 1)",
                (central_id, now),
            )
            known, row = int(cursor.lastrowid or 0), (None, now)
        fields = _columns_of(record, exit_at=row[0], at=row[1])
        names = ", ".join(f"{name} = ?" for name in fields)
        connection.execute(f"UPDATE parking_entry SET {names} WHERE id = ?", (*fields.values(), known))

    def remove(self, connection: sqlite3.Connection, record_id: int) -> None:
        """Delete an entry."""
        connection.execute("DELETE FROM parking_entry WHERE id = ?", (self.site_id(connection, record_id),))


def _columns_of(record: JsonObject, *, exit_at: int | None, at: int) -> dict[str, object]:
    """Convert a record to columns. `exit_at` and `at` are the row's present values, kept if the record has none."""
    is_exit = record.get("type") == "exit"
    named = _micros(record.get("date_at"), at)
    moment = at if named is None else named
    left = moment if is_exit else _micros(record.get("exit_at"), exit_at)
    columns: dict[str, object] = {column: _whole(record.get(name)) for name, column in _NUMBERS.items()}
    columns |= {column: _text(record.get(name)) for name, column in _TEXTS.items()}
    if is_exit:
        columns["exit_device_id"] = columns["exit_device_id"] or columns["entry_device_id"]
        columns["exit_lane"] = columns["exit_lane"] or columns["entry_lane"]
        columns |= {"entry_device_id": None, "entry_lane": ""}
    status = EntryStatus.EXIT_ONLY if is_exit else EntryStatus.CLOSED if left is not None else EntryStatus.OPEN
    if status is EntryStatus.OPEN and record.get("status") == EntryStatus.SUPERSEDED:
        status = EntryStatus.SUPERSEDED
    more = {name: value for name, value in record.items() if name not in _KNOWN}
    return {
        **columns,
        "status": status.value,
        "entry_at": None if is_exit else moment,
        "exit_at": left,
        "at": moment,
        "plate": plain_plate(_text(record.get("plate"))),
        "clock_trusted": record.get("clock_trusted") is not False,
        "record": json.dumps(more, separators=(",", ":"), ensure_ascii=False),
    }


def _micros(value: JsonValue, known: int | None) -> int | None:
    """Parse an ISO time to wall micros; None for anything else.

    The `known` time is returned if the text means the same, because the text is only precise to milliseconds.
    """
    if not isinstance(value, str):
        return None
    if known is not None and iso_utc(known) == value:
        return known
    try:
        return micros_of(value, UTC)
    except ValueError:
        return None


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


RECORD_KINDS: Mapping[str, RecordKind] = MappingProxyType(
    {
        "device": StoredRecords("device"),
        "camera": StoredRecords("camera"),
        "access_card": CardIds(),
        "entry": EntryRecords(),
        "camera_event": CAMERA_EVENTS,
    }
)
"""The keeper of each kind of records."""
