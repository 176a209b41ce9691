"""The interface's OpenAPI description as an operation."""

from __future__ import annotations

import asyncio
import hashlib
from functools import cache

from aiohttp import web
from pydantic_core import to_json

from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.files import unless_known
from gateway.web.openapi import described
from gateway.web.operation import OPEN, Operation


@cache
def _description(operations: tuple[Operation, ...], release: str) -> tuple[bytes, str]:
    """Return the JSON text and its ETag. Blocks for about 0.3 s the first time, then answers from the cache."""
    text = to_json(described(operations, release=release))
    return text, hashlib.sha256(text).hexdigest()[:32]


class Description(Family):
    """The handler of `GET /openapi.json`. The text is made at the first request, and holds nothing about the site."""

    def __init__(self, context: InterfaceContext, operations: tuple[Operation, ...]) -> None:
        super().__init__(context)
        self._operations = operations
        self._one = asyncio.Lock()

    @operation("GET", "/openapi.json", OPEN, head=True, purpose="This interface as OpenAPI 3.1")
    async def _get(self, request: web.Request) -> web.StreamResponse:
        async with self._one:
            text, tag = await asyncio.to_thread(_description, self._operations, self.context.release)
        answer = web.Response(body=text, content_type="application/json", charset="utf-8")
        answer.headers["Cache-Control"] = "no-cache"
        return unless_known(request, answer, tag=tag)
