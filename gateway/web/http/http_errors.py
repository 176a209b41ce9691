"""Answers to malformed HTTP: a JSON error, a closed connection, and one log line at debug level."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

log = structlog.get_logger(__name__)

_READ_SIZE = 65_536


class PlainHandler(RequestHandler):
    """aiohttp's connection handler; answers malformed requests with the error envelope and `headers`, and closes.

    Anybody on the network can send such requests without limit, so they are logged at debug level only.

    Attributes:
        on_data: a callback for each arrival of data, before it is parsed.
        on_activity: a callback for each arrival of data, after it is parsed, and for the end of the connection.
    """

    __slots__ = ("_refusal_headers", "on_activity", "on_data")

    def __init__(self, manager: web.Server, *, headers: Mapping[str, str], **options: Any) -> None:
        """`headers`: added to every error answer; `options`: those of `RequestHandler`."""
        super().__init__(manager, **options)
        self._refusal_headers = headers
        self.on_data: Callable[[], None] | None = None
        self.on_activity: Callable[[], None] | None = None

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
        if self.on_activity is not None:
            self.on_activity()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Report the end. See `RequestHandler.connection_lost`."""
        super().connection_lost(exc)
        if self.on_activity is not None:
            self.on_activity()

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
