"""Sessions while the disk takes nothing: a technician must be able to sign in just then, to see why."""

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
    """The store's sessions, and in memory those few that it could not take; the oldest of these goes first.

    A spare one moves to disk when it is used after the disk takes records again, and does not survive a restart before.
    """

    def __init__(self, *, stored: StoredSessions) -> None:
        self._stored = stored
        self._spare: OrderedDict[str, Session] = OrderedDict()

    async def add(self, token: str, session: Session, *, proven: str = "") -> bool:
        """Remember a new session; False when the password of its account was changed since it was `proven`."""
        try:
            return await self._stored.add(token, session, proven=proven)
        except StoreError as error:
            log.warning("session_in_memory", error=str(error))
            self._spare[token] = session
            if len(self._spare) > MOST_IN_MEMORY:
                self._spare.popitem(last=False)
            return True

    async def get(self, token: str) -> Session | None:
        """The session of a token, expired or not, or None. Raises StoreError for one that only the disk may have."""
        return self._spare.get(token) or await self._stored.get(token)

    async def touch(self, token: str, *, seen_at: int, expires_at: int) -> None:
        """The session was used; it lives on until `expires_at`. Raises StoreError for one on disk."""
        spare = self._spare.get(token)
        if spare is None:
            await self._stored.touch(token, seen_at=seen_at, expires_at=expires_at)
            return
        await self._settle(token, replace(spare, last_seen_at=seen_at, expires_at=expires_at))

    async def complete(self, token: str, *, seen_at: int, expires_at: int) -> None:
        """The session's second factor is proven. Never raises: one that the disk cannot change lives in memory."""
        spare = self._spare.get(token)
        if spare is None:
            try:
                await self._stored.complete(token, seen_at=seen_at, expires_at=expires_at)
            except StoreError as error:
                log.warning("session_in_memory", error=str(error))
                spare = await self._stored.get(token)
        if spare is not None:
            whole = replace(spare, mfa_pending=False, last_seen_at=seen_at, expires_at=expires_at)
            await self._settle(token, whole)

    async def remove(self, token: str) -> None:
        """The session is over. Raises StoreError for one on disk."""
        if self._spare.pop(token, None) is None:
            await self._stored.remove(token)
            return
        try:
            await self._stored.remove(token)  # as it was before its second factor was proven
        except StoreError as error:
            log.warning("session_left_on_disk", error=str(error))

    def drop(self, username: str) -> None:
        """The spare sessions of an account are over; those on disk ended with the change that is the reason."""
        for token in [token for token, session in self._spare.items() if session.username == username]:
            del self._spare[token]

    async def _settle(self, token: str, spare: Session) -> None:
        """Keep a spare session, on disk if that takes it by now."""
        self._spare[token] = spare
        try:
            await self._stored.replace(token, spare)
        except StoreError:
            return  # it stays here, and is tried again at its next use
        self._spare.pop(token, None)
