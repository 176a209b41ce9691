"""Excel files as answers: rows go from the store to the disk a few at a time, so that size costs no memory.

Text is always text, never a formula; moments are in the site's time zone. Written in a thread, in small steps, because
a long one would keep the loop waiting for the interpreter; a few files at once, others wait their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from tempfile import TemporaryDirectory

import xlsxwriter
from aiohttp import web
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from gateway.web.errors import RequestRefused

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_ROWS = 200_000
"""More would be too much for one sheet; its last row then says that there are more."""
_AT_ONCE = 2
_TURN_SECONDS = 30.0
_MAKING_SECONDS = 300.0
_ROWS_AT_A_STEP = 100  # about 2 ms
_LONGEST_TEXT = 32_767
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class At:
    """A cell that shows a moment: wall micros UTC."""

    micros: int


Cell = str | int | float | bool | At | None
Row = Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Column:
    """A column's title and its width in characters."""

    title: str
    width: int = 18


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet and the batches of rows that fill it."""

    title: str
    columns: tuple[Column, ...]
    batches: AsyncIterable[Sequence[Row]]


class Excel:
    """Makes Excel files."""

    def __init__(self, *, zone: tzinfo) -> None:
        self._zone = zone
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def answer(self, request: web.Request, *, name: str, sheets: Sequence[Sheet]) -> web.StreamResponse:
        """Send a file with these sheets; `name` is what the caller's browser calls it, without blanks.

        Raises RequestRefused (503) when too many are being made, TimeoutError when it takes too long.
        """
        async with self._made(sheets) as path:
            headers = {
                "Content-Type": MEDIA_TYPE,
                "Content-Disposition": f'attachment; filename="{name}.xlsx"',
                "Cache-Control": "no-store",
            }
            response = web.FileResponse(path, headers=headers)
            await response.prepare(request)
            return response

    @asynccontextmanager
    async def _made(self, sheets: Sequence[Sheet]) -> AsyncIterator[Path]:
        folder = await asyncio.to_thread(TemporaryDirectory, prefix="edge-gateway-excel-")
        try:
            try:
                async with asyncio.timeout(_TURN_SECONDS):
                    await self._places.acquire()
            except TimeoutError as error:
                raise RequestRefused(
                    503, "too many Excel files are being made; try again", headers={"Retry-After": "30"}
                ) from error
            try:
                async with asyncio.timeout(_MAKING_SECONDS):
                    path = Path(folder.name) / "book.xlsx"
                    await self._write(path, sheets)
            finally:
                self._places.release()
            yield path
        finally:
            await asyncio.to_thread(folder.cleanup)

    async def _write(self, path: Path, sheets: Sequence[Sheet]) -> None:
        book = _Book(path, self._zone)
        try:
            for sheet in sheets:
                await asyncio.to_thread(book.begin, sheet)
                async for batch in sheet.batches:
                    if not await self._add(book, batch):
                        break
        finally:
            await asyncio.shield(asyncio.to_thread(book.close))

    async def _add(self, book: _Book, batch: Sequence[Row]) -> bool:
        for start in range(0, len(batch), _ROWS_AT_A_STEP):
            if not await asyncio.to_thread(book.add, batch[start : start + _ROWS_AT_A_STEP]):
                return False
        return True


class _Book:
    """A workbook in the writing thread; rows are on the disk as soon as they are added."""

    def __init__(self, path: Path, zone: tzinfo) -> None:
        options = {"constant_memory": True, "tmpdir": str(path.parent)}
        self._book = xlsxwriter.Workbook(str(path), options)
        self._zone = zone
        self._bold: Format = self._book.add_format({"bold": True})
        self._moment: Format = self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        self._sheet: Worksheet | None = None
        self._next = 0

    def begin(self, sheet: Sheet) -> None:
        """A new sheet with its titles."""
        self._sheet = self._book.add_worksheet(sheet.title)
        self._sheet.freeze_panes(1, 0)
        for place, column in enumerate(sheet.columns):
            self._sheet.set_column(place, place, column.width)
        for place, column in enumerate(sheet.columns):
            self._sheet.write_string(0, place, column.title, self._bold)
        self._next = 1

    def add(self, rows: Sequence[Row]) -> bool:
        """Rows below those that are there; whether all found room."""
        if self._sheet is None:
            raise AssertionError("rows belong to a sheet")
        for row in rows:
            if self._next > MOST_ROWS:
                self._sheet.write_string(self._next, 0, f"There are more; these are the first {MOST_ROWS:,}.")
                return False
            for place, cell in enumerate(row):
                self._put(self._sheet, place, cell)
            self._next += 1
        return True

    def _put(self, sheet: Worksheet, place: int, cell: Cell) -> None:
        match cell:
            case None | "":
                return
            case str():
                sheet.write_string(self._next, place, cell[:_LONGEST_TEXT])
            case At():
                local = (_EPOCH + timedelta(microseconds=cell.micros)).astimezone(self._zone)
                sheet.write_datetime(self._next, place, local.replace(tzinfo=None, microsecond=0), self._moment)
            case bool():
                sheet.write_string(self._next, place, "yes" if cell else "no")
            case _:
                sheet.write_number(self._next, place, cell)

    def close(self) -> None:
        """Write what the file needs besides its rows."""
        self._book.close()
