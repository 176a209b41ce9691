"""What comes on a connection: what is no HTTP, or too much of it, gets one plain answer and no page of log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

log = structlog.get_logger(__name__)


class PlainHandler(RequestHandler):
    """aiohttp's connection, but what it cannot read is answered in the envelope, with these headers, and closed.

    Anybody on the network can send such a request as often as they like, so it is logged at debug alone.
    """

    __slots__ = ("_refusal_headers", "heard", "stirred")

    def __init__(self, manager: web.Server, *, headers: Mapping[str, str], **options: Any) -> None:
        """`options` are `RequestHandler`'s."""
        super().__init__(manager, **options)
        self._refusal_headers = headers
        self.stirred: asyncio.Future[bool] | None = None
        self.heard: Callable[[], None] | None = None

    def data_received(self, data: bytes) -> None:
        """See `RequestHandler.data_received`."""
        if self.heard is not None:
            self.heard()
        super().data_received(data)
        self._stir()

    def connection_lost(self, exc: BaseException | None) -> None:
        """See `RequestHandler.connection_lost`."""
        super().connection_lost(exc)
        self._stir()

    def _stir(self) -> None:
        if self.stirred is not None and not self.stirred.done():
            self.stirred.set_result(True)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """See `RequestHandler.handle_error`."""
        if status >= 500:
            answer = super().handle_error(request, status, exc, message)
        else:
            log.debug("request_not_understood", address=request.remote, status=status)
            error = json.dumps({"success": False, "error": "the request could not be read as HTTP"})
            answer = web.Response(status=status, text=error, content_type="application/json")
            answer.force_close()
        answer.headers.update(self._refusal_headers)
        return answer


async def stirring(protocol: asyncio.BaseProtocol, *, within: float) -> bool:
    """Wait until something comes on a connection, or it ends, at most so many seconds; whether it did."""
    if not isinstance(protocol, PlainHandler):
        await asyncio.sleep(within)
        return False
    loop = asyncio.get_running_loop()
    stirred: asyncio.Future[bool] = loop.create_future()
    protocol.stirred = stirred
    timer = loop.call_later(within, _give_up, stirred)
    try:
        return await stirred
    finally:
        timer.cancel()
        protocol.stirred = None


def _give_up(stirred: asyncio.Future[bool]) -> None:
    if not stirred.done():
        stirred.set_result(False)
