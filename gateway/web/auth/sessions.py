"""Sessions: their beginning and end, and the caller of each request.

While the disk takes no writes, some are kept in memory, so that a technician can still sign in and see why.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from dataclasses import replace

import structlog
from aiohttp import web

from gateway.domain.errors import StoreError
from gateway.runtime.clock import Clock
from gateway.store import Session
from gateway.store.accounts.sessions import SessionRecords as StoredSessions
from gateway.web.auth.accounts import Roster
from gateway.web.auth.callers import NOBODY, Caller, SessionCarrier, carried
from gateway.web.auth.central_sign_in import CentralAccounts

log = structlog.get_logger(__name__)

_MINUTE = 60_000_000
_TOUCH_EVERY = _MINUTE
_PENDING_MINUTES = 10
_MOST_USED = 4096
_LONGEST_TOKEN = 256
MOST_IN_MEMORY = 64

MOST_KEPT = 1024
_LAST_SECONDS = 2.0


class MemorySessions:
    """The store's sessions, and up to 64 in memory that the store could not write; the oldest of these ends first.

    A session in memory moves to disk at its first use after the disk takes writes again. A restart before that ends it.
    """

    def __init__(self, *, stored: StoredSessions) -> None:
        self._stored = stored
        self._in_memory: OrderedDict[str, Session] = OrderedDict()

    async def add(self, token: str, session: Session, *, proven: str = "") -> bool:
        """Keep a new session; False when the account's password is no longer the one of the hash `proven`."""
        try:
            return await self._stored.add(token, session, proven=proven)
        except StoreError as error:
            log.warning("session_in_memory", error=str(error))
            self._in_memory[token] = session
            if len(self._in_memory) > MOST_IN_MEMORY:
                self._in_memory.popitem(last=False)
            return True

    async def get(self, token: str) -> Session | None:
        """Return a token's session, expired or not; None for an unknown token. Raises StoreError if the disk fails."""
        return self._in_memory.get(token) or await self._stored.get(token)

    async def touch(self, token: str, *, seen_at: int, expires_at: int) -> None:
        """Note the session's last use and its new expiry. Raises StoreError if it is on disk only and disk fails."""
        session = self._in_memory.get(token)
        if session is None:
            await self._stored.touch(token, seen_at=seen_at, expires_at=expires_at)
            return
        await self._settle(token, replace(session, last_seen_at=seen_at, expires_at=expires_at))

    async def complete(self, token: str, *, seen_at: int, expires_at: int) -> None:
        """Note that the second factor is proven. If the disk takes no writes, the session goes on in memory."""
        session = self._in_memory.get(token)
        if session is None:
            try:
                await self._stored.complete(token, seen_at=seen_at, expires_at=expires_at)
            except StoreError as error:
                log.warning("session_in_memory", error=str(error))
                session = await self._stored.get(token)
        if session is not None:
            whole = replace(session, mfa_pending=False, last_seen_at=seen_at, expires_at=expires_at)
            await self._settle(token, whole)

    async def remove(self, token: str) -> None:
        """End the session. Raises StoreError if it is on disk only and cannot be removed."""
        if self._in_memory.pop(token, None) is None:
            await self._stored.remove(token)
            return
        try:
            await self._stored.remove(token)  # an older copy, from before its second factor was proven
        except StoreError as error:
            log.warning("session_left_on_disk", error=str(error))

    def drop(self, username: str) -> None:
        """End an account's sessions in memory. The change of the account has already ended those on disk."""
        for token in [token for token, session in self._in_memory.items() if session.username == username]:
            del self._in_memory[token]

    async def _settle(self, token: str, session: Session) -> None:
        """Move the session to disk, or keep it in memory if the disk still takes no writes."""
        self._in_memory[token] = session
        try:
            await self._stored.replace(token, session)
        except StoreError:
            return  # it stays here, and is tried again at its next use
        self._in_memory.pop(token, None)


class CentralSessions:
    """Central's token for each session whose account signed in at central.

    No token outlives the process: after a restart, a session is good only for what the gateway itself answers.
    """

    def __init__(self, *, central: CentralAccounts | None) -> None:
        """`central`: None where accounts of central may not sign in."""
        self._central = central
        self._tokens: OrderedDict[str, str] = OrderedDict()

    def token_of(self, caller: Caller) -> str | None:
        """Return the token of the caller's own session at central.

        None for an account of the site, and for an account of central (`caller.central`) that has to sign in again: it
        signed in while central was offline, the gateway was restarted since, or central ended that session.
        """
        return self._tokens.get(caller.token) if caller.central and not caller.mfa_pending else None

    def pending(self, caller: Caller) -> str | None:
        """Return central's token of a session whose second factor is still to be proven there."""
        return self._tokens.get(caller.token) if caller.central and caller.mfa_pending else None

    def sessions(self) -> tuple[str, ...]:
        """Return the tokens of the gateway's sessions that have a session at central."""
        return tuple(self._tokens)

    def lost(self, caller: Caller) -> None:
        """Forget a session that central has ended. Its caller has to sign in again."""
        self._tokens.pop(caller.token, None)

    async def keep(self, session: str, token: str) -> None:
        """Remember central's token for a session of the gateway; end the oldest when there are too many."""
        self._tokens[session] = token
        if len(self._tokens) > MOST_KEPT:
            await self.end(next(iter(self._tokens)))

    async def end(self, session: str) -> None:
        """End the session at central that belongs to this session of the gateway, if any. Takes at most 2 s."""
        token = self._tokens.pop(session, None)
        if token is not None and self._central is not None:
            await self._central.sign_out(token)

    async def end_all(self) -> None:
        """End every session at central and forget their tokens, as the gateway stops. Takes at most 2 s."""
        try:
            async with asyncio.timeout(_LAST_SECONDS), asyncio.TaskGroup() as group:
                for session in self.sessions():
                    group.create_task(self.end(session))
        except TimeoutError:
            log.info("sessions_left_at_central")  # they end by central's own time


