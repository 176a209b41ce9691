"""Segments as answers. Files that many players request at once stay open, so that each answer takes few system calls.

Only the common request is answered this way: a GET of a whole segment without conditions. Others go the way of files.
"""

from __future__ import annotations

import asyncio
import math
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from io import FileIO
from pathlib import Path

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from gateway.domain.errors import NotFoundError
from gateway.recording.live_parts import OpenPart
from gateway.web.http.files import LASTING, SEGMENT, as_lasting_file

MOST_OPEN = 64
KEPT_SECONDS = 10.0
LARGEST_KEPT = 8_000_000
_PIECE = 262_144
_CONDITIONS = frozenset({"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"})


@dataclass(slots=True, eq=False)
class _Open:
    """An open segment file. It was read once into the page cache, so that sending it does not wait for the disk.

    Attributes:
        until: the monotonic time until which it is kept open; below 0 once it is forgotten.
        users: the number of answers that send it now.
    """

    file: FileIO
    size: int
    headers: dict[str, str]
    until: float = 0.0
    users: int = 0

    @property
    def deleted(self) -> bool:
        """True when the file was deleted. The kernel knows its link count without the disk."""
        return os.fstat(self.file.fileno()).st_nlink == 0


class SegmentFiles:
    """The segments requested within the last ten seconds, at most 64, kept open. For use on the event loop only."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._open: OrderedDict[Path, _Open] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def count(self) -> int:
        """The number of open files."""
        return len(self._open)

    async def answer(self, request: web.Request, path: Path) -> web.StreamResponse:
        """Return the segment in this file as an answer.

        Raises:
            NotFoundError: the segment was deleted.
        """
        if request.method != "GET" or not request.headers.keys().isdisjoint(_CONDITIONS):
            return as_lasting_file(path, SEGMENT)
        known = self._open.get(path)
        if known is None:
            known = await self._opened(path)
        elif known.deleted:
            self._forget(path)
            raise NotFoundError("the segment was deleted")
        return as_lasting_file(path, SEGMENT) if known is None else _Segment(known, files=self)

    def part(self, request: web.Request, part: OpenPart) -> web.StreamResponse:
        """Return a part of a segment, whose file may still grow, as an answer. A Range is ignored."""
        headers = {"Content-Type": SEGMENT, "Cache-Control": LASTING, "Content-Length": str(part.length)}
        if request.method != "GET":
            return web.Response(headers=headers)
        return _Part(FileIO(os.dup(part.file.fileno())), offset=part.offset, size=part.length, headers=headers)

    async def close(self, _: web.Application) -> None:
        """Close all files as the application ends; a file that is being sent closes after that."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for path in tuple(self._open):
            self._forget(path)

    def left(self, segment: _Open) -> None:
        """Note that an answer has ended, sent or not; close the file if it was the last and the file is forgotten."""
        segment.users -= 1
        if not segment.users and segment.until < 0:
            segment.file.close()

    async def _opened(self, path: Path) -> _Open | None:
        """Open and keep a file; None for one that is not kept: too large, empty, or unreadable."""
        opened = await asyncio.to_thread(_open_and_read, path)
        if opened is None:
            return None
        if (other := self._open.get(path)) is not None:  # another request opened it meanwhile
            opened.file.close()
            return other
        opened.until = self._monotonic() + KEPT_SECONDS
        self._open[path] = opened
        if len(self._open) > MOST_OPEN:
            self._forget(next(iter(self._open)))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._close_old)
        return opened

    def _close_old(self) -> None:
        """Close files after ten seconds: an open file keeps the space of a deleted segment, and its disk, in use."""
        self._timer = None
        now = self._monotonic()
        for path in [path for path, segment in self._open.items() if segment.until <= now]:
            self._forget(path)
        if self._open:
            wait = max(0.1, next(iter(self._open.values())).until - now)
            self._timer = asyncio.get_running_loop().call_later(wait, self._close_old)

    def _forget(self, path: Path) -> None:
        segment = self._open.pop(path)
        segment.until = -1.0
        if not segment.users:
            segment.file.close()


class _Segment(web.StreamResponse):
    """A whole segment."""

    def __init__(self, segment: _Open, *, files: SegmentFiles) -> None:
        super().__init__(headers=segment.headers)
        self._segment = segment
        self._files = files

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send the headers and the whole body. See `web.StreamResponse.prepare`."""
        segment = self._segment
        segment.users += 1
        try:
            writer = await super().prepare(request)
            await _send(request.transport, segment.file, 0, segment.size)
        finally:
            self._files.left(segment)
        return writer


class _Part(web.StreamResponse):
    """A part of a segment, from a file of its own, which it closes."""

    def __init__(self, file: FileIO, *, offset: int, size: int, headers: dict[str, str]) -> None:
        super().__init__(headers=headers)
        self._file = file
        self._offset = offset
        self._size = size

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send the headers and the whole body. See `web.StreamResponse.prepare`."""
        with self._file:
            writer = await super().prepare(request)
            await _send(request.transport, self._file, self._offset, self._size)
        return writer


async def _send(transport: asyncio.Transport | None, file: FileIO, sent: int, size: int) -> None:
    """Send `size` bytes from `sent` on: first what fits the socket's buffer, then the rest as the client reads."""
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the connection was lost")
    end = sent + size
    socket = transport.get_extra_info("socket")
    if socket is not None and not transport.get_write_buffer_size():
        to, of = socket.fileno(), file.fileno()
        try:
            while sent < end:
                now = os.sendfile(to, of, sent, end - sent)
                if not now:
                    raise ConnectionResetError("the segment became shorter")
                sent += now
        except BlockingIOError:
            pass
    if sent < end:
        await asyncio.get_running_loop().sendfile(transport, file, sent, end - sent)


def _open_and_read(path: Path) -> _Open | None:
    try:
        file = FileIO(path)
    except FileNotFoundError:
        raise NotFoundError("the segment was deleted") from None
    except OSError:
        return None
    try:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or not 0 < found.st_size <= LARGEST_KEPT:
            file.close()
            return None
        room = bytearray(_PIECE)
        while file.readinto(room):
            pass
    except OSError:
        file.close()
        return None
    headers = {
        "Content-Type": SEGMENT,
        "Cache-Control": LASTING,
        "ETag": f'"{found.st_mtime_ns:x}-{found.st_size:x}"',
        "Last-Modified": formatdate(math.ceil(found.st_mtime), usegmt=True),  # rounded as aiohttp does for other files
        "Content-Length": str(found.st_size),
        "Accept-Ranges": "bytes",
    }
    return _Open(file=file, size=found.st_size, headers=headers)
