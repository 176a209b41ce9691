"""Who may hold a connection: no address takes all of them, and nobody holds one without asking something.

aiohttp waits for a request's head without limit; an open line that says nothing would keep a place for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from aiohttp.web_protocol import RequestHandler

from gateway.clock import Clock

MOST_CONNECTIONS = 256
MOST_PER_ADDRESS = 128
HEAD_SECONDS = 10.0
_LOOK_SECONDS = 1.0

Answering = Callable[[], RequestHandler]


@dataclass(slots=True)
class _Guest:
    """A connection: whose it is, since when nothing is asked on it, and how many requests are being answered."""

    address: str
    idle_since: float
    asking: int = 0


class Usher:
    """Lets connections in, and shows out those that ask nothing within 10 s."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._guests: dict[asyncio.BaseProtocol, _Guest] = {}

    @property
    def guests(self) -> int:
        """Connections held now."""
        self._forget_gone()
        return len(self._guests)

    def door(self, answering: Answering) -> Callable[[], asyncio.Protocol]:
        """The protocol factory of the listening socket."""
        return lambda: _Door(usher=self, answering=answering)

    async def run(self) -> None:
        """Show out idle connections until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = self._clock.monotonic()
            for handler, guest in tuple(self._guests.items()):
                if not guest.asking and now - guest.idle_since > HEAD_SECONDS and isinstance(handler, RequestHandler):
                    handler.force_close()
                    if handler.transport is not None:
                        handler.transport.abort()
            self._forget_gone()

    @property
    def asking(self) -> Middleware:
        """The middleware that notes which connections are being answered."""

        @web.middleware
        async def asking(request: web.Request, handler: Handler) -> web.StreamResponse:
            guest = self._guests.get(request.protocol)
            if guest is None:
                return await handler(request)
            guest.asking += 1
            try:
                return await handler(request)
            finally:
                guest.asking -= 1
                guest.idle_since = self._clock.monotonic()

        return asking

    def admits(self, address: str) -> bool:
        """Whether there is a place for one more connection from there."""
        self._forget_gone()
        held = sum(guest.address == address for guest in self._guests.values())
        return len(self._guests) < MOST_CONNECTIONS and held < MOST_PER_ADDRESS

    def seat(self, handler: RequestHandler, address: str) -> None:
        """A connection was let in."""
        self._guests[handler] = _Guest(address, self._clock.monotonic())

    def _forget_gone(self) -> None:
        for handler in [one for one in self._guests if isinstance(one, RequestHandler) and one.transport is None]:
            del self._guests[handler]


class _Door(asyncio.Protocol):
    """A connection before it is let in: the address is known only once it is made."""

    def __init__(self, *, usher: Usher, answering: Answering) -> None:
        self._usher = usher
        self._answering = answering

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        if not self._usher.admits(address) or not isinstance(transport, asyncio.Transport):
            transport.close()
            return
        handler = self._answering()
        self._usher.seat(handler, address)
        transport.set_protocol(handler)
        handler.connection_made(transport)
