"""Answers that report when the client's TCP has acknowledged every byte."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import Callable

from aiohttp import web

from gateway.web.http.http_errors import wait_for_activity

_WITHIN_SECONDS = 1.0
FIRST_LOOK_SECONDS = 0.001


async def followed(
    request: web.Request, answer: web.StreamResponse, on_acknowledged: Callable[[], None]
) -> web.StreamResponse:
    """Return the answer; call `on_acknowledged` only if the other end acknowledges all of it within a second.

    Bytes in this machine's buffers do not count. Behind a reverse proxy, the proxy acknowledges.
    """
    if isinstance(answer, web.Response):
        return _FollowedResponse(answer, on_acknowledged)
    if await _all_acknowledged(request):  # a streamed answer, which was sent already
        on_acknowledged()
    return answer


class _FollowedResponse(web.Response):
    """An answer that is still to be sent."""

    def __init__(self, like: web.Response, on_acknowledged: Callable[[], None]) -> None:
        super().__init__(body=like.body, status=like.status, headers=like.headers)
        self._on_acknowledged = on_acknowledged

    async def write_eof(self, data: bytes = b"") -> None:
        """See `web.Response.write_eof`."""
        request = self._req
        await super().write_eof(data)
        if request is not None and await _all_acknowledged(request):
            self._on_acknowledged()


async def _all_acknowledged(request: web.BaseRequest) -> bool:
    """Wait until the other end has acknowledged every byte, at most a second; return whether it has.

    The kernel is polled with growing pauses, and as soon as data arrives, since incoming packets acknowledge.
    """
    loop = asyncio.get_running_loop()
    transport = request.transport
    until, pause = loop.time() + _WITHIN_SECONDS, FIRST_LOOK_SECONDS
    while transport is not None and not transport.is_closing():
        if transport.get_write_buffer_size() == 0 and _unconfirmed(transport) == 0:
            return True
        if loop.time() >= until:
            return False
        if not await wait_for_activity(request.protocol, within=pause):
            pause *= 2
    return False


def _unconfirmed(transport: asyncio.Transport) -> int:
    """Return the bytes in the kernel's send queue that the other end has not acknowledged (tcp(7)); -1 if closed."""
    try:
        number = transport.get_extra_info("socket").fileno()
        (left,) = struct.unpack("i", fcntl.ioctl(number, termios.TIOCOUTQ, bytes(4)))
    except (OSError, ValueError):  # it was closed meanwhile
        return -1
    return int(left)
