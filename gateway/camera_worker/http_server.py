"""HTTP/1.1 on a worker's Unix socket: requests with a length, answers, and answers that go on.

Only the gateway of this machine connects. A framework's server would take 11 MB of each worker.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus

import structlog

log = structlog.get_logger(__name__)

JSON = "application/json"
_LONGEST_HEAD = 32_768
_LARGEST_BODY = 4_000_000
_IDLE_SECONDS = 75.0
_READ_SECONDS = 10.0
_WRITE_SECONDS = 10.0


class InvalidRequest(ValueError):
    """A request that cannot be read; the text says why. Its answer ends the connection."""

    def __init__(self, text: str, *, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """A request with its whole body. `path` is as it was sent, percent-encoded."""

    method: str
    path: str
    body: bytes
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request. A body of pieces is sent as they come, and ends the connection."""

    status: int = 204
    body: bytes | AsyncGenerator[bytes, None] = b""
    content_type: str = JSON


Handler = Callable[[Request], Awaitable[Answer]]


class HttpServer:
    """The connections at a listening socket. `answer` translates its own errors."""

    def __init__(self, *, answer: Handler, tasks: asyncio.TaskGroup) -> None:
        self._answer = answer
        self._tasks = tasks
        self._connections: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    async def serve(self, listening: socket.socket) -> None:
        """Accept connections until `end`."""
        self._listener = await asyncio.start_unix_server(self._accept, sock=listening, limit=_LONGEST_HEAD)

    def end(self) -> None:
        """Accept no more connections, and end all there are."""
        if self._listener is not None:
            self._listener.close()
        for connection in self._connections:
            connection.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._tasks.create_task(self._converse(reader, writer), name="worker's connection")
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            return  # the gateway left, or is stopped
        except Exception:  # a fault of the program in one connection must not end the recording of all cameras
            log.exception("worker_connection_failed")
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Take a request and answer it; return whether another may follow."""
        try:
            request = await _received(reader)
        except InvalidRequest as error:
            refusal = json.dumps({"error": str(error)}).encode()
            await _send(writer, Answer(status=error.status, body=refusal))
            return False
        answer = await self._answer(request)
        await _send(writer, answer)
        return isinstance(answer.body, bytes) and not request.is_last


async def _received(reader: asyncio.StreamReader) -> Request:
    """Read a request.

    Raises:
        InvalidRequest: it cannot be read.
        IncompleteReadError: the connection ended.
        TimeoutError: nothing came for too long.
    """
    try:
        async with asyncio.timeout(_IDLE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise InvalidRequest("the head of the request is too long", status=431) from error
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    path, _, version = rest.partition(" ")
    if not version.startswith("HTTP/1."):
        raise InvalidRequest("this is not a request of HTTP/1.1")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "transfer-encoding" in headers:
        raise InvalidRequest("the body must have a Content-Length", status=411)
    told = headers.get("content-length", "0")
    if not (told.isascii() and told.isdecimal()):
        raise InvalidRequest("the Content-Length is not a number")
    if len(told) > len(str(_LARGEST_BODY)) or int(told) > _LARGEST_BODY:
        raise InvalidRequest("the body is too large", status=413)
    async with asyncio.timeout(_READ_SECONDS):
        body = await reader.readexactly(int(told))
    is_last = version != "HTTP/1.1" or headers.get("connection", "").lower() == "close"
    return Request(method=method, path=path, body=body, is_last=is_last)


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Send an answer. Raises ConnectionError, TimeoutError."""
    head = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: {answer.content_type}\r\n"
    if isinstance(answer.body, bytes):
        length = "" if answer.status == HTTPStatus.NO_CONTENT else f"Content-Length: {len(answer.body)}\r\n"
        await _write(writer, f"{head}{length}\r\n".encode() + answer.body)
        return
    async with aclosing(answer.body) as pieces:
        await _write(writer, f"{head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        async for piece in pieces:
            await _write(writer, b"%x\r\n%b\r\n" % (len(piece), piece))
        await _write(writer, b"0\r\n\r\n")


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    async with asyncio.timeout(_WRITE_SECONDS):
        await writer.drain()
