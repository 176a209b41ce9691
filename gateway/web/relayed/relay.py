"""The relay: operations that only central answers are forwarded with the caller's own session at central.

Central's answer comes back unchanged. Only operations of the catalogue are relayed, to paths built from the catalogue,
with the headers that are listed here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from aiohttp import web
from pydantic import BaseModel, ValidationError

from gateway.domain.relaying import AnswerOfCentral, Headers, NotRelayed, RelayedRequest, RelayRefusal
from gateway.texts import text
from gateway.web.auth.callers import Caller
from gateway.web.auth.sessions import CentralSessions
from gateway.web.families import Route
from gateway.web.http.errors import AUTHENTICATION_REQUIRED, RequestRefused
from gateway.web.operation import Operation
from gateway.web.relayed import OPERATIONS as RELAYED
from gateway.web.relayed.ids import RelayedIds

IDLE_SECONDS = 30.0
_WHOLE_SECONDS = 600.0
_PLACE = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,127}")
_QUERY = re.compile(r"[!-~]{0,4096}")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_ASKED = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "content-language",
        "content-type",
        "idempotency-key",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "range",
        "user-agent",
        "x-request-id",
    }
)
_ANSWERED = frozenset(
    {
        "accept-ranges",
        "age",
        "allow",
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-range",
        "content-type",
        "deprecation",
        "etag",
        "expires",
        "last-modified",
        "link",
        "location",
        "retry-after",
        "sunset",
        "vary",
        "x-request-id",
    }
)
_STATUS = {
    RelayRefusal.AWAY: 503,
    RelayRefusal.BUSY: 503,
    RelayRefusal.TOO_LARGE: 413,
    RelayRefusal.BROKEN_OFF: 400,
    RelayRefusal.LATE: 408,
    RelayRefusal.SILENT: 504,
    RelayRefusal.LOST: 502,
    RelayRefusal.NOT_CARRIED: 502,
}
_AGAIN_SECONDS = {RelayRefusal.AWAY: "5", RelayRefusal.BUSY: "1"}
_FROM_CENTRAL = {
    "Via": "1.1 edge-gateway",
    # A page of central appears under the gateway's address: it must not run scripts there, nor be framed by another.
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
}
STRANGERS = "nobody"
"""The owner of requests without a session. Together they may use only as much of the relay as one signed-in caller."""
_LONGEST_ERROR = 4096
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_OF_A_PROXY = frozenset({413, 429, 502, 503, 504})
"""Statuses with which a proxy may answer a page of its own; they are passed on, because they mean the same here."""
_SENT_ON = frozenset({301, 302, 303, 307, 308})


class _Error(BaseModel):
    error: str


class Relay(Protocol):
    """The connection to central for operations that only central answers."""

    @property
    def largest(self) -> int:
        """The largest body that is relayed, in bytes."""
        ...

    def away(self) -> bool:
        """Return whether central is known not to answer. Never waits."""
        ...

    def answer(self, asked: RelayedRequest) -> AbstractAsyncContextManager[AnswerOfCentral]:
        """Send a request; the context yields central's answer, whose body must be read inside it. Raises NotRelayed."""
        ...


@dataclass(frozen=True, kw_only=True)
class Relayed:
    """The handlers of all operations that central answers, except those that sign people in.

    `relay` is None for a site without central.
    """

    relay: Relay | None
    sessions: CentralSessions
    ids: RelayedIds

    def routes(self) -> tuple[Route, ...]:
        """Return the operations that are relayed."""
        others = (operation for operation in RELAYED if not operation.signs_in)
        return tuple(Route(operation, partial(self._relayed, operation)) for operation in others)

    async def _relayed(self, operation: Operation, request: web.Request, caller: Caller) -> web.StreamResponse:
        relay = self.relay
        if relay is None:
            raise RequestRefused(404, text("refused.site_stands_alone"))
        if operation.rule.session and not caller.central:
            raise RequestRefused(403, "only central answers this, and it does not know accounts of the site")
        if relay.away():
            raise refused(NotRelayed(RelayRefusal.AWAY, "central cannot be reached now"))
        try:
            asked = await self.ids.translate(self._asked(relay, operation, request, caller), request.content_type)
            async with relay.answer(asked) as answer:
                _refuse_page(operation, answer)
                start = await self._start(answer, caller)
                return await _passed_on(request, answer, start)
        except NotRelayed as error:
            raise refused(error) from error

    def _asked(self, relay: Relay, operation: Operation, request: web.Request, caller: Caller) -> RelayedRequest:
        token = self.sessions.token_of(caller) if operation.rule.session else ""
        if token is None:
            raise _sign_in_again()
        carries = operation.method != "GET" and request.can_read_body
        length = request.content_length
        if carries and length is not None and length > relay.largest:
            raise RequestRefused(413, "the body is larger than is relayed")
        return RelayedRequest(
            method=operation.method,
            path=path_of(operation, request),
            query=query_of(request),
            headers=headers_of(request),
            token=token,
            owner=caller.username or STRANGERS,
            body=_body(request) if carries else None,
            length=length if carries else None,
        )

    async def _start(self, answer: AnswerOfCentral, caller: Caller) -> bytes:
        """Return the beginning of an error answer's body, b"" for other answers, after a check for an ended session.

        Raises RequestRefused when central has ended the caller's session.
        """
        start = bytearray()
        if not caller.central or answer.status < 400:
            return b""
        async for chunk in answer.body:
            start += chunk
            if len(start) > _LONGEST_ERROR:
                return bytes(start)
        if _needs_session(answer.status, bytes(start)):
            self.sessions.lost(caller)
            raise _sign_in_again()
        return bytes(start)


