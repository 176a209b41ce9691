"""`python -m gateway.web.spreadsheet_process FILE`: turn rows on stdin into an .xlsx file, in bounded memory.

It is a separate process, because a large sheet takes minutes of Python on a small machine and would hold the
gateway's interpreter lock.

Stdin has one JSON value per line: first `{"sheet", "zone", "columns": [[title, kind, width], ...]}`, then arrays of
rows, then `null`; if the `null` does not come, no file is made. Kinds are `text`, `number`, and `moment` (micros since
1970, shown in the zone). Texts are written as strings, so that none becomes a formula or a link.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import xlsxwriter
from xlsxwriter.exceptions import XlsxWriterException
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from drivers.system_messages import system_words

DISK_REFUSED = 3
BROKEN_OFF = 4

_NICENESS = 10
_ROWS_OF_A_SHEET = 1_048_575  # Excel's limit of 1,048,576, less the row of titles
_LONGEST_TEXT = 32_767
_EXACT_BELOW = 10**15
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 1901, 9998


class Book:
    """A workbook to which rows are appended; when a sheet is full, another one begins."""

    def __init__(self, path: Path, *, sheet: str, zone: str, columns: list[list[Any]]) -> None:
        options = {"constant_memory": True, "tmpdir": str(path.parent)}
        self._book = xlsxwriter.Workbook(str(path), options)
        self._title = self._book.add_format({"bold": True})
        self._moment = self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        self._zone = ZoneInfo(zone)
        self._name = sheet
        self._columns = columns
        self._sheets = 0
        self._sheet: Worksheet = self._begin()
        self._row = 0

    def add(self, rows: Iterable[list[Any]]) -> None:
        """Append rows; None is an empty cell."""
        for row in rows:
            if self._row == _ROWS_OF_A_SHEET:
                self._end_sheet()
                self._sheet, self._row = self._begin(), 0
            self._row += 1
            for place, ((_, kind, _), value) in enumerate(zip(self._columns, row, strict=True)):
                if value is not None and value != "":
                    self._write(place, kind, value)

    def close(self) -> None:
        """Finish the file. Raises OSError or XlsxWriterException when it cannot be written."""
        self._end_sheet()
        self._book.close()

    def _begin(self) -> Worksheet:
        self._sheets += 1
        sheet = self._book.add_worksheet(self._name if self._sheets == 1 else f"{self._name} {self._sheets}")
        sheet.freeze_panes(1, 0)
        for place, (title, _, width) in enumerate(self._columns):
            sheet.set_column(place, place, width)
            sheet.write_string(0, place, title, self._title)
        return sheet

    def _end_sheet(self) -> None:
        self._sheet.autofilter(0, 0, max(self._row, 1), len(self._columns) - 1)

    def _write(self, place: int, kind: str, value: Any) -> None:
        if kind == "number" and isinstance(value, int | float) and abs(value) < _EXACT_BELOW:
            self._sheet.write_number(self._row, place, value)
        elif kind == "moment" and isinstance(value, int):
            self._write_moment(place, value, self._moment)
        else:
            text = str(value).encode("utf-8", "replace").decode()
            self._sheet.write_string(self._row, place, text[:_LONGEST_TEXT])

    def _write_moment(self, place: int, micros: int, form: Format) -> None:
        try:
            local = (_EPOCH + timedelta(microseconds=micros)).astimezone(self._zone).replace(tzinfo=None)
        except OverflowError:
            self._sheet.write_string(self._row, place, "never ends")
            return
        if _FIRST_YEAR <= local.year <= _LAST_YEAR:
            self._sheet.write_datetime(self._row, place, local.replace(microsecond=0), form)
        else:
            self._sheet.write_string(self._row, place, local.isoformat(sep=" ", timespec="seconds"))


def main(arguments: list[str]) -> int:
    """Write the file; return the exit status: 0, DISK_REFUSED, or BROKEN_OFF when stdin ended before `null`."""
    path = Path(arguments[0])
    with contextlib.suppress(PermissionError):  # the shipped systemd unit forbids it, and sets priorities itself
        os.nice(_NICENESS)
    try:
        book = Book(path, **json.loads(sys.stdin.buffer.readline() or b"{}"))
        for line in sys.stdin.buffer:
            rows = json.loads(line)
            if rows is None:
                book.close()
                return 0
            book.add(rows)
    except (OSError, XlsxWriterException) as error:
        sys.stderr.write(f"{system_words(error)}\n")
        return DISK_REFUSED
    return BROKEN_OFF


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
