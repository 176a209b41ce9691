"""Connections to central: opened on demand, each request sent once, each answer bounded in size.

The certificate authorities are the machine's, or those in the site's own file. A fault of the line is told in words for
the person who repairs it.
"""

from __future__ import annotations

import asyncio
import io
import json
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Literal

import aiohttp
import structlog

from gateway.central.client.answers import AnswerTooLarge, JsonObject
from gateway.domain.errors import CentralUnavailable
from gateway.runtime.connection_faults import BROKE, connection_words

BODY_LIMIT = 1024 * 1024
_CHUNK = 64 * 1024
_UNACKNOWLEDGED_SECONDS = 6.0  # if sent data gets no TCP acknowledgement for so long, the line is dead

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

OnHeaders = Callable[[Mapping[str, str]], None]
"""Called with an answer's headers as soon as they come."""

log = structlog.get_logger(__name__)

Mark = tuple[int, int, int]


class SentFile(io.FileIO):
    """A file that is being sent. `fault`: why it could not be read, which aiohttp reports as a fault of the line."""

    fault: OSError | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as any file does, and keep the fault. Raises OSError."""
        try:
            return super().read(-1 if size is None else size)
        except OSError as error:
            self.fault = error
            raise


@dataclass(frozen=True, slots=True)
class Upload:
    """A form with one file, read from the disk as it is sent. `size` in bytes bounds the time that it may take."""

    fields: Mapping[str, str]
    file: Path
    name: str
    media_type: str
    size: int

    def open(self) -> SentFile:
        """Open the file. Raises OSError."""
        return SentFile(self.file)

    def form(self, file: IO[bytes]) -> aiohttp.FormData:
        """Build the form with the opened file."""
        form = aiohttp.FormData(self.fields)
        form.add_field("file", file, filename=self.name, content_type=self.media_type)
        return form


class Trust:
    """Certificate authorities by which connections to central are checked.

    The file is read at first use, by `renew`, and when a connection was not trusted and the file has changed since. If
    the file cannot be used, the earlier authorities stay in force.
    """

    def __init__(self, ca_file: str | None) -> None:
        self._ca_file = ca_file
        self._tls: ssl.SSLContext | None = None
        self._mark: Mark | None = None
        self._read_lock = asyncio.Lock()

    async def tls(self) -> ssl.SSLContext:
        """Return the TLS context for a new connection. Raises CentralUnavailable when the file was never usable."""
        if self._tls is None:
            async with self._read_lock:
                return self._tls or await self._read()
        return self._tls

    async def renew(self) -> None:
        """Read the file again, for new connections; open ones stay."""
        async with self._read_lock:
            if self._tls is None:
                return
            try:
                await self._read()
            except CentralUnavailable as error:
                log.error("ca_file_not_used", error=str(error))  # noqa: TRY400 (the sentence says it all)

    async def doubted(self) -> None:
        """Read the file again if it has changed: central's certificate was not trusted."""
        if self._ca_file is not None and await asyncio.to_thread(_mark_of, self._ca_file) != self._mark:
            await self.renew()

    async def _read(self) -> ssl.SSLContext:
        mark, tls = await asyncio.to_thread(_read, self._ca_file)
        if self._tls is not None and mark != self._mark:
            log.info("ca_file_read", ca_file=self._ca_file)
        self._mark, self._tls = mark, tls
        return tls


def _read(ca_file: str | None) -> tuple[Mark | None, ssl.SSLContext]:
    # Marked before it is read: a write during the reading changes the mark, and the file is read again.
    mark = None if ca_file is None else _mark_of(ca_file)
    try:
        return mark, ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        words = "it is no certificate in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        raise CentralUnavailable(f"the CA file {ca_file} cannot be used: {words}", sent=False) from error


