"""Connection limits: no address can take all connections, and slow clients are closed to make room for others.

aiohttp has no time-out for the head of a request, and its limits do not cover the TLS handshake.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from enum import IntEnum

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from gateway.runtime.clock import Clock
from gateway.site.addresses import Network, is_loopback
from gateway.web.auth.callers import SIGNED_IN
from gateway.web.http.forwarded import counted_as, is_trusted, parsed_address
from gateway.web.http.http_errors import PlainHandler

MOST_CONNECTIONS = 256
MOST_PER_ADDRESS = 128
RESERVED = 64
"""Connections reserved for local clients, trusted proxies, and addresses from which somebody has signed in."""
HEAD_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 75
_KEEP_ALIVE_GRACE = 2.0  # a client that reuses a connection at the last moment must find it open
SLOW_SECONDS = 1.0
_LONG_ANSWER_SECONDS = 30.0
LOOK_SECONDS = 1.0
_KNOWN_SECONDS = 3600.0
_MOST_KNOWN = 1024


class Stage(IntEnum):
    """Stage of a connection, by what it waits for. Lower stages are closed first when room is needed."""

    HEAD = 0
    """The TLS handshake, or the head of a request."""
    BODY = 1
    """The rest of a request's body."""
    IDLE = 2
    """The next request on a kept-alive connection."""
    ANSWER = 3
    """The answer. After 30 s it may be closed for others, unless somebody has signed in from that address."""


@dataclass(slots=True, eq=False)
class Connection:
    """One admitted connection.

    Attributes:
        transport: its transport; the TLS transport once the handshake is done.
        host: the address that it counts as; for IPv6 the /64 network.
        since: the monotonic time at which its stage began.
        proxy: whether it comes from a trusted proxy.
        local: whether it comes from a trusted proxy or from this machine.
        request: the request that is being answered; None between requests.
        idle: whether a request was answered and no byte of another one has come.
        answerable: whether its TLS handshake, if any, is done, so that it can be answered in HTTP.
    """

    transport: asyncio.Transport
    host: str
    since: float
    proxy: bool = False
    local: bool = False
    request: web.BaseRequest | None = None
    idle: bool = False
    answerable: bool = False

    @property
    def stage(self) -> Stage:
        """Its present stage."""
        if self.request is not None:
            return Stage.ANSWER if self.request.content.is_eof() else Stage.BODY
        return Stage.IDLE if self.idle else Stage.HEAD

    @property
    def unanswered(self) -> bool:
        """True while the client waits for an answer and no byte of it was sent."""
        begun = self.request is not None and bool(self.request.writer.output_size)
        return self.answerable and not self.idle and not begun

    def close(self, words: bytes) -> None:
        """Close the connection. A client that still waits for an answer gets `words`, a whole HTTP answer."""
        if words and self.unanswered and not self.transport.is_closing():
            self.transport.write(words)
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self.transport.abort()


