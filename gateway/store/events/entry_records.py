"""Parking entries as records that central also has: conversion between the interface's fields and columns.

All methods are steps within a running transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from pydantic import JsonValue, TypeAdapter

from drivers.plate_text import plain_plate
from gateway.domain.parking import EntryStatus
from gateway.domain.writes import FIRST_PROVISIONAL_ID, JsonObject
from gateway.runtime.clock import iso_utc
from gateway.store.outbox.central_ids import OwnIds

_RECORD = TypeAdapter(JsonObject)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS: Mapping[str, str] = MappingProxyType(
    {"device_id": "entry_device_id", "exit_device_id": "exit_device_id", "access_id": "card_id"}
)
_TEXTS: Mapping[str, str] = MappingProxyType(
    {"lane": "entry_lane", "exit_lane": "exit_lane", "area": "area", "credential": "credential"}
)
_KNOWN = frozenset({"id", "type", "date_at", "exit_at", "status", "plate", "clock_trusted", *_NUMBERS, *_TEXTS})


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
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