def _mark_of(ca_file: str) -> Mark | None:
    """Return a mark that changes whenever the file does; None without a file."""
    try:
        found = Path(ca_file).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class Connections:
    """Pool of connections to central, kept until `close`.

    A connection must be open within `connect_seconds`. `connector` makes aiohttp's connector from the TLS settings.
    `received` counts the bytes of answers' bodies as they came over the line, compressed or not.
    """

    def __init__(
        self,
        *,
        url: str,
        trust: Trust,
        connect_seconds: float,
        connector: Callable[[ssl.SSLContext | None], aiohttp.BaseConnector],
    ) -> None:
        self._url = url
        self._secured = url.startswith("https:")
        self._trust = trust
        self._connect = connect_seconds
        self._connector = connector
        self._opening = asyncio.Lock()
        self._http: aiohttp.ClientSession | None = None
        self._closed = False
        self.received = 0

    async def open(self) -> aiohttp.ClientSession:
        """Return the session for requests. Raises CentralUnavailable after `close`, or when TLS cannot be set up."""
        if self._http is not None:
            return self._http
        async with self._opening:
            if self._closed:
                raise CentralUnavailable("the client is closed")
            if self._http is None:
                tls = await self._trust.tls() if self._secured else None
                self._http = aiohttp.ClientSession(
                    connector=self._connector(tls),
                    timeout=aiohttp.ClientTimeout(
                        total=None, connect=self._connect, sock_connect=self._connect, ceil_threshold=60
                    ),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    headers={"User-Agent": f"edge-gateway/{version('edge-gateway')}"},
                    middlewares=(_sent_once,),
                )
            return self._http

    async def fetch(
        self,
        method: str,
        path: str,
        body: JsonObject | aiohttp.FormData | None,
        headers: dict[str, str],
        *,
        on_headers: OnHeaders | None = None,
    ) -> tuple[int, bytes]:
        """Send a request; return status and body of the answer. Raises as the function `fetch`."""
        http = await self.open()
        tls = await self._trust.tls() if self._secured else None
        try:
            return await fetch(
                http, method, self._url + path, body, headers, on_headers=on_headers, counted=self._count, tls=tls
            )
        except aiohttp.ClientSSLError:
            await self._trust.doubted()
            raise

    def _count(self, received: int) -> None:
        self.received += received

    def end(self) -> aiohttp.ClientSession | None:
        """Refuse requests from now on; return the session to be closed, None when none was opened."""
        self._closed = True
        http, self._http = self._http, None
        return http


def connector(tls: ssl.SSLContext | None, *, at_once: int) -> aiohttp.BaseConnector:
    """Make a connector with at most `at_once` connections."""
    return aiohttp.TCPConnector(ssl=tls or True, limit=at_once, socket_factory=impatient_socket)


async def fetch(
    http: aiohttp.ClientSession,
    method: str,
    url: str,
    body: JsonObject | aiohttp.FormData | None,
    headers: dict[str, str],
    *,
    on_headers: OnHeaders | None = None,
    counted: Callable[[int], None] = lambda _received: None,
    tls: ssl.SSLContext | None = None,
) -> tuple[int, bytes]:
    """Send a request; return status and body of the answer. Raises TooLarge when the body is larger than is ever read.

    `counted` gets the number of bytes that the body had on the line, even when it broke off.
    `tls`: the TLS settings for a new connection, None for those of the session.
    """
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    if isinstance(body, dict):
        headers = {**headers, "Content-Type": "application/json"}
    async with http.request(
        method, url, data=data, headers=headers, allow_redirects=False, ssl=tls or True
    ) as response:
        if on_headers is not None:
            on_headers(response.headers)
        content, raw = response.content, bytearray()
        try:
            async for chunk in content.iter_chunked(_CHUNK):
                raw += chunk
                if len(raw) > BODY_LIMIT:
                    response.close()
                    raise AnswerTooLarge(f"the answer is larger than {BODY_LIMIT // 1024} KiB")
        finally:
            if raw:
                counted(content.total_raw_bytes)
        return response.status, bytes(raw)


def impatient_socket(addr_info: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    """Make a socket that drops its connection when sent data is not acknowledged for some seconds.

    When the line fails, an idle connection shows no sign of it. A request on it would wait for the whole time-out.
    """
    family, kind, protocol, _, _ = addr_info
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(_UNACKNOWLEDGED_SECONDS * 1000))
    return made


async def _sent_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending a write again after a broken connection: PUT creates records in this interface."""
    try:
        return await handler(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if request.method == "GET":
            raise
        raise aiohttp.ClientConnectionError(str(error) or type(error).__name__) from error


def line_words(error: BaseException, host: str) -> str:
    """Describe a fault in one sentence for people. `host`: central's name or address."""
    words = BROKE
    match error:
        case TimeoutError():
            words = f"{host} does not answer in time"
        case aiohttp.ClientConnectorCertificateError():
            words = _certificate(error.certificate_error, host)
        case aiohttp.ClientConnectorError():
            words = _system(error.os_error, host)
        case aiohttp.ClientPayloadError():
            words = "the answer was cut off in the middle"
        case aiohttp.ClientResponseError():
            words = f"what answers at {host} does not speak HTTP as it should"
        case OSError() if error.errno:
            words = _system(error, host)
        case aiohttp.ClientError() if error.__cause__ is not None:
            words = line_words(error.__cause__, host)
    return words


def _system(error: OSError, host: str) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate(error, host)
    return connection_words(error, host)


def _certificate(cause: BaseException, host: str) -> str:
    said = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else ""
    return f"{host} does not prove that it is central: {said or 'its certificate does not fit its name'}"
