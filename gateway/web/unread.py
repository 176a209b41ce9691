"""Requests that are no HTTP, or too much of it: one plain answer, and no page of log for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import structlog
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

log = structlog.get_logger(__name__)


class PlainHandler(RequestHandler):
    """aiohttp's connection, but what it cannot read is answered in the envelope, with these headers, and closed.

    Anybody on the network can send such a request as often as they like, so it is logged at debug alone.
    """

    __slots__ = ("_refusal_headers",)

    def __init__(self, manager: web.Server, *, headers: Mapping[str, str], **options: Any) -> None:
        """`options` are `RequestHandler`'s."""
        super().__init__(manager, **options)
        self._refusal_headers = headers

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
