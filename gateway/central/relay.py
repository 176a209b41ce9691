"""Relay of callers' requests to central and of its answers back, unchanged; bounded in number, size and time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from gateway.central.client.client import CentralClient
from gateway.central.client.connections import impatient_socket, line_words
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.relaying import AnswerOfCentral, Headers, NotRelayed, RelayedRequest, RelayRefusal

_CHUNK = 64 * 1024
LOOK_AGAIN_SECONDS = 2.0
_OF_THE_LINE = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


@dataclass(frozen=True, slots=True)
class RelayLimits:
    """Limits of a relayed request.

    Attributes:
        at_once: number of requests under way.
        at_once_of_one: number of requests under way for one caller.
        body_bytes: size of a request's body, and of an answer's.
        connect_seconds: time until central has accepted the connection, with TLS.
        idle_seconds: time between two pieces of a body, and from the request's end to the answer's beginning.
        whole_seconds: time from the beginning of the request to the end of the answer.
    """

    at_once: int = 16
    at_once_of_one: int = 8
    body_bytes: int = 256 * 1024 * 1024
    connect_seconds: float = 4.0
    idle_seconds: float = 30.0
    whole_seconds: float = 600.0


def end_to_end(headers: CIMultiDictProxy[str] | CIMultiDict[str]) -> Headers:
    """Return the headers without hop-by-hop ones, which `Connection` may name (RFC 9110, 7.6.1)."""
    named = {name.strip().lower() for value in headers.getall("Connection", ()) for name in value.split(",")}
    return tuple((name, value) for name, value in headers.items() if name.lower() not in _OF_THE_LINE | named)


class CentralRelay:
    """Relay of requests. Each has a connection of its own: a reused one may be dead, and nothing is sent twice.

    While the client knows that central is away, requests fail at once; `run` checks whether it is back.
    """

    def __init__(
        self,
        *,
        client: CentralClient,
        url: str,
        limits: RelayLimits | None = None,
    ) -> None:
        self._client = client
        self._url = url.rstrip("/")
        self._limits = limits or RelayLimits()
        self._http: aiohttp.ClientSession | None = None
        self._opening = asyncio.Lock()
        self._owners: Counter[str] = Counter()

    @property
    def largest(self) -> int:
        """Largest body in bytes."""
        return self._limits.body_bytes

    @property
    def on_their_way(self) -> int:
        """Number of requests under way."""
        return self._owners.total()

    def away(self) -> bool:
        """Return whether central is known not to answer. Never waits; makes `run` check again soon."""
        return self._client.away()

    async def run(self) -> None:
        """Check whether central is back each time a caller has asked for it in vain, until cancelled."""
        try:
            while True:
                await self._client.look_wanted.wait()
                try:
                    await self._client.look()
                except (CentralUnavailable, CentralRefused):  # the client's state and log have it
                    await asyncio.sleep(LOOK_AGAIN_SECONDS)
                self._client.look_wanted.clear()
        finally:
            if self._http is not None:
                await self._http.close()
                self._http = None

    @asynccontextmanager
    async def answer(self, asked: RelayedRequest) -> AsyncIterator[AnswerOfCentral]:
        """Forward a request; yield central's answer. Read its body inside the context. Raises NotRelayed."""
        if self.away():
            raise _away()
        with self._place(asked.owner):
            sending = _Sending(asked, self._limits)
            opened = await self._begun(asked, sending)
            try:
                yield AnswerOfCentral(
                    opened.status, end_to_end(opened.headers), self._body(opened), opened.content_length
                )
            finally:
                opened.close()

    async def _begun(self, asked: RelayedRequest, sending: _Sending) -> aiohttp.ClientResponse:
        """Send the request, and wait for the headers of the answer. Raises NotRelayed."""
        headers = CIMultiDict(asked.headers)
        headers.setdefault("Accept-Encoding", "identity")
        headers["Via"] = "1.1 edge-gateway"
        if asked.token:
            headers["SessionID"] = asked.token
        if asked.length is not None:
            headers["Content-Length"] = str(asked.length)
        target = f"{self._url}{asked.path}{'?' if asked.query else ''}{asked.query}"
        try:
            http = await self._open()
            tls = await self._client.trust.tls()
            async with sending.moving:
                return await http.request(
                    asked.method,
                    URL(target, encoded=True),
                    headers=headers,
                    data=None if asked.body is None else sending.pieces(asked.body),
                    allow_redirects=False,
                    ssl=tls,
                )
        except _NotAgain as error:
            if isinstance(error.why, aiohttp.ClientSSLError):
                await self._client.trust.doubted()
            raise self._translated(error.why, sending) from error
        except (aiohttp.ClientError, OSError, CentralUnavailable) as error:
            raise self._translated(error, sending) from error

    def _translated(self, error: Exception, sending: _Sending) -> NotRelayed:
        if sending.fault is not None:
            return sending.fault
        match error:
            case CentralUnavailable():
                return self._missed(error.why)
            case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
                return self._missed(line_words(error, URL(self._url).host or self._url))
            case TimeoutError():
                return _silent()
            case aiohttp.ClientResponseError():
                return NotRelayed(RelayRefusal.NOT_CARRIED, "central's answer could not be read as HTTP")
        return _lost()

    def _missed(self, why: str) -> NotRelayed:
        self._client.missed(why)
        self._client.look_wanted.set()
        return _away()

    async def _body(self, opened: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        read = 0
        try:
            async for chunk in opened.content.iter_chunked(_CHUNK):
                read += len(chunk)
                if read > self._limits.body_bytes:
                    raise NotRelayed(RelayRefusal.NOT_CARRIED, "central's answer is larger than is relayed")
                yield chunk
        except TimeoutError as error:
            raise _silent() from error
        except (aiohttp.ClientError, OSError) as error:
            raise _lost() from error

    @contextmanager
    def _place(self, owner: str) -> Iterator[None]:
        if self.on_their_way >= self._limits.at_once or self._owners[owner] >= self._limits.at_once_of_one:
            raise NotRelayed(RelayRefusal.BUSY, "too many requests are on their way to central; try again")
        self._owners[owner] += 1
        try:
            yield
        finally:
            self._owners[owner] -= 1
            self._owners += Counter()  # drops owners with none

    async def _open(self) -> aiohttp.ClientSession:
        async with self._opening:
            if self._http is None:
                limits = self._limits
                self._http = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(
                        limit=limits.at_once, force_close=True, socket_factory=impatient_socket
                    ),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    auto_decompress=False,
                    middlewares=(_once,),
                    skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                    timeout=aiohttp.ClientTimeout(
                        total=limits.whole_seconds,
                        connect=limits.connect_seconds,
                        sock_connect=limits.connect_seconds,
                        sock_read=limits.idle_seconds,
                    ),
                )
            return self._http


