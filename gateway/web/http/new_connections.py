"""New connections: each is admitted or refused, then does the TLS handshake if TLS is served, then gets its handler."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import OrderedDict
from collections.abc import Callable

from gateway.web.http.connection_limits import NO_PLACE, Connection, ConnectionLimits
from gateway.web.http.http_errors import PlainHandler
from gateway.web.http.served_certificate import ServedCertificate

Answering = Callable[[], PlainHandler]

HANDSHAKE_SECONDS = 10.0
_MOST_REFUSED = 32
_REFUSAL_SECONDS = 2.0
_SHUTDOWN_SECONDS = 2.0


class Listener:
    """A listening socket that gives each admitted connection a handler, and refuses the others with 503."""

    def __init__(
        self,
        *,
        limits: ConnectionLimits,
        answering: Answering,
        certificate: ServedCertificate | None,
    ) -> None:
        self._limits = limits
        self._answering = answering
        self._certificate = certificate
        self._tasks = asyncio.TaskGroup()
        self._refused: OrderedDict[asyncio.BaseTransport, None] = OrderedDict()

    async def run(self, *, host: str, port: int, started: Callable[[int], None]) -> None:
        """Listen until cancelled. Raises OSError when the address cannot be bound.

        `started` is called with the port. `connection_limits` and the certificate are watched meanwhile.
        """
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(lambda: _NewConnection(self), host, port, start_serving=False)
        try:
            async with self._tasks:
                await listening.start_serving()
                if self._certificate is not None:
                    self._tasks.create_task(self._certificate.run(), name="replaced-certificate")
                started(listening.sockets[0].getsockname()[1])
                await self._limits.run()
        finally:
            listening.close()

    def entered(self, new: _NewConnection, transport: asyncio.Transport) -> None:
        """Admit or refuse a new connection, and start its TLS handshake or its handler.

        At most 32 refused connections stay open to read their refusal; beyond that the oldest is closed.
        """
        connection = self._limits.admit(transport)
        if connection is None:
            self._refused[transport] = None
            if len(self._refused) > _MOST_REFUSED:
                self._refused.popitem(last=False)[0].close()
        if self._certificate is None:
            self._answer(new, transport, connection)
        else:
            transport.pause_reading()  # the handshake reads
            handshake = self._handshake(new, transport, connection, self._certificate.context)
            self._tasks.create_task(handshake, name="tls-handshake")

    def left(self, transport: asyncio.BaseTransport | None) -> None:
        """Forget a refused connection that has ended."""
        if transport is not None:
            self._refused.pop(transport, None)

    async def _handshake(
        self, new: _NewConnection, transport: asyncio.Transport, connection: Connection | None, context: ssl.SSLContext
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
                if connection is None:
                    self._refused.pop(transport, None)
                    self._refused[encrypted] = None
                self._answer(new, encrypted, connection)
                return
        self.left(transport)
        transport.abort()

    def _answer(self, new: _NewConnection, transport: asyncio.Transport, connection: Connection | None) -> None:
        if connection is None:
            new.refuse(transport)
            return
        handler = self._answering()
        self._limits.follow(connection, handler, transport)
        transport.set_protocol(handler)
        handler.connection_made(transport)
        if new.early:
            handler.data_received(bytes(new.early))


class _NewConnection(asyncio.Protocol):
    """A connection without a handler: it is new, in its TLS handshake, or refused."""

    def __init__(self, listener: Listener) -> None:
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
            transport.write(NO_PLACE)
            if transport.can_write_eof():
                transport.write_eof()
