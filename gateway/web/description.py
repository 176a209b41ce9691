"""Telling programs what the interface is."""

from __future__ import annotations

import asyncio
import hashlib
from functools import cache

from aiohttp import web
from pydantic_core import to_json

from gateway.web.auth.admission import Route
from gateway.web.auth.sessions import Caller
from gateway.web.catalogue import PUBLIC
from gateway.web.catalogue.description import OPENAPI
from gateway.web.openapi import described


@cache
def _told(release: str) -> tuple[bytes, str]:
    """The text and its tag: they depend on the catalogue alone. Blocks for a third of a second, the first time."""
    text = to_json(described(PUBLIC, release=release))
    return text, hashlib.sha256(text).hexdigest()[:32]


class Description:
    """`GET /openapi.json`. Made when it is first asked for; the same for everybody, and silent of the site."""

    def __init__(self, *, release: str) -> None:
        self._release = release
        self._one = asyncio.Lock()

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (Route(OPENAPI, self._get),)

    async def _get(self, request: web.Request, _: Caller) -> web.StreamResponse:
        async with self._one:
            text, tag = await asyncio.to_thread(_told, self._release)
        answer = web.Response(body=text, content_type="application/json", charset="utf-8")
        answer.headers["Cache-Control"] = "no-cache"
        answer.etag = tag
        if any(known.value in (tag, "*") for known in request.if_none_match or ()):
            answer.set_status(304)
            answer.body = None
        return answer
