"""HTTP behind a listener's places: each connection is admitted or refused, does its TLS handshake, and gets a handler.

aiohttp has no deadline for the head of a request, and its limits do not cover the TLS handshake.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from aiohttp.web_protocol import RequestHandler

from drivers.listening.places import Ending, Place, Places, Stage

log = structlog.get_logger(__name__)

HANDSHAKE_SECONDS = 10.0
PROVED = web.RequestKey("proved", bool)
"""True on a request whose caller proved who they are."""
_MOST_REFUSED = 32
_REFUSAL_SECONDS = 2.0
_SHUTDOWN_SECONDS = 2.0
_READ_SIZE = 65_536


class PlainHandler(RequestHandler):
    """aiohttp's connection handler; answers malformed requests with the error envelope and `headers`, and closes.

    Anybody on the network can send such requests without limit, so they are logged at debug level only, without a byte
    of theirs.

    Attributes:
        on_data: a callback for each arrival of data, before it is parsed.
        on_answered: a callback for each answer that was written.
    """

    __slots__ = ("_refusal_headers", "on_answered", "on_data")

    def __init__(self, manager: web.Server, *, headers: Mapping[str, str], **options: Any) -> None:
        """`headers`: added to every error answer; `options`: those of `RequestHandler`."""
        super().__init__(manager, **options)
        self._refusal_headers = headers
        self.on_data: Callable[[], None] | None = None
        self.on_answered: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection. See `RequestHandler.connection_made`.

        asyncio makes a buffer of `max_size` for each read. Its usual size is one that the C library takes from the
        kernel and gives back each time, which costs three system calls and a page fault for a request.
        """
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_SIZE
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Report the data, and pass it on. See `RequestHandler.data_received`."""
        if self.on_data is not None:
            self.on_data()
        super().data_received(data)

    async def shutdown(self, timeout: float | None = 15.0) -> None:
        """Let a request end within the time-out, and close. See `RequestHandler.shutdown`.

        Where no request is handled, the connection is closed at once: aiohttp would wait for the rest of a body that
        was refused.
        """
        if self._task_handler is not None and not self._request_in_progress:
            self._task_handler.cancel()
        await super().shutdown(timeout)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the answer, and report that it is sent. See `RequestHandler.finish_response`."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            if self.on_answered is not None:
                self.on_answered()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that could not be handled, in the envelope. See `RequestHandler.handle_error`."""
        if status >= 500:
            answer = super().handle_error(request, status, exc, message)
        else:
            log.debug("request_not_understood", address=request.remote, status=status)
            error = json.dumps({"success": False, "error": "the request could not be read as HTTP"})
            answer = web.Response(status=status, text=error, content_type="application/json")
            answer.force_close()
        answer.headers.update(self._refusal_headers)
        return answer


class Certificate(Protocol):
    """The certificate of a listener, which may be replaced while it listens."""

    context: ssl.SSLContext

    async def run(self) -> None:
        """Watch for a replacement until cancelled."""
        ...


class HttpPlaces:
    """The places of an HTTP listener, and the requests that are being answered at them."""

    def __init__(self, places: Places, *, monotonic: Callable[[], float]) -> None:
        self.places = places
        self._monotonic = monotonic
        self._asked: dict[asyncio.BaseProtocol, _AskedPlace] = {}

    def follow(self, place: Place, handler: PlainHandler, transport: asyncio.Transport) -> None:
        """Note that the handler answers the place's requests from now on, over this transport."""
        self._asked = {known: one for known, one in self._asked.items() if not one.place.transport.is_closing()}
        place.transport = transport
        self._asked[handler] = _AskedPlace(place, handler, self._monotonic)

    @property
    def asking(self) -> Middleware:
        """The middleware that notes which connections are being answered, and from which addresses people prove it."""

        @web.middleware
        async def asking(request: web.Request, handler: Handler) -> web.StreamResponse:
            asked = self._asked.get(request.protocol)
            if asked is None:
                return await handler(request)
            asked.begin(request)
            try:
                return await handler(request)
            finally:
                if request.get(PROVED):
                    self.places.know(asked.place.host)

        return asking


class _AskedPlace:
    """A place with its handler: its stage follows from the request that is being answered."""

    def __init__(self, place: Place, handler: PlainHandler, monotonic: Callable[[], float]) -> None:
        self.place = place
        self._monotonic = monotonic
        self._request: web.BaseRequest | None = None
        self._is_idle = False
        place.stage_now, place.last_words = self._stage, self._last_words
        handler.on_data, handler.on_answered = self._woken, self._answered

    def begin(self, request: web.BaseRequest) -> None:
        """Note that the request is being answered."""
        self._set(request, is_idle=False)

    def _answered(self) -> None:
        self._set(None, is_idle=True)

    def _woken(self) -> None:
        if self._is_idle:
            self._set(None, is_idle=False)

    def _set(self, request: web.BaseRequest | None, *, is_idle: bool) -> None:
        self._request, self._is_idle, self.place.since = request, is_idle, self._monotonic()

    def _stage(self) -> Stage:
        if self._request is not None:
            return Stage.ANSWER if self._request.content.is_eof() else Stage.BODY
        if not self._is_idle:
            return Stage.HEAD
        return Stage.ANSWER if self.place.transport.get_write_buffer_size() else Stage.IDLE

    def _last_words(self, ending: Ending) -> bytes:
        """Return a whole answer for a client that waits for one and has no byte of it."""
        begun = self._request is not None and bool(self._request.writer.output_size)
        return b"" if self._is_idle or begun else _WORDS[ending]


