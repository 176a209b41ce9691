"""Parking entries and their totals as records of the interface, and as rows of an Excel sheet."""

from __future__ import annotations

import json
from collections.abc import Mapping

from gateway.domain.passages import ParkingEntry
from gateway.runtime.clock import iso_utc
from gateway.store import EntryTotals
from gateway.web.operations.entries.models import EntryTotalsRecord
from gateway.web.operations.records import Record
from gateway.web.spreadsheets import Cell, Column

_MINUTE = 60_000_000
COLUMNS = (
    Column("Id", "number", 20),
    Column("Status", width=12),
    Column("Entered", "moment", 20),
    Column("Left", "moment", 20),
    Column("Minutes", "number", 10),
    Column("Lane in", width=20),
    Column("Lane out", width=20),
    Column("Area", width=14),
    Column("Access card", "number", 12),
    Column("Credential", width=20),
    Column("Plate", width=14),
    Column("By hand", width=9),
    Column("Clock trusted", width=13),
    Column("Note", width=40),
)
"""The columns of a sheet of entries."""


def entry_record(entry: ParkingEntry) -> Record:
    """Return an entry as a record of the interface, without lane names and `sync`, which the caller adds."""
    is_exit = entry.entry_at is None
    moments = [None if micros is None else iso_utc(micros) for micros in (entry.entry_at, entry.exit_at)]
    return {
        **json.loads(entry.record),
        "id": entry.central_id or entry.id,
        "site_id": entry.id,
        "central_id": entry.central_id,
        "type": "exit" if is_exit else "entry",
        "status": entry.status.value,
        "date_at": moments[1] if is_exit else moments[0],
        "entry_at": moments[0],
        "exit_at": moments[1],
        "duration_minutes": _minutes(entry.stayed),
        "device_id": entry.exit_device_id if is_exit else entry.entry_device_id,
        "exit_device_id": entry.exit_device_id,
        "lane_id": entry.entry_lane,
        "exit_lane_id": entry.exit_lane,
        "area": entry.area,
        "access_id": _access_id(entry),
        "credential": entry.credential,
        "plate": entry.plate,
        "manual": entry.manual,
        "clock_trusted": entry.clock_trusted,
    }


def totals_record(totals: EntryTotals) -> EntryTotalsRecord:
    """Return totals as the interface's model."""
    return EntryTotalsRecord(
        count=totals.count,
        **{status.value: count for status, count in totals.by_status},
        average_minutes=_minutes(totals.stayed_on_average),
        longest_minutes=_minutes(totals.stayed_longest),
    )


def totals_rows(totals: EntryTotals) -> list[list[Cell]]:
    """Return totals as the last rows of a sheet, each with a name and a value."""
    shown = totals_record(totals)
    said: list[tuple[str, object]] = [("Entries", shown.count)]
    said += ((status.value.replace("_", " ").capitalize(), count) for status, count in totals.by_status)
    said += (("Minutes on average", shown.average_minutes), ("Minutes at most", shown.longest_minutes))
    return [[name, "" if value is None else str(value)] for name, value in said]


def entry_row(entry: ParkingEntry, lanes: Mapping[str, str]) -> list[Cell]:
    """Return an entry as a row of a sheet; `lanes` are lane names by id."""
    note = json.loads(entry.record).get("note", "")
    return [
        entry.central_id or entry.id,
        entry.status.value,
        entry.entry_at,
        entry.exit_at,
        _minutes(entry.stayed),
        lanes.get(entry.entry_lane, entry.entry_lane),
        lanes.get(entry.exit_lane, entry.exit_lane),
        entry.area,
        _access_id(entry),
        entry.credential,
        entry.plate,
        "yes" if entry.manual else "",
        "" if entry.clock_trusted else "no",
        note if isinstance(note, str) else "",
    ]


def _access_id(entry: ParkingEntry) -> int | None:
    """Return the id of an entry's card, or None. A grant's code has an id below 0, which is internal."""
    return entry.card_id if entry.card_id is not None and entry.card_id > 0 else None


def _minutes(micros: int | None) -> float | None:
    return None if micros is None else round(micros / _MINUTE, 2)
