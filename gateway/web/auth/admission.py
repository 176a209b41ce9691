"""Admission: the check of each request against its operation's permission rule, and error envelopes."""

from __future__ import annotations

import pwd
import socket
from dataclasses import dataclass

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler as RawHandler

from drivers.listening.http import PROVED
from gateway.runtime.unix_sockets import is_own_process, peer_user
from gateway.texts import text
from gateway.web.auth.api_keys import ApiKeys, bearer
from gateway.web.auth.callers import NOBODY, Caller, SessionCarrier, from_foreign_page
from gateway.web.auth.sessions import Sessions
from gateway.web.auth.view_tokens import TOKEN, TokenView
from gateway.web.auth.viewers import Viewers
from gateway.web.families import Route
from gateway.web.http.addresses import refuse_foreign_host
from gateway.web.http.bodies import path_id
from gateway.web.http.errors import (
    KEYED,
    TEXTS,
    ErrorAnswer,
    RequestRefused,
    as_json,
    authentication_required,
    failure,
    permission_missing,
    refusal_of,
    second_factor_missing,
)
from gateway.web.operation import EVERYTHING, LEGACY_PREFIX, Operation

log = structlog.get_logger(__name__)

_OPERATION = web.RequestKey("operation", Operation)


@dataclass(frozen=True, kw_only=True)
class Admission:
    """The check of callers against their operation's rule, by session or by API key.

    A session's token is not accepted as a key, nor a key as a session. Callers on the local socket need neither.
    """

    sessions: Sessions
    viewers: Viewers
    keys: ApiKeys

    def guarded(self, route: Route) -> RawHandler:
        """Return the route's handler behind its rule."""
        by_key = route.operation.by_key or route.operation.path.startswith(LEGACY_PREFIX)
        return self._by_key(route) if by_key else self._by_session(route)

    def _by_session(self, route: Route) -> RawHandler:
        operation = route.operation

        async def handler(request: web.Request) -> web.StreamResponse:
            request[_OPERATION] = operation
            caller = await self._caller(request, operation)
            if caller.carrier is SessionCarrier.COOKIE and operation.method != "GET" and from_foreign_page(request):
                if operation.rule.session:
                    raise RequestRefused(403, text("refused.foreign_page"))
                caller = NOBODY
            request[PROVED] = caller.signed_in
            if operation.rule.session and not caller.signed_in:
                raise authentication_required()
            if operation.rule.whole and caller.mfa_pending:
                raise second_factor_missing()
            if group := operation.rule.missing(caller.permissions):
                raise permission_missing(group)
            return await route.handler(request, caller)

        return handler

    def _by_key(self, route: Route) -> RawHandler:
        """Return the handler for programs: 401 without a valid key, 403 for a missing permission.

        The caller's `username` is `key:<name>`.
        """
        rule = route.operation.rule

        async def handler(request: web.Request) -> web.StreamResponse:
            if (local := local_caller(request)) is not None:
                return await route.handler(request, local)
            key = await self.keys.of(request)
            if key is None:
                raise RequestRefused(
                    401,
                    "a valid API key is needed, as 'Authorization: Bearer <API_KEY>'",
                    headers={"WWW-Authenticate": "Bearer"},
                )
            request[PROVED] = True
            if group := rule.missing(key.permissions):
                raise RequestRefused(403, f"permission denied: this needs {' or '.join(group)}")
            caller = Caller(
                username=f"key:{key.name}",
                permissions=key.permissions,
                token=bearer(request),
                carrier=SessionCarrier.KEY,
            )
            return await route.handler(request, caller)

        return handler

    async def _caller(self, request: web.Request, operation: Operation) -> Caller:
        """Return the caller. If the address of footage has a token, only the token counts, not a session beside it.

        Raises RequestRefused (403) for a token that is not valid.
        """
        if (local := local_caller(request)) is not None:
            return local
        token = None if operation.view is None else request.query.get(TOKEN)
        if operation.view is None or token is None:
            return await self.sessions.caller(request)
        caller = await self.viewers.caller(token, TokenView(operation.view, path_id(request)), operation.rule)
        if not caller.signed_in:
            raise RequestRefused(403, text("refused.address_expired"))
        return caller


@web.middleware
async def errors_as_envelopes(request: web.Request, handler: RawHandler) -> web.StreamResponse:
    """Turn every exception of a handler into the error envelope, or into `{error}` for the legacy family.

    Redirections pass unchanged. If part of the answer was sent already, the connection is cut, so that the client does
    not take the answer for complete.
    """
    try:
        refuse_foreign_host(request)
        _refuse_compressed(request)
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        caught: Exception = error
    except Exception as error:  # noqa: BLE001 (the one place where a request's errors end; unexpected ones are logged)
        caught = error
    operation = request.get(_OPERATION)
    secret = operation is not None and "{token}" in operation.path  # no log may show the token
    path = operation.path if operation is not None and secret else request.path
    if isinstance(caught, ConnectionError) and _has_left(request):
        log.debug("caller_left", method=request.method, path=path)
        refusal = ErrorAnswer(400, text("refused.caller_left"))
    else:
        refusal = refusal_of(caught, method=request.method, path=path)
    if request.writer.output_size and request.transport is not None:
        request.transport.abort()
    if request.path.startswith(LEGACY_PREFIX):
        return as_json({"error": str(refusal.sentence)}, status=refusal.status, headers=refusal.headers)
    return failure(
        status=refusal.status,
        error=refusal.sentence,
        is_keyed=request.headers.get(TEXTS) == KEYED,
        resource=operation.resource if operation else "",
        headers=refusal.headers,
    )


def _refuse_compressed(request: web.Request) -> None:
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise RequestRefused(415, "the body must not be compressed")


def _has_left(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def local_caller(request: web.Request) -> Caller | None:
    """Return the caller on the local socket, named `local:<user>`; None for a request from the network.

    Anybody who may open that socket has every permission, without a password. A process of the gateway itself is
    refused (RequestRefused): a camera worker that was taken over has its user, too.

    The user comes from the kernel (unix(7), SO_PEERCRED). In a user namespace, as systemd's `PrivateUsers=` creates,
    every user but root and the service's own appears as `nobody`.
    """
    transport = request.transport
    if transport is None or isinstance(transport.get_extra_info("peername"), tuple):  # an address of the network
        return None
    end = transport.get_extra_info("socket")
    if end is None or end.family != socket.AF_UNIX:
        return None
    if is_own_process(end):
        raise RequestRefused(403, "the gateway's own processes have no business here; a person uses sudo")
    return Caller(
        username=f"local:{_name_of(peer_user(end))}",
        permissions=frozenset({EVERYTHING}),
        carrier=SessionCarrier.LOCAL,
        role="local",
    )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
