"""Sessions in memory while the disk takes no writes, so that a technician can still sign in and see why."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import structlog

from gateway.domain.errors import StoreError
from gateway.store import Session
from gateway.store.accounts.sessions import Sessions as StoredSessions

log = structlog.get_logger(__name__)

MOST_IN_MEMORY = 64


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
