"""Sessions: signing in, proving the second factor, signing out, and whose session a request carries."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from weakref import WeakValueDictionary

import structlog
from aiohttp import web
from pydantic import JsonValue

from gateway.domain.accounts import LONGEST_NAME
from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind, Scalar
from gateway.domain.writes import JsonObject
from gateway.runtime.clock import Clock
from gateway.store import Entry, Session, Store
from gateway.web.auth.accounts import Roster
from gateway.web.auth.callers import COOKIE, NOBODY, Caller, Carrier, carried
from gateway.web.auth.central_sessions import CentralSessions
from gateway.web.auth.central_sign_in import CentralSignIn, Letting
from gateway.web.auth.memory_sessions import SpareSessions
from gateway.web.auth.second_factor import Proof, SecondFactor, recovery_hash
from gateway.web.auth.site_file_accounts import KnownAccount
from gateway.web.auth.throttle import Throttle
from gateway.web.http.errors import RequestRefused
from gateway.web.http.forwarded import counted_as

__all__ = ["COOKIE", "NOBODY", "Caller", "Carrier", "Sessions", "SignedIn"]

log = structlog.get_logger(__name__)

_MINUTE = 60_000_000
_TOUCH_EVERY = _MINUTE
_PENDING_MINUTES = 10
_LAST_SECONDS = 2.0
_MOST_PROVEN = 256
_MOST_USED = 4096
_MOST_WAITING = 16
_LONGEST_TOKEN = 256


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A new session, and what the answer says of its account."""

    caller: Caller
    user: JsonValue
    role: JsonValue
    servers: JsonValue