class HttpListener:
    """A listening socket that gives each admitted connection a handler, and refuses the others with 503."""

    def __init__(
        self, *, places: HttpPlaces, answering: Callable[[], PlainHandler], certificate: Certificate | None = None
    ) -> None:
        self._places = places
        self._answering = answering
        self._certificate = certificate
        self._tasks = asyncio.TaskGroup()
        self._refused: OrderedDict[asyncio.BaseTransport, None] = OrderedDict()

    async def run(self, *, host: str, port: int, started: Callable[[int], None]) -> None:
        """Listen until cancelled. Raises OSError when the address cannot be bound.

        `started` is called with the port. The places and the certificate are watched meanwhile.
        """
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(lambda: _NewConnection(self), host, port, start_serving=False)
        try:
            async with self._tasks:
                await listening.start_serving()
                if self._certificate is not None:
                    self._tasks.create_task(self._certificate.run(), name="replaced-certificate")
                started(listening.sockets[0].getsockname()[1])
                await self._places.places.run()
        finally:
            listening.close()

    def entered(self, new: _NewConnection, transport: asyncio.Transport) -> None:
        """Admit or refuse a new connection, and start its TLS handshake or its handler.

        At most 32 refused connections stay open to read their refusal; beyond that the oldest is closed.
        """
        place = self._places.places.admit(transport)
        if place is None:
            self._refused[transport] = None
            if len(self._refused) > _MOST_REFUSED:
                self._refused.popitem(last=False)[0].close()
        if self._certificate is None:
            self._answer(new, transport, place)
        else:
            transport.pause_reading()  # the handshake reads
            handshake = self._handshake(new, transport, place, self._certificate.context)
            self._tasks.create_task(handshake, name="tls-handshake")

    def left(self, transport: asyncio.BaseTransport | None) -> None:
        """Forget a refused connection that has ended."""
        if transport is not None:
            self._refused.pop(transport, None)

    async def _handshake(
        self, new: _NewConnection, transport: asyncio.Transport, place: Place | None, context: ssl.SSLContext
    ) -> None:
        with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
            encrypted = await asyncio.get_running_loop().start_tls(
                transport,
                new,
                context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
            )
            if isinstance(encrypted, asyncio.Transport) and not encrypted.is_closing():
                if place is None:
                    self._refused.pop(transport, None)
                    self._refused[encrypted] = None
                self._answer(new, encrypted, place)
                return
        self.left(transport)
        transport.abort()

    def _answer(self, new: _NewConnection, transport: asyncio.Transport, place: Place | None) -> None:
        if place is None:
            new.refuse(transport)
            return
        handler = self._answering()
        self._places.follow(place, handler, transport)
        transport.set_protocol(handler)
        handler.connection_made(transport)
        if new.early:
            handler.data_received(bytes(new.early))


class _NewConnection(asyncio.Protocol):
    """A connection without a handler: it is new, in its TLS handshake, or refused."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._refusing: asyncio.Transport | None = None
        self._answered = False
        self.early = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask the listener to admit the connection."""
        if isinstance(transport, asyncio.Transport):
            self._listener.entered(self, transport)

    def data_received(self, data: bytes) -> None:
        """Keep data that arrives before the handler is set; answer a refused client once it has sent something."""
        if self._refusing is None:
            self.early += data
        else:
            self._send_refusal(self._refusing)

    def connection_lost(self, _exc: BaseException | None) -> None:
        """Free the place among the refused."""
        self._listener.left(self._refusing)

    def refuse(self, transport: asyncio.Transport) -> None:
        """Answer the first request with 503; close after 2 s, so that the client can read the answer."""
        self._refusing = transport
        asyncio.get_running_loop().call_later(_REFUSAL_SECONDS, transport.close)
        if self.early:
            self._send_refusal(transport)

    def _send_refusal(self, transport: asyncio.Transport) -> None:
        if not self._answered and not transport.is_closing():
            self._answered = True
            transport.write(_WORDS[Ending.FOR_ROOM])
            if transport.can_write_eof():
                transport.write_eof()


def _whole_answer(status: str, error: str, *headers: str) -> bytes:
    """Return the bytes of a whole HTTP answer, for a connection without a request handler."""
    body = f'{{"success": false, "error": "{error}"}}'
    lines = (
        f"HTTP/1.1 {status}",
        "Server: edge-gateway",
        "Content-Type: application/json; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    )
    return ("\r\n".join(lines) + f"\r\n\r\n{body}").encode()


_WORDS = {
    Ending.FOR_ROOM: _whole_answer("503 Service Unavailable", "too many connections; try again", "Retry-After: 2"),
    Ending.LATE: _whole_answer("408 Request Timeout", "the request did not come in time"),
}
