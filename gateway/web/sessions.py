"""Sessions: who calls, by which of the three carriers, and signing in and out."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from gateway.clock import Clock
from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.store import Entry, Session, Store
from gateway.web.accounts import Accounts, KnownAccount
from gateway.web.catalogue.operation import Rule
from gateway.web.errors import RequestRefused
from gateway.web.spare_sessions import SpareSessions
from gateway.web.throttle import Throttle

log = structlog.get_logger(__name__)

COOKIE = "session"
_TOUCH_EVERY = 60_000_000
_MOST_WAITING = 16
_LONGEST_TOKEN = 256


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


class Sessions:
    """Signing in and out, and who a request comes from.

    A session ends after `idle_minutes` without use, with its account, or by signing out. Use is noted on disk at most
    once a minute.
    """

    def __init__(self, *, store: Store, accounts: Accounts, clock: Clock, idle_minutes: int) -> None:
        self._store = store
        self._sessions = SpareSessions(stored=store.sessions)
        self._accounts = accounts
        self._clock = clock
        self._idle = idle_minutes * 60_000_000
        self._by_name = Throttle(free=5)
        self._by_address = Throttle(free=100)  # all who share a way out of a site share this
        self._waiting = 0

    async def sign_in(self, *, username: str, password: str, address: str) -> Caller:
        """A new session.

        Raises RequestRefused: 404 for wrong credentials, 429 after too many of them, 503 when too many wait.
        """
        now = self._clock.monotonic()
        wait = max(
            self._by_name.wait((address, username), now=now),
            self._by_address.wait(address, now=now),
        )
        if wait > 0:
            seconds = math.ceil(wait)
            raise RequestRefused(
                429,
                f"too many refused sign-ins; try again in {seconds} s",
                headers={"Retry-After": str(seconds)},
            )
        account = await self._verified(username, password)
        if account is None:
            now = self._clock.monotonic()
            self._by_name.failed((address, username), now=now)
            self._by_address.failed(address, now=now)
            await self._note_refusal(username, address)
            raise RequestRefused(404, "username or password not accepted")
        self._by_name.succeeded((address, username))
        token = secrets.token_urlsafe(32)
        stamp = self._clock.wall().micros
        await self._sessions.add(token, Session(account.username, stamp, stamp, stamp + self._idle))
        return Caller(account.username, account.permissions, token, Carrier.SESSION_ID)

    async def sign_out(self, caller: Caller) -> None:
        """The session is over; its token is worth nothing from now on."""
        await self._sessions.remove(caller.token)

    async def caller(self, request: web.Request) -> Caller:
        """Who a request comes from; NOBODY without a live session. The first carrier present counts, alone."""
        carrier, token = _carried(request)
        if carrier is Carrier.NONE or not token.isascii() or not 0 < len(token) <= _LONGEST_TOKEN:
            return NOBODY
        return await self.refreshed(Caller(token=token, carrier=carrier))

    async def refreshed(self, caller: Caller) -> Caller:
        """The caller as of now, with the session's use noted; NOBODY once the session is over."""
        session = await self._sessions.get(caller.token)
        now = self._clock.wall().micros
        if session is None or session.expires_at <= now:
            return NOBODY
        account = self._accounts.get(session.username)
        if account is None:
            return NOBODY
        if abs(now - session.last_seen_at) >= _TOUCH_EVERY:
            try:
                await self._sessions.touch(caller.token, seen_at=now, expires_at=now + self._idle)
            except StoreError as error:
                # Reading must stay possible on a full disk; the session then ends at its old time.
                log.warning("session_not_touched", error=str(error))
        return Caller(account.username, account.permissions, caller.token, caller.carrier)

    async def _verified(self, username: str, password: str) -> KnownAccount | None:
        if self._waiting >= _MOST_WAITING:
            raise RequestRefused(503, "too many sign-ins at once; try again", headers={"Retry-After": "2"})
        self._waiting += 1
        try:
            return await self._accounts.verified(username, password)
        finally:
            self._waiting -= 1

    async def _note_refusal(self, username: str, address: str) -> None:
        """Record the refusal. A name that is no account is not written down: it may be a mistyped password."""
        known = self._accounts.get(username) is not None
        stamp = self._clock.wall()
        event = Event(
            kind=EventKind.SIGN_IN_REFUSED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            description=f"Sign-in of {username if known else 'an unknown user'} from {address} was refused.",
            data={"address": address, **({"username": username} if known else {})},
        )
        try:
            await self._store.journal.record(Entry(events=(event,)))
        except StoreError as error:
            # The refusal itself stands whether or not it can be written down.
            log.warning("refusal_not_recorded", error=str(error))


def _carried(request: web.Request) -> tuple[Carrier, str]:
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
    origin = urlsplit(request.headers.get("Origin", ""))
    return bool(origin.netloc) and origin.netloc == request.host
