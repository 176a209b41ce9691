"""Telling programs what the interface is."""

from __future__ import annotations

import hashlib
from functools import cache

from aiohttp import web
from pydantic_core import to_json

from gateway.web.admission import Route
from gateway.web.catalogue import PUBLIC
from gateway.web.catalogue.description import OPENAPI
from gateway.web.openapi import described
from gateway.web.sessions import Caller


@cache
def _told(release: str) -> tuple[bytes, str]:
    """The text and its tag: they depend on the catalogue alone, and cost a third of a second to make."""
    text = to_json(described(PUBLIC, release=release))
    return text, hashlib.sha256(text).hexdigest()[:32]


class Description:
    """`GET /openapi.json`. It is the same for everybody, and says nothing of the site."""

    def __init__(self, *, release: str) -> None:
        self._text, self._tag = _told(release)

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (Route(OPENAPI, self._get),)

    async def _get(self, request: web.Request, _: Caller) -> web.StreamResponse:
        answer = web.Response(body=self._text, content_type="application/json", charset="utf-8")
        answer.headers["Cache-Control"] = "no-cache"
        answer.etag = self._tag
        if any(known.value in (self._tag, "*") for known in request.if_none_match or ()):
            answer.set_status(304)
            answer.body = None
        return answer
