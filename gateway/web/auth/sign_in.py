"""Sign-in: the one place where sessions begin.

    name and password: an account of the site, by its hash            (`accounts`)
                       else one of central, by central or from memory (`central_sign_in`)
    identity provider: an account of central, by central's answer     (`external_sign_in`)
        -> a session, which is worth nothing while its second factor is missing (`sessions`)
        -> the second factor, by a code that this site or central judges        (`second_factor`)

Refusals are counted and slow their callers down (`Throttle`), and are recorded as events.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from weakref import WeakValueDictionary

import structlog
from pydantic import JsonValue

from drivers.listening.addresses import counted_as
from drivers.throttle import Throttle
from gateway.domain.accounts import LONGEST_NAME, CentralAdmission
from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind, Scalar
from gateway.domain.writes import JsonObject
from gateway.runtime.clock import Clock
from gateway.store import Entry, Session, StoredAccount
from gateway.store.events.journal import Journal
from gateway.texts import Text, text
from gateway.web.auth.accounts import Roster
from gateway.web.auth.callers import Caller
from gateway.web.auth.central_sign_in import CentralSignIn
from gateway.web.auth.second_factor import CodeProof, SecondFactor, recovery_hash
from gateway.web.auth.sessions import CentralSessions, Sessions
from gateway.web.http.errors import RequestRefused

log = structlog.get_logger(__name__)

_MOST_PROVEN = 256
_NOT_ACCEPTED = text("refused.password")
_NOT_ACCEPTED_BESIDE_CENTRAL = text("refused.password_beside_central")
_RESERVED = ("key:", "local:")
"""Beginnings of the names by which programs and callers on the local socket are known."""
_MOST_WAITING = 16


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A new session with the account's records for the answer."""

    caller: Caller
    user: JsonValue
    role: JsonValue
    servers: JsonValue


@dataclass(frozen=True, slots=True)
class _Admitted:
    """An account that may begin a session.

    Attributes:
        session: the session to begin; its times are set when it begins.
        user: the account's user record for the answer.
        role: the account's role record for the answer.
        servers: central's list of servers for the answer; empty for an account of the site.
        proven: the password hash against which an account of the site was checked; "" for one of central.
        central_token: the token of its session at central; "" if there is none.
    """

    session: Session
    user: JsonValue
    role: JsonValue
    servers: JsonValue
    proven: str = ""
    central_token: str = ""


