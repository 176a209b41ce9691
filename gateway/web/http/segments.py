"""Segments as answers: whole files, and parts of a file that may still grow."""

from __future__ import annotations

import asyncio
import os
from io import FileIO
from pathlib import Path

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from gateway.domain.errors import NotFoundError
from gateway.recording.live_parts import OpenPart
from gateway.web.http.files import LASTING, SEGMENT, as_lasting_file


async def as_segment(path: Path) -> web.StreamResponse:
    """Return the segment in this file as an answer. Raises NotFoundError if the segment was deleted."""
    if not await asyncio.to_thread(path.exists):
        raise NotFoundError("the segment was deleted")
    return as_lasting_file(path, SEGMENT)


def as_part(request: web.Request, part: OpenPart) -> web.StreamResponse:
    """Return a part of a segment, whose file may still grow, as an answer. A Range is ignored."""
    headers = {"Content-Type": SEGMENT, "Cache-Control": LASTING, "Content-Length": str(part.length)}
    if request.method != "GET":
        return web.Response(headers=headers)
    return _Part(FileIO(os.dup(part.file.fileno())), offset=part.offset, size=part.length, headers=headers)


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
