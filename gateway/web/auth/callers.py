"""Callers, and the carriers of their sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from aiohttp import web

from gateway.web.http.addresses import is_own_origin, is_secure
from gateway.web.operation import Rule

COOKIE = "session"


class SessionCarrier(Enum):
    """Carriers of a session in a request."""

    NONE = "none"
    SESSION_ID = "SessionID header"
    BEARER = "Bearer header"
    COOKIE = "cookie"
    KEY = "API key"
    ADDRESS = "token in the address"
    LOCAL = "local socket"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request. Without a session `username` is "" and there are no permissions.

    Attributes:
        role: the name of the account's role.
        central: whether it is an account of central; otherwise it is the site's own.
        mfa_pending: the second factor is not proven yet; until then there are no permissions.
    """

    username: str = ""
    permissions: frozenset[str] = frozenset()
    token: str = field(default="", repr=False)
    carrier: SessionCarrier = SessionCarrier.NONE
    role: str = ""
    central: bool = False
    mfa_pending: bool = False

    @property
    def signed_in(self) -> bool:
        """True with a session, a key, or on the local socket."""
        return self.carrier is not SessionCarrier.NONE

    def may(self, rule: Rule) -> bool:
        """Return whether the rule lets this caller in."""
        if (rule.session and not self.signed_in) or (rule.whole and self.mfa_pending):
            return False
        return not rule.missing(self.permissions)


NOBODY = Caller()


def carried(request: web.Request) -> tuple[SessionCarrier, str]:
    """Return the first carrier in the request and its token; any further carrier is ignored."""
    if (token := request.headers.get("SessionID")) is not None:
        return SessionCarrier.SESSION_ID, token.strip()
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return SessionCarrier.BEARER, token.strip()
    if (token := request.cookies.get(COOKIE)) is not None:
        return SessionCarrier.COOKIE, token
    return SessionCarrier.NONE, ""


def from_foreign_page(request: web.Request) -> bool:
    """Return whether the browser's headers say that a page of another origin made the request.

    Browsers set `Sec-Fetch-Site` and `Origin` themselves, and no page can change them. `Sec-Fetch-Site` takes
    precedence, because it stays right behind a proxy that changes the host. A client that sends neither is not a
    browser, or no page made the request.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site.strip().lower() not in ("none", "same-origin")
    origin = request.headers.get("Origin")
    return origin is not None and not is_own_origin(request, origin)


def set_session_cookie(request: web.Request, response: web.Response, token: str) -> None:
    """Set the session cookie: `HttpOnly`, `SameSite=Strict`, and `Secure` when the client speaks TLS."""
    response.set_cookie(COOKIE, token, path="/", httponly=True, samesite="Strict", secure=is_secure(request))
