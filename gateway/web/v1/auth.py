"""Signing in and out."""

from __future__ import annotations

from aiohttp import web

from gateway.web.auth.admission import Route
from gateway.web.auth.callers import COOKIE, Caller, Carrier, from_foreign_page, set_session_cookie
from gateway.web.auth.sessions import Sessions
from gateway.web.catalogue.session import LOGIN, LOGOUT, LOGOUT_BY_GET, MFA
from gateway.web.http.bodies import read_body
from gateway.web.http.envelope import success
from gateway.web.http.errors import RequestRefused
from gateway.web.http.forwarded import address_of
from gateway.web.shapes.session import LoginBody, MfaBody


class Auth:
    """`/v1/auth`."""

    def __init__(self, *, sessions: Sessions) -> None:
        self._sessions = sessions

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (
            Route(LOGIN, self._login),
            Route(LOGOUT, self._logout),
            Route(LOGOUT_BY_GET, self._logout),
            Route(MFA, self._mfa),
        )

    async def _login(self, request: web.Request, _: Caller) -> web.StreamResponse:
        if from_foreign_page(request):
            raise RequestRefused(403, "another site's page may not sign in here")
        wanted = await read_body(request, LoginBody)
        signed_in = await self._sessions.sign_in(
            username=wanted.username, password=wanted.password, address=address_of(request)
        )
        token = signed_in.caller.token
        response = success(session=token, user=signed_in.user, role=signed_in.role, servers=signed_in.servers)
        set_session_cookie(request, response, token)
        return response

    async def _logout(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        if caller.carrier is Carrier.COOKIE and from_foreign_page(request):
            raise RequestRefused(403, "another site's page may not sign out here")
        await self._sessions.sign_out(caller)
        response = success(user=None, error=None)
        response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict")
        return response

    async def _mfa(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, MfaBody)
        if not (wanted.token or wanted.code):
            raise RequestRefused(400, "token: is missing")
        await self._sessions.prove(caller, wanted.token or wanted.code, address=address_of(request))
        return success(mfa_enabled=True)
