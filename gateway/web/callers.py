"""Who calls, and what carries their session."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from aiohttp import web

from gateway.web.catalogue.operation import Rule
from gateway.web.public_address import is_own_origin

COOKIE = "session"


class Carrier(Enum):
    """How a request carries its session."""

    NONE = "none"
    SESSION_ID = "SessionID header"
    BEARER = "Bearer header"
    COOKIE = "cookie"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. Without a session `username` is "" and there are no permissions.

    Attributes:
        role: the name of the account's role.
        central: whether it is an account of central; otherwise it is the site's own.
        mfa_pending: the second factor is not proven yet; until then there are no permissions.
    """

    username: str = ""
    permissions: frozenset[str] = frozenset()
    token: str = field(default="", repr=False)
    carrier: Carrier = Carrier.NONE
    role: str = ""
    central: bool = False
    mfa_pending: bool = False

    @property
    def signed_in(self) -> bool:
        """Whether there is a session."""
        return self.carrier is not Carrier.NONE

    def may(self, rule: Rule) -> bool:
        """Whether the rule lets this caller in."""
        if (rule.session and not self.signed_in) or (rule.whole and self.mfa_pending):
            return False
        return not rule.missing(self.permissions)


NOBODY = Caller()


def carried(request: web.Request) -> tuple[Carrier, str]:
    """The first carrier that is there, alone, and its token."""
    if (token := request.headers.get("SessionID")) is not None:
        return Carrier.SESSION_ID, token.strip()
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return Carrier.BEARER, token.strip()
    if (token := request.cookies.get(COOKIE)) is not None:
        return Carrier.COOKIE, token
    return Carrier.NONE, ""


def from_own_page(request: web.Request) -> bool:
    """Whether a request shows that no foreign page made it: such a page can set neither header."""
    if "X-Requested-With" in request.headers:
        return True
    return is_own_origin(request, request.headers.get("Origin", ""))


def from_foreign_page(request: web.Request) -> bool:
    """Whether the browser says that another site's page, or another port of this machine, made the request."""
    return request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
