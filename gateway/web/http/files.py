"""Files as answers: sent by sendfile, with Range and ETag, and cached by the caller only, not by proxies.

A segment is sent as a whole file, or as a part of one that may still grow.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from io import FileIO
from pathlib import Path

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from gateway.domain.errors import NotFoundError
from gateway.recording.live_parts import OpenPart
from gateway.web.auth.view_tokens import TOKEN

_COMPRESSED_AT_ONCE = 32_768
"""Bytes; a longer text is compressed in a thread."""
_ADDRESS = re.compile(r'((?<=[:,]URI=")[^"]*)')
_REFUSED_WEIGHT = re.compile(r"q\s*=\s*0(\.0*)?")
_MAKING_SECONDS = 60.0
MP4 = "video/mp4"
SEGMENT = "video/MP2T"
PLAYLIST = "application/vnd.apple.mpegurl"
JPEG = "image/jpeg"
LASTING = "private, max-age=604800, immutable"
"""Cache-Control of content that never changes under its address."""
_SHUT_IN = "sandbox; default-src 'none'; frame-ancestors 'none'"
_PLAYED = "sandbox allow-same-origin; default-src 'none'; media-src 'self'; frame-ancestors 'none'"
"""A browser's player requests the file again from the page that shows it, so that page keeps its origin; no scripts."""


def as_file(path: Path, media_type: str) -> web.FileResponse:
    """Serve a file that may be replaced: a cache must revalidate it by its ETag."""
    return _TaggedFile(path, headers={"Content-Type": media_type, "Cache-Control": "private, no-cache"})


def as_lasting_file(path: Path, media_type: str) -> web.FileResponse:
    """Serve a file that never changes under its address: a cache may keep it for a week without revalidation."""
    return _TaggedFile(path, headers={"Content-Type": media_type, "Cache-Control": LASTING})


def as_guarded_file(path: Path, media_type: str, *, disposition: str) -> web.FileResponse:
    """Serve a file of unknown origin: no cache keeps it, and its policy forbids scripts when a browser shows it."""
    return _TaggedFile(
        path,
        headers={
            "Content-Type": media_type,
            "Content-Disposition": disposition,
            "Cache-Control": "private, no-store",
            "Content-Security-Policy": _PLAYED if media_type.startswith(("video/", "audio/")) else _SHUT_IN,
        },
    )


async def as_playlist(request: web.Request, text: str, *, lasting: bool = False) -> web.Response:
    """Answer with a playlist, or 304 if the caller has it already. `lasting`: the playlist will never change.

    A token in the request's address is added to every address in the playlist, because many players send no headers.
    """
    if token := request.query.get(TOKEN):
        text = with_token(text, token)
    body = text.encode()
    answer = web.Response(headers={"Content-Type": PLAYLIST, "Vary": "Accept-Encoding"})
    if takes_gzip(request):
        body = await _compressed(body)
        answer.headers["Content-Encoding"] = "gzip"
    answer.body = body
    answer.headers["Cache-Control"] = "private, max-age=3600, immutable" if lasting else "private, no-cache"
    return unless_known(request, answer, tag=hashlib.sha256(body).hexdigest()[:32])


def unless_known(request: web.Request, answer: web.Response, *, tag: str) -> web.Response:
    """Give the answer its ETag; if the caller has that already, make it a 304 without a body."""
    answer.etag = tag
    if any(known.value in (tag, "*") for known in request.if_none_match or ()):
        answer.set_status(304)
        answer.body = None
    return answer


def with_token(playlist: str, token: str) -> str:
    """Add the token to every address of a playlist whose addresses have no query."""
    query = f"?{TOKEN}={token}"
    lines = (line + query if line and not line.startswith("#") else line for line in playlist.split("\n"))
    return _ADDRESS.sub(rf"\1{query}", "\n".join(lines))


async def _compressed(body: bytes) -> bytes:
    compress = partial(gzip.compress, body, 6, mtime=0)  # without a time, so that equal playlists have equal tags
    return await asyncio.to_thread(compress) if len(body) > _COMPRESSED_AT_ONCE else compress()


def takes_gzip(request: web.Request) -> bool:
    """Return whether the client takes a compressed answer."""
    for named in request.headers.get("Accept-Encoding", "").lower().split(","):
        coding, _, weight = named.partition(";")
        if coding.strip() in ("gzip", "x-gzip", "*"):
            return not _REFUSED_WEIGHT.fullmatch(weight.strip())
    return False


class _TaggedFile(web.FileResponse):
    """A file that supports If-Range with an ETag (RFC 9110, 13.1.5); aiohttp supports it with dates only."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """See `web.FileResponse.prepare`."""
        if "Range" in request.headers and not await self._is_for_part(request):
            headers = request.headers.copy()
            del headers["Range"]
            request = request.clone(headers=headers)
        return await super().prepare(request)

    async def _is_for_part(self, request: web.BaseRequest) -> bool:
        """Return whether to answer the Range header with a part of the file.

        False for several ranges, other units than bytes, and an If-Range that names another version: the whole file is
        sent then, as RFC 9110, 14.2, allows.
        """
        unit, _, parts = request.headers["Range"].partition("=")
        if unit.strip().lower() != "bytes" or "," in parts:
            return False
        named = request.headers.get("If-Range", "")
        if not named.endswith('"'):
            return True
        status = await asyncio.to_thread(self._path.stat)
        return named == f'"{status.st_mtime_ns:x}-{status.st_size:x}"'


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Limit the making of a clip or thumbnail to a minute; then raise TimeoutError."""
    async with asyncio.timeout(_MAKING_SECONDS):
        yield


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
    return _OpenedPart(FileIO(os.dup(part.file.fileno())), offset=part.offset, size=part.length, headers=headers)


class _OpenedPart(web.StreamResponse):
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
