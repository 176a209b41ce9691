"""Uploads: a multipart form with a few short fields and one file, which is streamed, never held in memory whole."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import BodyPartReader, MultipartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from gateway.domain.evidence import TooLarge
from gateway.recording.incoming import Incoming
from gateway.texts import text
from gateway.web.http.errors import RequestRefused

_CHUNK = 256 * 1024
_MOST_FIELDS = 16
_LONGEST_FIELD = 8 * 1024
_SILENCE_SECONDS = 30.0
_WHOLE_SECONDS = 1800.0
_AT_ONCE = 4
_NAMED = re.compile(r';\s*filename="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_ESCAPED = re.compile(r'\\(["\\])')
_AS_IT_IS = frozenset({"", "binary", "8bit", "7bit"})


class UploadPlaces:
    """The limit on uploads at once."""

    def __init__(self, *, most: int = _AT_ONCE) -> None:
        self._free = most

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Hold one place while the context lasts, at most half an hour.

        Raises RequestRefused: 503 when no place is free, 408 after half an hour.
        """
        if not self._free:
            raise RequestRefused(503, "too many uploads at once; try again", headers={"Retry-After": "10"})
        self._free -= 1
        try:
            async with asyncio.timeout(_WHOLE_SECONDS):
                yield
        except TimeoutError as error:
            raise RequestRefused(408, "the upload took too long; nothing of it was kept") from error
        finally:
            self._free += 1


class Form:
    """A form while it is received: its fields by name, and the file's name once the file's part has begun."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.filename: str | None = None


async def receive_form(
    request: web.Request, incoming: Incoming, *, before_file: Callable[[Form], Awaitable[None]], file: str = "file"
) -> Form:
    """Read the whole form; the part named `file` is written to `incoming`.

    `before_file` is called when the file's part begins, with the fields before it; it may refuse the upload. Raises
    RequestRefused for a form that is malformed, too large or too slow.
    """
    if request.content_type != "multipart/form-data":
        raise RequestRefused(400, f"the body must be multipart/form-data with the fields id and {file}")
    form = Form()
    try:
        reader = await request.multipart()
        while (part := await _patient(reader)) is not None:
            await _take(part, form, incoming, file, before_file)
    except RequestRefused:
        raise
    except TooLarge as error:
        raise RequestRefused(413, f"{file}: is larger than an uploaded file may be") from error
    except TimeoutError as error:
        raise RequestRefused(408, text("refused.body_late")) from error
    except (web.RequestPayloadError, ConnectionError) as error:
        raise RequestRefused(400, text("refused.body_broke_off")) from error
    except (ValueError, KeyError, AssertionError, RuntimeError, HttpProcessingError) as error:
        # aiohttp raises all of these for a malformed form
        raise RequestRefused(400, "the body is no whole multipart form") from error
    if form.filename is None:
        raise RequestRefused(400, f"{file}: is missing")
    return form


async def _take(
    part: BodyPartReader | MultipartReader,
    form: Form,
    incoming: Incoming,
    file: str,
    before_file: Callable[[Form], Awaitable[None]],
) -> None:
    name = part.name if isinstance(part, BodyPartReader) else None
    if not isinstance(part, BodyPartReader) or not name:
        raise RequestRefused(400, "the body has a part without a name")
    for header in ("Content-Transfer-Encoding", "Content-Encoding"):
        if part.headers.get(header, "").strip().lower() not in _AS_IT_IS:
            raise RequestRefused(400, f"{name}: must be sent as it is, not encoded")
    if name == file:
        if form.filename is not None:
            raise RequestRefused(400, f"{file}: one file is taken at a time")
        form.filename = _filename(part)
        await before_file(form)
        await _pour(part, incoming)
        return
    if len(form.fields) >= _MOST_FIELDS:
        raise RequestRefused(400, "the body has too many fields")
    form.fields[name] = await _text(part, name)


def _filename(part: BodyPartReader) -> str:
    """Return the file's name as sent.

    aiohttp treats each backslash as an escape. Some browsers send a path with plain backslashes, so here a backslash
    escapes only a quote or another backslash.
    """
    header = part.headers.get("Content-Disposition", "")
    named = _NAMED.search(header)
    if named is None or "filename*" in header.casefold():
        return part.filename or ""
    return _ESCAPED.sub(r"\1", named[1])


async def _pour(part: BodyPartReader, incoming: Incoming) -> None:
    empty = True
    while chunk := await _chunk(part):
        empty = False
        await incoming.write(chunk)
    if empty:
        raise RequestRefused(400, f"{part.name}: is empty")


async def _text(part: BodyPartReader, name: str) -> str:
    raw = bytearray()
    while chunk := await _chunk(part):
        raw += chunk
        if len(raw) > _LONGEST_FIELD:
            raise RequestRefused(400, f"{name}: is too long")
    try:
        return raw.decode().strip()
    except UnicodeDecodeError as error:
        raise RequestRefused(400, f"{name}: must be UTF-8 text") from error


async def _chunk(part: BodyPartReader) -> bytes:
    async with asyncio.timeout(_SILENCE_SECONDS):
        return await part.read_chunk(_CHUNK)


async def _patient(reader: MultipartReader) -> BodyPartReader | MultipartReader | None:
    async with asyncio.timeout(_SILENCE_SECONDS):
        return await reader.next()
