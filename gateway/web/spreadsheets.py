"""Excel files: a separate process makes the file from rows, and the finished file is streamed from disk."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from subprocess import PIPE
from typing import Literal
from zoneinfo import ZoneInfo

import structlog
from aiohttp import web
from pydantic_core import to_json

from drivers.child_process import start_child
from gateway.domain.errors import StoreError
from gateway.texts import text
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import XLSX

log = structlog.get_logger(__name__)

_AT_ONCE = 2
_MOST_WAITING = 8
_WHOLE_SECONDS = 600.0
_END_SECONDS = 5.0
_CHUNK = 256 * 1024
_MOST_SAID = 64 * 1024

Cell = str | int | float | None
Rows = Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, the kind of its cells, and its width in characters.

    Texts are never formulas, whatever they begin with. Moments are wall micros, shown in the site's time zone.
    """

    title: str
    kind: Literal["text", "number", "moment"] = "text"
    width: int = 16


class Spreadsheets:
    """The maker of Excel files: two at a time, each in its own process with bounded memory."""

    def __init__(self, *, folder: Path) -> None:
        """`folder`: a folder for these files only; files of earlier runs are removed from it."""
        self._folder = folder
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0
        self._cleared = False
        self._clearing = threading.Lock()

    async def answer(
        self,
        request: web.Request,
        *,
        name: str,
        sheet: str,
        columns: Sequence[Column],
        rows: AsyncIterator[Rows],
        zone: ZoneInfo,
    ) -> web.StreamResponse:
        """Make a file of all rows and send it.

        Args:
            request: the request that is answered.
            name: the file's name, without `.xlsx`.
            sheet: the sheet's name.
            columns: the columns, one for each cell of a row.
            rows: batches of at most a few hundred rows, so that no batch blocks the loop for long.
            zone: the time zone in which moments are shown.

        Raises RequestRefused (503) when too many files are being made, StoreError when the file cannot be written, and
        TimeoutError after ten minutes.
        """
        if self._waiting >= _MOST_WAITING:
            raise RequestRefused(503, text("refused.too_many_sheets"), headers={"Retry-After": "10"})
        self._waiting += 1
        try:
            async with self._places, asyncio.timeout(_WHOLE_SECONDS):
                path = await asyncio.to_thread(self._new_path)
                try:
                    header: dict[str, object] = {
                        "sheet": sheet,
                        "zone": str(zone),
                        "columns": [(column.title, column.kind, column.width) for column in columns],
                    }
                    await _make(path, header, rows)
                    file = path.open("rb", buffering=0)  # open it before it is removed; it is sent without a name
                finally:
                    await asyncio.to_thread(_remove, path)
        finally:
            self._waiting -= 1
        with file:
            return await _sent(request, file, f"{name}.xlsx")

    def _new_path(self) -> Path:
        with self._clearing:
            if not self._cleared:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._cleared = True
        folder = self._folder / secrets.token_hex(8)
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise StoreError(text("refused.sheet_disk", why=str(error.strerror))) from error
        return folder / "sheet.xlsx"


async def _make(path: Path, header: dict[str, object], rows: AsyncIterator[Rows]) -> None:
    process = await start_child(
        (sys.executable, "-m", "gateway.web.spreadsheet_process", str(path)), stdin=PIPE, stderr=PIPE
    )
    if process.stdin is None or process.stderr is None:
        raise AssertionError("both are pipes")
    try:
        await _feed(process.stdin, header, rows)
        said = (await process.stderr.read(_MOST_SAID)).decode("utf-8", "replace").strip().rpartition("\n")[2]
        status = await process.wait()
    finally:
        process.kill()
        process.close()
        if await process.ended(within=_END_SECONDS) is None:
            log.error("sheet_process_does_not_die", pid=process.pid)
    if status != 0:
        log.warning("sheet_not_made", status=status, said=said)
        raise StoreError(text("refused.sheet_unwritten", why=str(said or f"its process ended with {status}")))


async def _feed(pipe: asyncio.StreamWriter, header: dict[str, object], rows: AsyncIterator[Rows]) -> None:
    """Write all rows. If the process ends before that, its exit status says why."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        pipe.write(to_json(header) + b"\n")
        async for stretch in rows:
            pipe.write(to_json(stretch) + b"\n")
            await pipe.drain()
        pipe.write(b"null\n")
        await pipe.drain()
        pipe.close()


async def _sent(request: web.Request, file: FileIO, name: str) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    )
    response.content_type = XLSX
    response.content_length = os.fstat(file.fileno()).st_size
    await response.prepare(request)
    while chunk := await asyncio.to_thread(file.read, _CHUNK):
        await response.write(chunk)
    await response.write_eof()
    return response


def _remove(path: Path) -> None:
    shutil.rmtree(path.parent, ignore_errors=True)