class Sessions:
    """Signing in and out, and who a request comes from.

    A session ends `idle_minutes` after its last use, `longest_hours` after its begin, with its account or by sign-out.
    One whose second factor is missing ends after 10 minutes. Use is noted on disk at most once a minute. All this is
    by wall time as it was at the start, carried on by the clock that nobody sets: setting the other ends no session.
    """

    def __init__(
        self,
        *,
        store: Store,
        roster: Roster,
        central: CentralSignIn | None,
        central_sessions: CentralSessions,
        clock: Clock,
        idle_minutes: int,
        longest_hours: int,
    ) -> None:
        self._store = store
        self._sessions = SpareSessions(stored=store.sessions)
        self._roster = roster
        self._second_factor = SecondFactor(store=store, clock=clock)
        self._central = central
        self._central_sessions = central_sessions
        self._clock = clock
        self._ahead = clock.wall().micros - int(clock.monotonic() * 1_000_000)
        self._idle = idle_minutes * _MINUTE
        self._longest = longest_hours * 60 * _MINUTE
        self._by_name = Throttle(free=5)
        self._by_address = Throttle(free=100)  # all who share a way out of a site share this
        self._by_code = Throttle(free=5)  # of an account, wherever its codes come from: they are short
        self._used: OrderedDict[str, int] = OrderedDict()
        self._proven: OrderedDict[str, bytes] = OrderedDict()
        self._waiting = 0
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def sign_in(self, *, username: str, password: str, address: str) -> SignedIn:
        """A new session.

        Raises RequestRefused: 404 for wrong credentials, 429 after too many of them, 503 when too many wait.
        """
        host = counted_as(address)
        name = host, username
        # One after the other: tries that are made side by side are not judged before the first of them is counted.
        async with self._turns.setdefault(name, asyncio.Lock()):
            self._held_off("sign-ins", (self._by_name, name), (self._by_address, host))
            signed_in = await self._let_in(username, password)
            if signed_in is not None:
                self._by_name.succeeded(name)
                return signed_in
            now = self._clock.monotonic()
            self._by_name.failed(name, now=now)
            self._by_address.failed(host, now=now)
        known = self._roster.get(username) is not None
        await self._note_refusal(username, address, "Sign-in", known=known)
        raise RequestRefused(404, "username or password not accepted")

    async def adopt(self, answer: JsonObject) -> SignedIn | None:
        """Begin a session for whom central has signed in by an identity provider; None where its answer has none.

        Raises RequestRefused where central's accounts may not sign in at the site.
        """
        if not isinstance(answer.get("session"), str):
            return None
        admission = None if self._central is None else self._central.admitted(answer)
        if self._central is None or admission is None:
            raise RequestRefused(403, "accounts of central may not sign in at this site")
        letting = Letting(
            role_name=admission.role_name,
            permissions=admission.permissions,
            user=admission.user,
            role=admission.role,
            servers=admission.servers,
            mfa_pending=admission.mfa_enabled,
            token=admission.token,
        )
        return await self._let_in_as(self._central, _name_of(admission.user), letting)

    async def prove(self, caller: Caller, code: str, *, address: str) -> None:
        """Prove the second factor of a session. The code that proved it may be sent again.

        Raises RequestRefused: 400 for a wrong code, 429 after too many of them, 503 while central cannot judge it.
        """
        if not caller.mfa_pending:
            account = None if caller.central else self._roster.get(caller.username)
            if self._proven.get(caller.token) == recovery_hash(code):
                return  # the answer to it was lost, and its client sends it again
            proven = caller.central or (account is not None and account.totp_secret)
            raise RequestRefused(400, "no code is awaited" if proven else "this account has no second factor")
        self._held_off("codes", (self._by_code, caller.username))
        # Counted before it is judged: tries that are made side by side are not judged for free.
        self._by_code.failed(caller.username, now=self._clock.monotonic())
        try:
            proven = await self._proves(caller, code)
        except (RequestRefused, StoreError):
            self._by_code.forgive(caller.username)
            raise
        if not proven:
            await self._note_refusal(caller.username, address, "The second factor", known=True)
            doubtful = self._second_factor.doubtful and not caller.central
            unset = ": the gateway's clock is not set; use a recovery code" if doubtful else ""
            raise RequestRefused(400, f"the code is not accepted{unset}")
        self._by_code.succeeded(caller.username)
        self._proven[caller.token] = recovery_hash(code)
        if len(self._proven) > _MOST_PROVEN:
            self._proven.popitem(last=False)
        now = self._now()
        self._use(caller.token, now)
        await self._sessions.complete(caller.token, seen_at=now, expires_at=now + self._life())

    async def sign_out(self, caller: Caller) -> None:
        """The session is over; its token is worth nothing from now on, and central's is ended."""
        await self._sessions.remove(caller.token)
        await self._end_at_central(caller.token)

    async def caller(self, request: web.Request) -> Caller:
        """Who a request comes from; NOBODY without a live session. The first carrier present counts, alone."""
        carrier, token = carried(request)
        if carrier is Carrier.NONE or not token.isascii() or not 0 < len(token) <= _LONGEST_TOKEN:
            return NOBODY
        return await self.refreshed(Caller(token=token, carrier=carrier))

    async def refreshed(self, caller: Caller) -> Caller:
        """The caller as of now, with the session's use noted; NOBODY once the session is over."""
        session = await self._sessions.get(caller.token)
        now = self._now()
        if session is None or self._is_over(session, now):
            return NOBODY
        if now - self._used.get(caller.token, now) > self._idle:
            return NOBODY  # the disk knows its last use only by the minute
        found = self._of(session, caller)
        if found.signed_in and not session.mfa_pending:
            self._use(caller.token, now)
        if found.signed_in and not session.mfa_pending and abs(now - session.last_seen_at) >= _TOUCH_EVERY:
            expires_at = min(now + self._life(), session.created_at + self._longest)
            try:
                await self._sessions.touch(caller.token, seen_at=now, expires_at=expires_at)
            except StoreError as error:
                # Reading must stay possible on a full disk; the session then ends at its old time.
                log.warning("session_not_touched", error=str(error))
        return found

    async def ended_elsewhere(self) -> None:
        """End at central the sessions that have ended here without a sign-out: by time, or with their account."""
        now = self._now()
        for token in self._central_sessions.of():
            session = await self._sessions.get(token)
            if session is None or self._is_over(session, now):
                await self._end_at_central(token)

    async def end_all_at_central(self) -> None:
        """The gateway stops: central's tokens are known to nobody from now on. Takes at most 2 s."""
        try:
            async with asyncio.timeout(_LAST_SECONDS), asyncio.TaskGroup() as group:
                for token in self._central_sessions.of():
                    group.create_task(self._end_at_central(token))
        except TimeoutError:
            log.info("sessions_left_at_central")  # they end by central's own time

    def changed(self, username: str) -> None:
        """The account was changed or removed: what is left of its sessions in memory is over."""
        self._sessions.drop(username)

    def _use(self, token: str, now: int) -> None:
        self._used[token] = now
        self._used.move_to_end(token)
        if len(self._used) > _MOST_USED:
            self._used.popitem(last=False)

    def _now(self) -> int:
        return self._ahead + int(self._clock.monotonic() * 1_000_000)

    def _life(self) -> int:
        """Return how long a session lives on the disk without a further use; the last minute of use may be missing."""
        return min(self._idle + _TOUCH_EVERY, self._longest)

    def _is_over(self, session: Session, now: int) -> bool:
        """One that has longer to live than any may was begun by a clock that was set back before this start."""
        return not 0 < session.expires_at - now <= self._longest

    def _of(self, session: Session, caller: Caller) -> Caller:
        role, permissions = session.role, session.permissions
        if not session.central:
            account = self._roster.get(session.username)
            if account is None or account.disabled:
                return NOBODY
            role, permissions = account.role, account.permissions
        return Caller(
            username=session.username,
            permissions=frozenset() if session.mfa_pending else permissions,
            token=caller.token,
            carrier=caller.carrier,
            role=role,
            central=session.central,
            mfa_pending=session.mfa_pending,
        )

    async def _let_in(self, username: str, password: str) -> SignedIn | None:
        if self._central is not None and not await self._roster.has(username):
            return await self._let_in_by_central(self._central, username, password)
        account = await self._verified(username, password)
        if account is None:
            return None
        pending = bool(account.totp_secret)
        caller = await self._begin(
            Session(account.username, 0, 0, 0, mfa_pending=pending, role=account.role),
            permissions=account.permissions,
            proven=account.password_hash if account.stored else "",
        )
        return (
            None
            if caller is None
            else SignedIn(
                caller,
                user={"username": account.username, "mfa_enabled": pending},
                role={"name": account.role, "permissions": [*sorted(account.permissions)]},
                servers=[],
            )
        )

    async def _let_in_by_central(self, central: CentralSignIn, username: str, password: str) -> SignedIn | None:
        letting = await central.let_in(username, password)
        return None if letting is None else await self._let_in_as(central, username, letting)

    async def _let_in_as(self, central: CentralSignIn, username: str, letting: Letting) -> SignedIn | None:
        session = Session(
            username, 0, 0, 0,
            central=True, mfa_pending=letting.mfa_pending, role=letting.role_name, permissions=letting.permissions,
        )  # fmt: skip
        caller = await self._begin(session, permissions=letting.permissions)
        if caller is not None and letting.token:
            dropped = self._central_sessions.keep(caller.token, letting.token)
            if dropped is not None:
                await central.end(dropped)
        return None if caller is None else SignedIn(caller, letting.user, letting.role, letting.servers)

    async def _begin(self, session: Session, *, permissions: frozenset[str], proven: str = "") -> Caller | None:
        """A session from now on. None when its account was changed since its password was `proven`."""
        token, now = secrets.token_urlsafe(32), self._now()
        life = min(self._idle, _PENDING_MINUTES * _MINUTE) if session.mfa_pending else self._life()
        session = replace(session, created_at=now, last_seen_at=now, expires_at=now + life)
        if not await self._sessions.add(token, session, proven=proven):
            return None
        self._use(token, now)
        return Caller(
            username=session.username,
            permissions=frozenset() if session.mfa_pending else permissions,
            token=token,
            carrier=Carrier.SESSION_ID,
            role=session.role,
            central=session.central,
            mfa_pending=session.mfa_pending,
        )

    async def _proves(self, caller: Caller, code: str) -> bool:
        if not caller.central:
            account = self._roster.get(caller.username)
            return account is not None and await self._proves_here(account, code)
        token = self._central_sessions.pending(caller)
        if self._central is None or token is None:
            await self._sessions.remove(caller.token)
            raise RequestRefused(400, "the gateway was started anew; sign in again")
        return await self._central.prove(token, code)

    async def _proves_here(self, account: KnownAccount, code: str) -> bool:
        proof = await self._second_factor.proves(account, code)
        if proof is Proof.RECOVERY_CODE:
            await self._note(EventKind.ACCOUNT_CHANGED, f"A recovery code of {account.username} was used.")
        return proof is not Proof.NONE

    async def _verified(self, username: str, password: str) -> KnownAccount | None:
        if self._waiting >= _MOST_WAITING:
            raise RequestRefused(503, "too many sign-ins at once; try again", headers={"Retry-After": "2"})
        self._waiting += 1
        try:
            return await self._roster.verified(username, password)
        finally:
            self._waiting -= 1

    async def _end_at_central(self, token: str) -> None:
        at_central = self._central_sessions.take(token)
        if at_central is not None and self._central is not None:
            await self._central.end(at_central)

    def _held_off(self, what: str, *throttles: tuple[Throttle, Hashable]) -> None:
        now = self._clock.monotonic()
        wait = max(throttle.wait(key, now=now) for throttle, key in throttles)
        if wait > 0:
            seconds = math.ceil(wait)
            raise RequestRefused(
                429, f"too many refused {what}; try again in {seconds} s", headers={"Retry-After": str(seconds)}
            )

    async def _note_refusal(self, username: str, address: str, what: str, *, known: bool) -> None:
        """Record the refusal. A name that is no account is not written down: it may be a mistyped password."""
        who = username if known else "an unknown user"
        data: dict[str, Scalar] = {"address": address, **({"username": username} if known else {})}
        await self._note(EventKind.SIGN_IN_REFUSED, f"{what} of {who} from {address} was refused.", data)

    async def _note(self, kind: EventKind, text: str, data: Mapping[str, Scalar] = MappingProxyType({})) -> None:
        stamp = self._clock.wall()
        event = Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, description=text, data=data)
        try:
            await self._store.journal.record(Entry(events=(event,)))
        except StoreError as error:
            # What happened stands whether or not it can be written down.
            log.warning("not_recorded", what=text, error=str(error))


def _name_of(user: JsonValue) -> str:
    """Return the name of a user of central's as far as its record tells one."""
    fields = user if isinstance(user, dict) else {}
    names = (fields.get(name) for name in ("username", "email", "name"))
    return next(
        (name for name in names if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME), "an account of central"
    )
