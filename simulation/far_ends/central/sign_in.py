"""Sign-in and sign-out at the simulated central, and the session of a request."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from simulation.far_ends.central.accounts import CentralSession, Sessions
from simulation.far_ends.central.answers import AUTHENTICATION_REQUIRED, JsonObject, Refusal, failure, parse_body
from simulation.far_ends.central.bodies import Code, SignIn


class SignInRoutes:
    """The operations on sessions. `url` returns central's own address."""

    def __init__(self, *, sessions: Sessions, url: Callable[[], str]) -> None:
        self._sessions = sessions
        self._url = url

    def add_to(self, app: web.Application) -> None:
        """Add the operations to the application."""
        app.router.add_post("/v1/auth/login", self._login)
        app.router.add_post("/v1/auth/mfa", self._mfa)
        app.router.add_post("/v1/auth/logout", self._logout)
        app.router.add_get("/v1/auth/logout", self._logout, allow_head=False)

    def session_of(self, request: web.Request) -> CentralSession | None:
        """Return the open session whose token a request carries in any of the supported ways; None for none."""
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        for token in (request.headers.get("SessionID", ""), request.cookies.get("session", ""), bearer):
            if token and (session := self._sessions.find(token)) is not None:
                return session
        return None

    def end_session(self, request: web.Request) -> None:
        """End the session that a request carries."""
        session = self.session_of(request)
        if session is not None:
            self._sessions.end(session.token)

    async def _login(self, request: web.Request) -> web.StreamResponse:
        try:
            asked = parse_body(await request.read(), SignIn)
        except Refusal as refusal:
            return web.json_response(failure("session", refusal.message), status=refusal.status)
        session = self._sessions.sign_in(asked.username, asked.password)
        if session is None:
            return web.json_response(failure("session", "invalid username or password"), status=404)
        account = session.account
        answer: JsonObject = {
            "success": True,
            "session": session.token,
            "user": {
                "id": 12,
                "username": account.username,
                "name": account.username.title(),
                "company_id": 3,
                "language": "en",
                "mfa_enabled": bool(account.mfa_secret),
            },
            "role": account.role(),
            "servers": [{"id": 1, "name": "central", "url": self._url()}],
            "error": None,
        }
        response = web.json_response(answer)
        response.set_cookie("session", session.token, httponly=True, samesite="Strict")
        return response

    async def _mfa(self, request: web.Request) -> web.StreamResponse:
        session = self.session_of(request)
        if session is None:
            return web.json_response(failure("user", AUTHENTICATION_REQUIRED), status=500)
        try:
            asked = parse_body(await request.read(), Code)
        except Refusal as refusal:
            return web.json_response(failure("user", refusal.message), status=refusal.status)
        if not session.account.mfa_secret or not self._sessions.validate(session, asked.token or asked.code or ""):
            return web.json_response(failure("user", "invalid code"), status=400)
        return web.json_response({"success": True, "mfa_enabled": True, "error": None})

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        session = self.session_of(request)
        if session is None:
            return web.json_response(failure("user", AUTHENTICATION_REQUIRED), status=500)
        self._sessions.end(session.token)
        return web.json_response({"success": True, "user": None, "error": None})
