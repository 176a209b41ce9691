"""HTTP/1.1 between two processes of ours on a Unix socket: as much of RFC 9112 as the gateway's client sends.

An HTTP library would take a third of a worker's memory for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote

import structlog

log = structlog.get_logger(__name__)

_LARGEST_BODY = 4_000_000
_BODY_SECONDS = 30.0
_WRITE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: `path` in its parts, each decoded."""

    method: str
    path: tuple[str, ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of JSON, or none. With `lines` its body is what comes of these, and the connection ends with it."""

    status: int
    body: bytes = b""
    lines: AsyncGenerator[bytes, None] | None = None


class _Unheard(Exception):
    """What came is no request that is served here; the status to say so with."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


async def serve_connection(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Callable[[Request], Awaitable[Response]]
) -> None:
    """Answer the requests of one connection until it ends; what `answer` raises is a fault of ours, and told as 500."""
    try:
        while (request := await _request(reader)) is not None:
            try:
                response = await answer(request)
            except Exception:  # a fault in one request must not end the worker
                log.exception("request_failed", method=request.method, path=request.path[:1])
                response = Response(HTTPStatus.INTERNAL_SERVER_ERROR)
            await _respond(writer, response)
            if response.lines is not None:
                return
    except _Unheard as error:
        with contextlib.suppress(ConnectionError, TimeoutError):  # whoever sent that may have gone
            await _respond(writer, Response(error.status))
    except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
        log.info("connection_lost")
    finally:
        writer.close()


async def _request(reader: asyncio.StreamReader) -> Request | None:
    """The next request; None when the other side has ended the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    except asyncio.LimitOverrunError as error:
        raise _Unheard(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from error
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    words = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if len(words) != 3 or "transfer-encoding" in headers:
        raise _Unheard(HTTPStatus.BAD_REQUEST)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise _Unheard(HTTPStatus.BAD_REQUEST)
    if int(length) > _LARGEST_BODY:
        raise _Unheard(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    async with asyncio.timeout(_BODY_SECONDS):
        body = await reader.readexactly(int(length))
    path = words[1].partition("?")[0].removeprefix("/")
    return Request(method=words[0], path=tuple(unquote(part) for part in path.split("/")), body=body)


async def _respond(writer: asyncio.StreamWriter, response: Response) -> None:
    head = f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n"
    if response.lines is None:
        if response.body:
            head += "Content-Type: application/json\r\n"
        if response.status != HTTPStatus.NO_CONTENT:
            head += f"Content-Length: {len(response.body)}\r\n"
        await _write(writer, head.encode() + b"\r\n" + response.body)
        return
    head += "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    await _write(writer, head.encode() + b"\r\n")
    async with contextlib.aclosing(response.lines) as lines:
        async for line in lines:
            await _write(writer, b"%x\r\n%b\r\n" % (len(line), line))
    await _write(writer, b"0\r\n\r\n")


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    async with asyncio.timeout(_WRITE_SECONDS):
        await writer.drain()
