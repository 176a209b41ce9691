"""Parking entries as the interface and its sheets show them."""

from __future__ import annotations

import json

from gateway.clock import iso_utc
from gateway.domain.parking import ParkingEntry
from gateway.store import EntryTotals
from gateway.web.shapes.entries import EntryTotalsRecord
from gateway.web.spreadsheets import Cell
from gateway.web.v1.records import Record

_MINUTE = 60_000_000


def entry_record(entry: ParkingEntry) -> Record:
    """An entry as the interface shows it, but for what others know of it."""
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
        "duration_minutes": minutes(entry.stayed),
        "device_id": entry.exit_device_id if is_exit else entry.entry_device_id,
        "exit_device_id": entry.exit_device_id,
        "lane_id": entry.entry_lane,
        "exit_lane_id": entry.exit_lane,
        "area": entry.area,
        "access_id": access_id(entry),
        "credential": entry.credential,
        "plate": entry.plate,
        "manual": entry.manual,
        "clock_trusted": entry.clock_trusted,
    }


def totals_record(totals: EntryTotals) -> EntryTotalsRecord:
    """Totals as the interface shows them."""
    return EntryTotalsRecord(
        count=totals.count,
        **{status.value: count for status, count in totals.by_status},
        average_minutes=minutes(totals.stayed_on_average),
        longest_minutes=minutes(totals.stayed_longest),
    )


def totals_rows(totals: EntryTotals) -> list[list[Cell]]:
    """Totals as the last rows of a sheet: what, and how many."""
    shown = totals_record(totals)
    said: list[tuple[str, object]] = [("Entries", shown.count)]
    said += ((status.value.replace("_", " ").capitalize(), count) for status, count in totals.by_status)
    said += (("Minutes on average", shown.average_minutes), ("Minutes at most", shown.longest_minutes))
    return [[name, "" if value is None else str(value)] for name, value in said]


def access_id(entry: ParkingEntry) -> int | None:
    """The card of an entry. What passed by a grant's code has an id below 0, which means nothing to others."""
    return entry.card_id if entry.card_id is not None and entry.card_id > 0 else None


def minutes(micros: int | None) -> float | None:
    """Micros as minutes."""
    return None if micros is None else round(micros / _MINUTE, 2)