class Sessions:
    """The gateway's sessions.

    A session ends `idle_minutes` after its last use, `longest_hours` after its start, with its account, or by sign-out.
    A session whose second factor is missing ends after 10 minutes. Its use is written to disk at most once a minute.
    Times are the wall time of the gateway's start plus monotonic time, so that a step of the clock ends no session.
    """

    def __init__(
        self,
        *,
        kept: MemorySessions,
        roster: Roster,
        central_sessions: CentralSessions,
        clock: Clock,
        idle_minutes: int,
        longest_hours: int,
    ) -> None:
        self._kept = kept
        self._roster = roster
        self._central_sessions = central_sessions
        self._clock = clock
        self._ahead = clock.wall().micros - int(clock.monotonic() * 1_000_000)
        self._idle = idle_minutes * _MINUTE
        self._longest = longest_hours * 60 * _MINUTE
        self._used: OrderedDict[str, int] = OrderedDict()

    async def begin(self, session: Session, *, proven: str = "") -> Caller | None:
        """Begin a session now; None when its account's password is no longer the one of the hash `proven`."""
        token, now = secrets.token_urlsafe(32), self._now()
        life = min(self._idle, _PENDING_MINUTES * _MINUTE) if session.mfa_pending else self._life()
        session = replace(session, created_at=now, last_seen_at=now, expires_at=now + life)
        if not await self._kept.add(token, session, proven=proven):
            return None
        self._use(token, now)
        caller = self._caller_of(session, token, SessionCarrier.SESSION_ID)
        return caller if caller.signed_in else None

    async def complete(self, caller: Caller) -> None:
        """Note that the session's second factor is proven."""
        now = self._now()
        self._use(caller.token, now)
        await self._kept.complete(caller.token, seen_at=now, expires_at=now + self._life())

    async def sign_out(self, caller: Caller) -> None:
        """End the session, and the one at central that belongs to it."""
        await self._kept.remove(caller.token)
        await self._central_sessions.end(caller.token)

    async def caller(self, request: web.Request) -> Caller:
        """Return the caller of a request; NOBODY without a live session. Only the first carrier (`carried`) counts."""
        carrier, token = carried(request)
        if carrier is SessionCarrier.NONE or not token.isascii() or not 0 < len(token) <= _LONGEST_TOKEN:
            return NOBODY
        return await self._live(token, carrier)

    async def refreshed(self, caller: Caller) -> Caller:
        """Return the caller as of now, and note the session's use; NOBODY once the session is over."""
        return caller if caller.carrier is SessionCarrier.LOCAL else await self._live(caller.token, caller.carrier)

    async def _live(self, token: str, carrier: SessionCarrier) -> Caller:
        session = await self._kept.get(token)
        now = self._now()
        if session is None or self._is_over(session, now):
            return NOBODY
        if now - self._used.get(token, now) > self._idle:
            return NOBODY  # `expires_at` on disk has up to a minute to spare
        found = self._caller_of(session, token, carrier)
        if found.signed_in and not session.mfa_pending:
            self._use(token, now)
            if abs(now - session.last_seen_at) >= _TOUCH_EVERY:
                await self._touch(token, session, now)
        return found

    async def ended_elsewhere(self) -> None:
        """End at central the sessions that have ended here without a sign-out: they expired, or their account went."""
        now = self._now()
        for token in self._central_sessions.sessions():
            session = await self._kept.get(token)
            if session is None or self._is_over(session, now):
                await self._central_sessions.end(token)

    def changed(self, username: str) -> None:
        """End the sessions in memory of an account that was changed or removed."""
        self._kept.drop(username)

    async def _touch(self, token: str, session: Session, now: int) -> None:
        expires_at = min(now + self._life(), session.created_at + self._longest)
        try:
            await self._kept.touch(token, seen_at=now, expires_at=expires_at)
        except StoreError as error:
            # Reading must stay possible on a full disk; the session keeps its earlier expiry.
            log.warning("session_not_touched", error=str(error))

    def _use(self, token: str, now: int) -> None:
        self._used[token] = now
        self._used.move_to_end(token)
        if len(self._used) > _MOST_USED:
            self._used.popitem(last=False)

    def _now(self) -> int:
        return self._ahead + int(self._clock.monotonic() * 1_000_000)

    def _life(self) -> int:
        """Return how long a session on disk lives without further use, in microseconds.

        It is a minute more than `idle_minutes`, because a use in the last minute may not be on disk.
        """
        return min(self._idle + _TOUCH_EVERY, self._longest)

    def _is_over(self, session: Session, now: int) -> bool:
        # A session that expires later than any may was begun before a restart at which the clock was set back.
        return not 0 < session.expires_at - now <= self._longest

    def _caller_of(self, session: Session, token: str, carrier: SessionCarrier) -> Caller:
        """Return the session's caller with its present permissions; NOBODY if its account is gone or disabled."""
        role, permissions = session.role, session.permissions
        if not session.central:
            account = self._roster.get(session.username)
            if account is None or account.disabled:
                return NOBODY
            role, permissions = account.role, account.permissions
        return Caller(
            username=session.username,
            permissions=frozenset() if session.mfa_pending else permissions,
            token=token,
            carrier=carrier,
            role=role,
            central=session.central,
            mfa_pending=session.mfa_pending,
        )
