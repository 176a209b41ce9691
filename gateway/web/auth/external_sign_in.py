"""Sign-in by an identity provider (SAML and the like). Central talks to the provider; the session is the gateway's own.

The interface's specification does not describe the bodies of these operations. An answer signs somebody in if it has
the field `session`, as after a sign-in by password, or sets central's cookie of that name. Then the gateway replaces
central's token by a token of its own session, and keeps central's. Any other answer passes unchanged.
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

from gateway.domain.relaying import AnswerOfCentral, NotRelayed, RelayedRequest, RelayRefusal
from gateway.domain.writes import JsonObject
from gateway.texts import text
from gateway.web.auth.callers import COOKIE, Caller, from_foreign_page, set_session_cookie
from gateway.web.auth.sign_in import SignIn
from gateway.web.families import Route
from gateway.web.http.bodies import read_bytes
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import FORM, Operation
from gateway.web.relayed import OPERATIONS as RELAYED
from gateway.web.relayed.relay import STRANGERS, Relay, headers_of, passed_headers, path_of, query_of, refused

_LARGEST = 256 * 1024
_COOKIES = re.compile(r"[!-~ ]{1,4096}")
_OBJECT = TypeAdapter(JsonObject)
_FROM_CENTRAL = {
    "Via": "1.1 edge-gateway",
    # A SAML form may submit itself. In the sandbox it has no origin, so none of the gateway's cookies goes with it.
    "Content-Security-Policy": (
        "sandbox allow-forms allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';"
        " frame-ancestors 'none'"
    ),
}


@dataclass(frozen=True, kw_only=True)
class ExternalSignIn:
    """The relayed operations by which people sign in. `relay` is None for a site without central."""

    relay: Relay | None
    sign_in: SignIn

    def routes(self) -> tuple[Route, ...]:
        """Return the operations that may begin a session."""
        return tuple(Route(operation, partial(self._answer, operation)) for operation in RELAYED if operation.signs_in)

    async def _answer(self, operation: Operation, request: web.Request, _: Caller) -> web.StreamResponse:
        relay = self.relay
        if from_foreign_page(request) and not (_may_arrive(operation) and _is_visit(request)):
            raise RequestRefused(403, text("refused.foreign_sign_in"))
        if relay is None:
            raise RequestRefused(404, text("refused.site_stands_alone"))
        if relay.away():
            raise refused(NotRelayed(RelayRefusal.AWAY, "central cannot be reached now"))
        asked = await _asked(operation, request)
        try:
            async with relay.answer(asked) as answer:
                return await self._passed_on(request, answer)
        except NotRelayed as error:
            raise refused(error) from error

    async def _passed_on(self, request: web.Request, answer: AnswerOfCentral) -> web.StreamResponse:
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


def _may_arrive(operation: Operation) -> bool:
    """Return whether an identity provider leads browsers to this operation: by a link, or by SAML's form."""
    return operation.method == "GET" or operation.body_type == FORM


def _is_visit(request: web.Request) -> bool:
    """Return whether the browser's window itself goes to this address, as far as the browser tells."""
    told = (request.headers.get("Sec-Fetch-Mode", "navigate"), request.headers.get("Sec-Fetch-Dest", "document"))
    return told == ("navigate", "document")


async def _asked(operation: Operation, request: web.Request) -> RelayedRequest:
    """Build the request for central. Its body is read completely first: a slow client must not hold up the relay."""
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


async def _whole(answer: AnswerOfCentral) -> bytes:
    body = bytearray()
    async for chunk in answer.body:
        body += chunk
        if len(body) > _LARGEST:
            raise NotRelayed(RelayRefusal.NOT_CARRIED, "central's answer to a sign-in is larger than is relayed")
    return bytes(body)


def _object(body: bytes) -> JsonObject:
    """Parse the body; an empty object if it is not a JSON object."""
    try:
        return _OBJECT.validate_json(body)
    except ValidationError:
        return {}


def _cookies(answer: AnswerOfCentral) -> tuple[str, list[Morsel[str]]]:
    """Return the session token in central's cookies ("" for none), and its other cookies, with their domain removed."""
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
            morsel["domain"] = ""  # the caller gets the cookie from the gateway's address, not from central's
            others.append(morsel)
    return session, others