class _NotAgain(aiohttp.ClientError):
    """Wrapper for errors after which aiohttp would send GET, PUT and DELETE again: in this interface PUT creates."""

    def __init__(self, why: aiohttp.ClientError) -> None:
        super().__init__(str(why))
        self.why = why


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _NotAgain(error) from error


class _Sending:
    """Body of a request under way: its size limit, its fault, and the time-out of each piece."""

    def __init__(self, asked: RelayedRequest, limits: RelayLimits) -> None:
        self._limits = limits
        self._sent = 0
        self.moving = _Moving(limits.idle_seconds)
        self.fault: NotRelayed | None = None
        if asked.length is not None and asked.length > limits.body_bytes:
            raise _too_large()

    async def pieces(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the body. Raises NotRelayed, and keeps it as `fault`."""
        try:
            async for chunk in body:
                self._sent += len(chunk)
                if self._sent > self._limits.body_bytes:
                    raise _too_large()
                self.moving.begin()
                yield chunk
                self.moving.end()
        except NotRelayed as error:
            self.fault = error
            raise


class _Moving:
    """Time-out for each piece: TimeoutError when one that was begun does not end in time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)
        self._watched = False

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._watched = True

    async def __aexit__(self, *exc_info: object) -> None:
        self._watched = False
        await self._timeout.__aexit__(*exc_info)  # type: ignore[arg-type]  # handed on as it came

    def begin(self) -> None:
        """Start the time-out of a piece."""
        if self._watched:
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._seconds)

    def end(self) -> None:
        """Stop the time-out of a piece."""
        if self._watched:
            self._timeout.reschedule(None)


def _away() -> NotRelayed:
    return NotRelayed(RelayRefusal.AWAY, "central cannot be reached now")


def _too_large() -> NotRelayed:
    return NotRelayed(RelayRefusal.TOO_LARGE, "the body is larger than is relayed")


def _silent() -> NotRelayed:
    return NotRelayed(RelayRefusal.SILENT, "central did not answer in time; it may have carried this out")


def _lost() -> NotRelayed:
    return NotRelayed(RelayRefusal.LOST, "central was lost before its answer was whole; it may have carried this out")