class SignIn:
    """Sign-in by password or identity provider, and the check of second factors."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        roster: Roster,
        second_factor: SecondFactor,
        central: CentralSignIn | None,
        central_sessions: CentralSessions,
        journal: Journal,
        clock: Clock,
    ) -> None:
        """`central`: None where accounts of central may not sign in."""
        self._sessions = sessions
        self._roster = roster
        self._second_factor = second_factor
        self._central = central
        self._central_sessions = central_sessions
        self._journal = journal
        self._clock = clock
        self._by_name = Throttle(free=5)
        self._by_address = Throttle(free=100)  # higher, because many people may share one address
        self._by_code = Throttle(free=5)  # by account alone, whatever the address: codes are short
        self._proven: OrderedDict[str, bytes] = OrderedDict()
        self._waiting = 0
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def by_password(self, username: str, password: str, *, address: str) -> SignedIn:
        """Begin a session for a name and its password.

        Raises RequestRefused: 404 for wrong credentials; 429 after too many of them; 503 when too many sign-ins wait or
        the password cannot be checked now, which does not count as an attempt.
        """
        host = counted_as(address)
        name = host, username
        # One at a time: otherwise parallel attempts would all be checked before the first of them is counted.
        async with self._turns.setdefault(name, asyncio.Lock()):
            self._hold_off("sign_ins", (self._by_name, name), (self._by_address, host))
            admitted = await self._admitted(username, password)
            signed_in = None if admitted is None else await self._begin(admitted)
            if signed_in is not None:
                self._by_name.succeeded(name)
                return signed_in
            now = self._clock.monotonic()
            self._by_name.failed(name, now=now)
            self._by_address.failed(host, now=now)
        known = self._roster.get(username) is not None
        await self._record_refusal(username, address, "sign_in", known=known)
        raise RequestRefused(404, _NOT_ACCEPTED if self._central is None else _NOT_ACCEPTED_BESIDE_CENTRAL)

    async def by_provider(self, answer: JsonObject) -> SignedIn | None:
        """Begin a session for an account that central has signed in by an identity provider.

        None if central's answer has no session. Raises RequestRefused (403) where accounts of central may not sign in,
        and for an account with the name of one of the site.
        """
        if not isinstance(answer.get("session"), str):
            return None
        admission = None if self._central is None else self._central.admitted(answer)
        if admission is None:
            raise RequestRefused(403, text("refused.no_accounts_of_central"))
        name = _name_of(admission.user)
        await self._refuse_taken(name)
        return await self._begin(_admitted_by_central(name, admission))

    async def prove(self, caller: Caller, code: str, *, address: str) -> None:
        """Prove the second factor of a session. Repeating the same code afterwards succeeds again.

        Raises RequestRefused: 400 for a wrong code, 429 after too many of them, 503 while central cannot check it.
        """
        if not caller.mfa_pending:
            account = None if caller.central else self._roster.get(caller.username)
            if self._proven.get(caller.token) == recovery_hash(code):
                return  # a client repeats its request when the answer was lost
            proven = caller.central or (account is not None and account.totp_secret)
            raise RequestRefused(
                400, text("refused.no_code_awaited") if proven else text("refused.account_without_factor")
            )
        self._hold_off("codes", (self._by_code, caller.username))
        # Counted before it is checked, so that parallel attempts are counted too.
        self._by_code.failed(caller.username, now=self._clock.monotonic())
        try:
            proven = await self._proves(caller, code)
        except (RequestRefused, StoreError):
            self._by_code.forgive(caller.username)
            raise
        if not proven:
            await self._record_refusal(caller.username, address, "second_factor", known=True)
            doubtful = self._second_factor.doubtful and not caller.central
            raise RequestRefused(400, text("refused.code_and_clock_unset") if doubtful else text("refused.code"))
        self._by_code.succeeded(caller.username)
        self._proven[caller.token] = recovery_hash(code)
        if len(self._proven) > _MOST_PROVEN:
            self._proven.popitem(last=False)
        await self._sessions.complete(caller)

    async def _admitted(self, username: str, password: str) -> _Admitted | None:
        """Check name and password; None when they are wrong. A site's account takes precedence over one of central."""
        if self._central is not None and not await self._roster.has(username):
            admission = await self._central.admit(username, password)
            await self._refuse_taken(username)
            return None if admission is None else _admitted_by_central(username, admission)
        if self._waiting >= _MOST_WAITING:
            raise RequestRefused(503, text("refused.too_many_sign_ins"), headers={"Retry-After": "2"})
        self._waiting += 1
        try:
            account = await self._roster.verified(username, password)
        finally:
            self._waiting -= 1
        return None if account is None else _admitted_by_site(account)

    async def _refuse_taken(self, username: str) -> None:
        """Refuse an account of central that events and pages would show as somebody of the site."""
        if username.strip().casefold().startswith(_RESERVED) or await self._roster.has(username):
            raise RequestRefused(403, text("refused.account_of_both"))

    async def _begin(self, admitted: _Admitted) -> SignedIn | None:
        """Begin the session; None when its account's password was changed since it was checked."""
        caller = await self._sessions.begin(admitted.session, proven=admitted.proven)
        if caller is None:
            return None
        if admitted.central_token:
            await self._central_sessions.keep(caller.token, admitted.central_token)
        return SignedIn(caller, admitted.user, admitted.role, admitted.servers)

    async def _proves(self, caller: Caller, code: str) -> bool:
        if not caller.central:
            account = self._roster.get(caller.username)
            return account is not None and await self._proves_here(account, code)
        token = self._central_sessions.pending(caller)
        if self._central is None or token is None:
            await self._sessions.sign_out(caller)
            raise RequestRefused(400, text("refused.gateway_restarted"))
        return await self._central.prove(token, code)

    async def _proves_here(self, account: StoredAccount, code: str) -> bool:
        proof = await self._second_factor.proves(account, code)
        if proof is CodeProof.RECOVERY_CODE:
            await self._record(EventKind.ACCOUNT_CHANGED, text("event.recovery_code_used", who=account.username))
        return proof is not CodeProof.NONE

    def _hold_off(self, what: str, *throttles: tuple[Throttle, Hashable]) -> None:
        now = self._clock.monotonic()
        wait = max(throttle.wait(key, now=now) for throttle, key in throttles)
        if wait > 0:
            seconds = str(math.ceil(wait))
            raise RequestRefused(
                429,
                text(f"refused.too_many_refused.{what}", seconds=str(seconds)),
                headers={"Retry-After": str(seconds)},
            )

    async def _record_refusal(self, username: str, address: str, what: str, *, known: bool) -> None:
        """Record the refusal. The name of an unknown account is not recorded: it may be a mistyped password."""
        who = username if known else text("actor.unknown")
        data: dict[str, Scalar] = {"address": address, **({"username": username} if known else {})}
        await self._record(EventKind.SIGN_IN_REFUSED, text(f"event.refused.{what}", who=who, address=address), data)

    async def _record(self, kind: EventKind, said: Text, data: Mapping[str, Scalar] = MappingProxyType({})) -> None:
        stamp = self._clock.wall()
        event = Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, text=said, data=data)
        try:
            await self._journal.record(Entry(events=(event,)))
        except StoreError as error:
            # The sign-in or refusal stands even if it cannot be recorded.
            log.warning("not_recorded", what=str(said), error=str(error))


def _admitted_by_site(account: StoredAccount) -> _Admitted:
    pending = bool(account.totp_secret)
    return _Admitted(
        Session(account.username, 0, 0, 0, mfa_pending=pending, role=account.role),
        user={"username": account.username, "mfa_enabled": pending},
        role={"name": account.role, "permissions": [*sorted(account.permissions)]},
        servers=[],
        proven=account.password_hash,
    )


def _admitted_by_central(username: str, admission: CentralAdmission) -> _Admitted:
    session = Session(
        username, 0, 0, 0,
        central=True, mfa_pending=admission.mfa_enabled, role=admission.role_name, permissions=admission.permissions,
    )  # fmt: skip
    return _Admitted(session, admission.user, admission.role, admission.servers, central_token=admission.token)


def _name_of(user: JsonValue) -> str:
    """Return the name in central's user record; "an account of central" if it has none."""
    fields = user if isinstance(user, dict) else {}
    names = (fields.get(name) for name in ("username", "email", "name"))
    return next(
        (name for name in names if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME), "an account of central"
    )