class ConnectionLimits:
    """Limits on the number of connections, and the choice of which to close when there are too many."""

    def __init__(self, *, clock: Clock, proxies: tuple[Network, ...] = ()) -> None:
        self._clock = clock
        self._proxies = proxies
        self._connections: set[Connection] = set()
        self._by_handler: dict[asyncio.BaseProtocol, Connection] = {}
        self._known: OrderedDict[str, float] = OrderedDict()

    def admit(self, transport: asyncio.Transport) -> Connection | None:
        """Admit a new connection, closing a slower one if needed; None when no place can be made."""
        self._forget_closed()
        peer = transport.get_extra_info("peername")
        host = counted_as(str(peer[0])) if isinstance(peer, tuple) else ""
        proxy = self._is_proxy(host)
        connection = Connection(transport, host, self._clock.monotonic(), proxy=proxy, local=proxy or is_loopback(host))
        if not self._has_place(connection) and not self._make_place(connection):
            return None
        self._connections.add(connection)
        return connection

    def follow(self, connection: Connection, handler: PlainHandler, transport: asyncio.Transport) -> None:
        """Note that the handler answers the connection's requests from now on, over this transport."""
        connection.transport, connection.answerable = transport, True
        self._by_handler[handler] = connection

        def on_data() -> None:
            if connection.idle:
                connection.idle, connection.since = False, self._clock.monotonic()

        handler.on_data = on_data

    async def run(self) -> None:
        """Close connections that send no request in time (10 s, or 77 s when kept alive), until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._clock.monotonic()
            patience = {Stage.HEAD: HEAD_SECONDS, Stage.IDLE: KEEP_ALIVE_SECONDS + _KEEP_ALIVE_GRACE}
            for one in tuple(self._connections):
                if now - one.since > patience.get(one.stage, float("inf")):
                    one.close(TOO_SLOW)
            self._forget_closed()

    @property
    def asking(self) -> Middleware:
        """The middleware that notes which connections are being answered, and from which addresses people sign in."""

        @web.middleware
        async def asking(request: web.Request, handler: Handler) -> web.StreamResponse:
            connection = self._by_handler.get(request.protocol)
            if connection is None:
                return await handler(request)
            connection.request, connection.since, connection.idle = request, self._clock.monotonic(), False
            try:
                return await handler(request)
            finally:
                connection.request, connection.since, connection.idle = None, self._clock.monotonic(), True
                if request.get(SIGNED_IN):
                    self._know(connection.host)

        return asking

    def _has_place(self, newcomer: Connection) -> bool:
        if self._is_full_for(newcomer):
            return False
        if self._is_favoured(newcomer):
            return len(self._connections) < MOST_CONNECTIONS
        return sum(not self._is_favoured(one) for one in self._connections) < MOST_CONNECTIONS - RESERVED

    def _make_place(self, newcomer: Connection) -> bool:
        """Close the slowest connection that may be closed for the newcomer; return whether there was one.

        If the newcomer's address is at its limit, only that address's connections come into question.
        """
        now = self._clock.monotonic()
        full, favoured = self._is_full_for(newcomer), self._is_favoured(newcomer)
        slow = [
            one
            for one in self._connections
            if now - one.since >= self._patience_for_others(one)
            and (one.host == newcomer.host if full else favoured or not self._is_favoured(one))
        ]
        if not slow:
            return False
        slowest = min(slow, key=lambda one: (self._is_favoured(one), one.stage, one.since))
        slowest.close(NO_PLACE)
        self._connections.discard(slowest)
        return True

    def _patience_for_others(self, connection: Connection) -> float:
        """Return the seconds in its stage after which a connection may be closed for another."""
        if connection.stage is not Stage.ANSWER:
            return SLOW_SECONDS
        return float("inf") if self._is_favoured(connection) else _LONG_ANSWER_SECONDS

    def _is_full_for(self, newcomer: Connection) -> bool:
        """Return whether the newcomer's address already has the most connections allowed; never for a proxy."""
        return not newcomer.proxy and sum(one.host == newcomer.host for one in self._connections) >= MOST_PER_ADDRESS

    def _is_favoured(self, connection: Connection) -> bool:
        until = self._known.get(connection.host)
        return connection.local or (until is not None and until > self._clock.monotonic())

    def _is_proxy(self, host: str) -> bool:
        address = parsed_address(host)
        return address is not None and is_trusted(address, self._proxies)

    def _know(self, host: str) -> None:
        self._known[host] = self._clock.monotonic() + _KNOWN_SECONDS
        self._known.move_to_end(host)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def _forget_closed(self) -> None:
        self._connections = {one for one in self._connections if not one.transport.is_closing()}
        self._by_handler = {handler: one for handler, one in self._by_handler.items() if one in self._connections}


def plain_answer(status: str, error: str, *headers: str) -> bytes:
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


NO_PLACE = plain_answer("503 Service Unavailable", "too many connections; try again", "Retry-After: 2")
TOO_SLOW = plain_answer("408 Request Timeout", "the request did not come in time")