async def _passed_on(request: web.Request, answer: AnswerOfCentral, start: bytes) -> web.StreamResponse:
    """Pass on the answer as it arrives. If it breaks off, cut the connection, so that the client notices."""
    response = web.StreamResponse(status=answer.status, headers=_FROM_CENTRAL)
    for name, value in passed_headers(answer):
        response.headers.add(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    if answer.length is not None:
        response.content_length = answer.length
    await response.prepare(request)
    try:
        async with asyncio.timeout(_WHOLE_SECONDS):
            if start:
                await response.write(start)
            async for chunk in answer.body:
                async with asyncio.timeout(IDLE_SECONDS):
                    await response.write(chunk)
            await response.write_eof()
    except (NotRelayed, TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    return response


def passed_headers(answer: AnswerOfCentral) -> Iterator[tuple[str, str]]:
    """Yield the headers of central's answer that are passed on to the caller."""
    for name, value in answer.headers:
        if name.lower() in _ANSWERED and _VALUE.fullmatch(value):
            yield name, value


def path_of(operation: Operation, request: web.Request) -> str:
    """Return the operation's path with the request's parameters. Raises RequestRefused (404) for unusual characters."""
    if not all(_PLACE.fullmatch(value) for value in request.match_info.values()):
        raise RequestRefused(404, text("refused.record_unknown"))
    return operation.path.format_map(request.match_info)


def query_of(request: web.Request) -> str:
    """Return the query as it was sent. Raises RequestRefused (400) if it is too long or has invalid characters."""
    query = request.rel_url.raw_query_string
    if not _QUERY.fullmatch(query):
        raise RequestRefused(400, "the query cannot be relayed")
    return query


def headers_of(request: web.Request) -> Headers:
    """Return the headers to relay, without hop-by-hop ones. Raises RequestRefused (400) for an invalid value."""
    kept = {name.strip().lower() for value in request.headers.getall("Connection", ()) for name in value.split(",")}
    found = tuple((name, value) for name, value in request.headers.items() if name.lower() in _ASKED - kept)
    for name, value in found:
        if not _VALUE.fullmatch(value):
            raise RequestRefused(400, f"the header {name} cannot be relayed")
    return found


async def _body(request: web.Request) -> AsyncIterator[bytes]:
    while True:
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                chunk = await request.content.readany()
        except TimeoutError as error:
            raise NotRelayed(RelayRefusal.LATE, "the body did not come in time") from error
        except (web.RequestPayloadError, ConnectionError) as error:
            raise NotRelayed(RelayRefusal.BROKEN_OFF, "the body broke off") from error
        if not chunk:
            return
        yield chunk


def _refuse_page(operation: Operation, answer: AnswerOfCentral) -> None:
    """Raise RequestRefused for an answer that is not central's, unless the operation may answer with a page.

    A captive portal, or a proxy in front of central, answers with a page of its own or redirects to one.
    """
    if operation.page:
        return
    named = {name.lower(): value for name, value in answer.headers}
    kind = named.get("content-type", "").partition(";")[0].strip().lower()
    file = named.get("content-disposition", "").lower().startswith("attachment")
    if kind in _PAGES and not file:
        status = answer.status if answer.status in _OF_A_PROXY else 502
        raise RequestRefused(status, f"a web page came in place of central's answer, with status {answer.status}")
    if answer.status in _SENT_ON and operation.method != "GET":
        raise RequestRefused(
            502, f"the request was sent on elsewhere, with status {answer.status}; central did not answer"
        )


def _needs_session(status: int, body: bytes) -> bool:
    if status == 401:
        return True
    try:
        return AUTHENTICATION_REQUIRED in _Error.model_validate_json(body).error.casefold()
    except ValidationError:
        return False


def _sign_in_again() -> RequestRefused:
    """Return the refusal of a caller who has a session here, but none at central (any more)."""
    return RequestRefused(500, text("refused.sign_in_at_central_over"))


def refused(error: NotRelayed) -> RequestRefused:
    """Return the refusal of a request to which central gave no answer."""
    again = _AGAIN_SECONDS.get(error.refusal)
    return RequestRefused(
        _STATUS[error.refusal], str(error), headers={"Retry-After": again} if again is not None else None
    )
