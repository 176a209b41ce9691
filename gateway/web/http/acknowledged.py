"""Answers that report when the client's TCP has acknowledged every byte."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import Callable, Mapping

from aiohttp import web

from drivers.listening.http import PlainHandler

_WITHIN_SECONDS = 1.0
FIRST_LOOK_SECONDS = 0.001


class FollowedResponse(web.Response):
    """An answer that calls `on_acknowledged` only if the other end acknowledges all of it within a second.

    Bytes in this machine's buffers do not count. Behind a reverse proxy, the proxy acknowledges.
    """

    def __init__(self, *, body: bytes, headers: Mapping[str, str], on_acknowledged: Callable[[], None]) -> None:
        super().__init__(body=body, headers=headers)
        self._on_acknowledged = on_acknowledged

    async def write_eof(self, data: bytes = b"") -> None:
        """See `web.Response.write_eof`."""
        request, is_kept_open = self._req, bool(self.keep_alive)
        await super().write_eof(data)
        if request is not None:
            await follow(request, self._on_acknowledged, is_kept_open=is_kept_open)


async def follow(request: web.BaseRequest, on_acknowledged: Callable[[], None], *, is_kept_open: bool) -> None:
    """Follow an answer that was sent; return at once if the connection is kept open for further requests."""
    transport = request.transport
    if transport is None:
        return
    following = _Following(transport, request.protocol, on_acknowledged)
    if not is_kept_open:
        await following.ended.wait()


class _Following:
    """The wait for an acknowledgement, beside the connection's next request.

    The kernel is asked with growing pauses, and as soon as data arrives, since incoming packets acknowledge.
    """

    def __init__(
        self, transport: asyncio.Transport, protocol: asyncio.BaseProtocol, on_acknowledged: Callable[[], None]
    ) -> None:
        self.ended = asyncio.Event()
        self._transport = transport
        self._protocol = protocol if isinstance(protocol, PlainHandler) else None
        self._on_acknowledged = on_acknowledged
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + _WITHIN_SECONDS
        self._pause = FIRST_LOOK_SECONDS
        if self._protocol is not None:
            self._protocol.on_activity = self._look_early
        self._timer = self._loop.call_later(self._pause, self._look)

    def _look_early(self) -> None:
        """Look because data arrived or the connection ended; the pauses do not grow by it."""
        self._timer.cancel()
        self._pause /= 2
        self._look()

    def _look(self) -> None:
        transport = self._transport
        if transport.is_closing():
            self._end()
        elif transport.get_write_buffer_size() == 0 and _unconfirmed(transport) == 0:
            self._end()
            self._on_acknowledged()
        elif self._loop.time() >= self._until:
            self._end()
        else:
            self._pause *= 2
            self._timer = self._loop.call_later(self._pause, self._look)

    def _end(self) -> None:
        self.ended.set()
        if self._protocol is not None and self._protocol.on_activity == self._look_early:
            self._protocol.on_activity = None


def _unconfirmed(transport: asyncio.Transport) -> int:
    """Return the bytes in the kernel's send queue that the other end has not acknowledged (tcp(7)); -1 if closed."""
    try:
        number = transport.get_extra_info("socket").fileno()
        (left,) = struct.unpack("i", fcntl.ioctl(number, termios.TIOCOUTQ, bytes(4)))
    except (OSError, ValueError):  # it was closed meanwhile
        return -1
    return int(left)
