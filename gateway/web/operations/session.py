"""Sign-in and sign-out: rules, models and handlers."""

from __future__ import annotations

from typing import Annotated, Literal

from aiohttp import web
from pydantic import Field

from gateway.domain.accounts import LONGEST_PASSWORD
from gateway.texts import text
from gateway.web.answers import Answer, LoginAnswer
from gateway.web.auth.callers import COOKIE, Caller, SessionCarrier, from_foreign_page, set_session_cookie
from gateway.web.families import Family, operation
from gateway.web.http.addresses import address_of
from gateway.web.http.bodies import Body
from gateway.web.http.errors import RequestRefused, success
from gateway.web.operation import HALF_SIGNED_IN, OPEN


class LoginBody(Body):
    """A name and its password."""

    username: Annotated[str, Field(strict=True, max_length=120)]
    password: Annotated[str, Field(strict=True, max_length=LONGEST_PASSWORD, repr=False)]


class MfaBody(Body):
    """The current code of the second factor, or a recovery code, in either field."""

    token: Annotated[str, Field(strict=True, max_length=64, repr=False)] = ""
    code: Annotated[str, Field(strict=True, max_length=64, repr=False)] = ""


class LogoutBody(Body):
    """An empty body: the session that the request carries is ended."""


class MfaAnswer(Answer):
    """The second factor is proven."""

    mfa_enabled: Literal[True]


class LogoutAnswer(Answer):
    """The session is over."""

    user: None
    error: None


class Auth(Family):
    """The handlers of `/v1/auth`."""

    @operation("POST", "/v1/auth/login", OPEN, "session", purpose="Sign in", answer=LoginAnswer, refuses=(404, 429))
    async def _login(self, wanted: LoginBody, request: web.Request) -> web.StreamResponse:
        if from_foreign_page(request):
            raise RequestRefused(403, text("refused.foreign_sign_in"))
        signed_in = await self.context.auth.sign_in.by_password(
            wanted.username, wanted.password, address=address_of(request)
        )
        token = signed_in.caller.token
        response = success(session=token, user=signed_in.user, role=signed_in.role, servers=signed_in.servers)
        set_session_cookie(request, response, token)
        return response

    @operation(
        "POST",
        "/v1/auth/logout",
        HALF_SIGNED_IN,
        "user",
        purpose="End the session",
        body=LogoutBody,
        answer=LogoutAnswer,
        refuses=(403,),
    )
    @operation(
        "GET", "/v1/auth/logout", HALF_SIGNED_IN, "user", purpose="End the session", answer=LogoutAnswer, refuses=(403,)
    )
    async def _logout(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        if caller.carrier is SessionCarrier.COOKIE and from_foreign_page(request):
            raise RequestRefused(403, text("refused.foreign_sign_out"))
        await self.context.auth.sessions.sign_out(caller)
        response = success(user=None, error=None)
        response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict")
        return response

    @operation(
        "POST",
        "/v1/auth/mfa",
        HALF_SIGNED_IN,
        "mfa_enabled",
        purpose="Prove the second factor by its current code",
        refuses=(429,),
    )
    async def _mfa(self, wanted: MfaBody, request: web.Request, caller: Caller) -> MfaAnswer:
        if not (wanted.token or wanted.code):
            raise RequestRefused(400, "token: is missing")
        await self.context.auth.sign_in.prove(caller, wanted.token or wanted.code, address=address_of(request))
        return MfaAnswer(mfa_enabled=True)
