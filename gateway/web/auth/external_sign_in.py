"""Sign-in by an identity provider: central speaks with it, and the session that it begins is the gateway's own.

The interface does not say what these operations carry. An answer that has `session`, as that of a sign-in does, or that
sets central's cookie of that name, signs somebody in; everything else passes as it is. The caller gets a session of the
gateway in the same place, and central's own stays here, as after a sign-in by password.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from http.cookies import CookieError, Morsel, SimpleCookie

from aiohttp import web
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from gateway.domain.relaying import NotRelayed, RelayedAnswer, RelayedRequest, RelayRefusal
from gateway.domain.writes import JsonObject
from gateway.web.auth.admission import Route
from gateway.web.auth.callers import COOKIE, Caller, set_session_cookie
from gateway.web.auth.sign_in import SignIn
from gateway.web.http.bodies import read_bytes
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import Operation
from gateway.web.relayed import OPERATIONS as RELAYED
from gateway.web.relayed.relay import STRANGERS, Relay, headers_of, passed_headers, path_of, query_of, refused

_LARGEST = 256 * 1024
_COOKIES = re.compile(r"[!-~ ]{1,4096}")
_OBJECT = TypeAdapter(JsonObject)
_FROM_CENTRAL = {
    "Via": "1.1 edge-gateway",
    # A form that hands an assertion over may send itself. It has no origin, so no cookie of the gateway's goes with it.
    "Content-Security-Policy": (
        "sandbox allow-forms allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';"
        " frame-ancestors 'none'"
    ),
}


@dataclass(frozen=True, kw_only=True)
class ExternalSignIn:
    """The operations of central's that sign people in."""

    relay: Relay | None
    sign_in: SignIn

    def routes(self) -> tuple[Route, ...]:
        """Return the operations that may begin a session."""
        return tuple(Route(operation, partial(self._answer, operation)) for operation in RELAYED if operation.signs_in)

    async def _answer(self, operation: Operation, request: web.Request, _: Caller) -> web.StreamResponse:
        relay = self.relay
        if relay is None:
            raise RequestRefused(404, "this site stands alone: only central answers this")
        if relay.away():
            raise refused(NotRelayed(RelayRefusal.AWAY, "central cannot be reached now"))
        asked = await _asked(operation, request)
        try:
            async with relay.answer(asked) as answer:
                return await self._passed_on(request, answer)
        except NotRelayed as error:
            raise refused(error) from error

    async def _passed_on(self, request: web.Request, answer: RelayedAnswer) -> web.StreamResponse:
        body = await _whole(answer)
        token, others = _cookies(answer)
        told = _object(body)
        signed_in = None
        if answer.status < 400 and told.get("success") is not False:
            by_cookie: JsonObject = {"session": token, "user": {"mfa_enabled": False}} if token else {}
            signed_in = await self.sign_in.by_provider(by_cookie | told)
        if signed_in is not None and "session" in told:
            body = to_json({**told, "session": signed_in.caller.token})
        response = web.Response(status=answer.status, headers=_FROM_CENTRAL, body=body)
        for name, value in passed_headers(answer):
            response.headers[name] = value
        response.headers.setdefault("Cache-Control", "no-store")
        for morsel in others:
            response.headers.add("Set-Cookie", morsel.OutputString())
        if signed_in is not None:
            set_session_cookie(request, response, signed_in.caller.token)
        return response


async def _asked(operation: Operation, request: web.Request) -> RelayedRequest:
    """Return what central is asked. The body is here as a whole: a slow one must not take a place on the way."""
    body = await read_bytes(request) if operation.method != "GET" else b""
    others = "; ".join(f"{name}={value}" for name, value in request.cookies.items() if name != COOKIE)
    cookies = (("Cookie", others),) if others and _COOKIES.fullmatch(others) else ()
    return RelayedRequest(
        method=operation.method,
        path=path_of(operation, request),
        query=query_of(request),
        headers=(*headers_of(request), *cookies),
        token="",
        owner=STRANGERS,
        body=_pieces(body) if body else None,
        length=len(body) if body else None,
    )


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _whole(answer: RelayedAnswer) -> bytes:
    body = bytearray()
    async for chunk in answer.body:
        body += chunk
        if len(body) > _LARGEST:
            raise NotRelayed(RelayRefusal.NOT_CARRIED, "central's answer to a sign-in is larger than is relayed")
    return bytes(body)


def _object(body: bytes) -> JsonObject:
    """Parse the body; nothing where it is no JSON object."""
    try:
        return _OBJECT.validate_json(body)
    except ValidationError:
        return {}


def _cookies(answer: RelayedAnswer) -> tuple[str, list[Morsel[str]]]:
    """Return the session that central's cookies carry, "" for none, and its other cookies, as the gateway's own."""
    session, others = "", []
    for name, value in answer.headers:
        if name.lower() != "set-cookie":
            continue
        try:
            jar = SimpleCookie(value)
        except CookieError:
            continue
        for key, morsel in jar.items():
            if key == COOKIE:
                session = morsel.value
                continue
            morsel["domain"] = ""  # the caller has them from the gateway
            others.append(morsel)
    return session, others
