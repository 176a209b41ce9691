"""Segments as answers: what many players ask for again and again stays open, and goes out with few steps.

The common request, for the whole of a segment and without conditions, is answered here; any other as any file is.
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
from gateway.web.http.files import LASTING, SEGMENT, as_lasting_file

MOST_OPEN = 64
KEPT_SECONDS = 10.0
LARGEST_KEPT = 8_000_000
_PIECE = 262_144
_CONDITIONS = frozenset({"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"})


@dataclass(slots=True, eq=False)
class _Open:
    """A segment's file that is open, and was read once, so that sending it waits for no disk."""

    file: FileIO
    size: int
    headers: dict[str, str]
    until: float = 0.0
    users: int = 0

    @property
    def deleted(self) -> bool:
        """True when no folder has the file any more; the kernel knows it without the disk."""
        return os.fstat(self.file.fileno()).st_nlink == 0


class SegmentFiles:
    """The segments that were asked for lately, open for ten seconds. Belongs to the loop."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._open: OrderedDict[Path, _Open] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def count(self) -> int:
        """The number of open files."""
        return len(self._open)

    async def answer(self, request: web.Request, path: Path) -> web.StreamResponse:
        """Return the segment in this file, for as long as it is there.

        Raises:
            NotFoundError: it was deleted.
        """
        headers = request.headers
        if request.method != "GET" or any(name in headers for name in _CONDITIONS):
            return as_lasting_file(path, SEGMENT)
        known = self._open.get(path)
        if known is None:
            known = await self._opened(path)
        elif known.deleted:
            self._forget(path)
            raise NotFoundError("the segment was deleted")
        return as_lasting_file(path, SEGMENT) if known is None else _Segment(known, files=self)

    async def close(self, _: web.Application) -> None:
        """Close all files that are not being sent, as the application ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for path in tuple(self._open):
            self._forget(path)

    def left(self, segment: _Open) -> None:
        """One who was sent the segment has it, or has gone."""
        segment.users -= 1
        if not segment.users and segment.until < 0:
            segment.file.close()

    async def _opened(self, path: Path) -> _Open | None:
        """Open it, and keep it open; None: it is not for keeping."""
        opened = await asyncio.to_thread(_open_and_read, path)
        if opened is None:
            return None
        if (other := self._open.get(path)) is not None:  # somebody else asked meanwhile
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
        """Close those whose time is over: they hold the space of what was deleted, and their disk."""
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
    """A whole segment: the kernel sends what the connection takes at once, and what is left when it takes more."""

    def __init__(self, segment: _Open, *, files: SegmentFiles) -> None:
        super().__init__(headers=segment.headers)
        self._segment = segment
        self._files = files

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """See `web.StreamResponse.prepare`; it sends the body too."""
        segment = self._segment
        segment.users += 1
        try:
            writer = await super().prepare(request)
            await self._send(request.transport)
        finally:
            self._files.left(segment)
        return writer

    async def _send(self, transport: asyncio.Transport | None) -> None:
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the connection was lost")
        file, size, sent = self._segment.file, self._segment.size, 0
        socket = transport.get_extra_info("socket")
        if socket is not None and not transport.get_write_buffer_size():
            to, of = socket.fileno(), file.fileno()
            try:
                while sent < size:
                    now = os.sendfile(to, of, sent, size - sent)
                    if not now:
                        raise ConnectionResetError("the segment became shorter")
                    sent += now
            except BlockingIOError:
                pass
        if sent < size:
            await asyncio.get_running_loop().sendfile(transport, file, sent, size - sent)


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
        "Last-Modified": formatdate(math.ceil(found.st_mtime), usegmt=True),  # as aiohttp tells it of other files
        "Content-Length": str(found.st_size),
        "Accept-Ranges": "bytes",
    }
    return _Open(file=file, size=found.st_size, headers=headers)
