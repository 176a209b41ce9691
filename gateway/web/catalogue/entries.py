"""Parking entries: listed, reported, as Excel, and made or changed by people."""

from __future__ import annotations

from gateway.web.catalogue.operation import XLSX, Operation, needs
from gateway.web.shapes.entries import (
    ChangedEntry,
    EntriesAnswer,
    EntryAnswer,
    EntryListBody,
    EntryReportAnswer,
    EntryWhich,
    NewEntry,
)

_VIEW = needs("can_view_entries")

ENTRY_LIST = Operation(
    "POST",
    "/v1/entry/list",
    _VIEW,
    "entries",
    purpose="List parking entries, newest first",
    body=EntryListBody,
    answer=EntriesAnswer,
    reads=True,
)
ENTRY_REPORT = Operation(
    "POST",
    "/v1/entry/report",
    _VIEW,
    "entries",
    purpose="Entries for the report view, with totals",
    body=EntryListBody,
    answer=EntryReportAnswer,
    reads=True,
)
ENTRY_EXCEL = Operation(
    "POST",
    "/v1/entry/excel",
    _VIEW,
    "entries",
    purpose="Entries as Excel",
    body=EntryWhich,
    answer_type=XLSX,
    reads=True,
)
ENTRY_REPORT_EXCEL = Operation(
    "POST",
    "/v1/entry/reportExcel",
    _VIEW,
    "entries",
    purpose="Entry report as Excel",
    body=EntryWhich,
    answer_type=XLSX,
    reads=True,
)
ENTRY_PUT = Operation(
    "PUT",
    "/v1/entry",
    needs("can_add_entries"),
    "entry",
    purpose="Create a manual parking entry",
    body=NewEntry,
    answer=EntryAnswer,
)
ENTRY_PATCH = Operation(
    "PATCH",
    "/v1/entry",
    needs("can_edit_entries"),
    "entry",
    purpose="Update a parking entry",
    body=ChangedEntry,
    answer=EntryAnswer,
)

OPERATIONS: tuple[Operation, ...] = (
    ENTRY_LIST,
    ENTRY_REPORT,
    ENTRY_EXCEL,
    ENTRY_REPORT_EXCEL,
    ENTRY_PUT,
    ENTRY_PATCH,
)
