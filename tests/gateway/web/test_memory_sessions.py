"""Sessions while the disk takes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.errors import StoreError
from gateway.store import Session
from gateway.web.auth.sessions import MOST_IN_MEMORY, MemorySessions


class FlakySessions:
    """The store's sessions on a disk that can be full."""

    def __init__(self, stored):
        self.stored = stored
        self.full = False

    async def add(self, token, session, *, proven):
        self._check()
        return await self.stored.add(token, session, proven=proven)

    async def replace(self, token, session):
        self._check()
        await self.stored.replace(token, session)

    async def complete(self, token, *, seen_at, expires_at):
        self._check()
        await self.stored.complete(token, seen_at=seen_at, expires_at=expires_at)

    async def get(self, token):
        return await self.stored.get(token)

    async def touch(self, token, *, seen_at, expires_at):
        self._check()
        await self.stored.touch(token, seen_at=seen_at, expires_at=expires_at)

    async def remove(self, token):
        self._check()
        await self.stored.remove(token)

    def _check(self):
        if self.full:
            raise StoreError("site.db: the disk is full; nothing was recorded")


@pytest.fixture
def disk(gateway):
    return FlakySessions(gateway.store.sessions)


def session(at=1):
    return Session("chief", at, at, at + 1000)


async def test_a_session_of_a_full_disk_moves_there_once_it_has_room(disk):
    sessions = MemorySessions(stored=disk)
    disk.full = True
    await sessions.add("t", session())
    assert await disk.get("t") is None
    await sessions.touch("t", seen_at=5, expires_at=2000)
    assert await sessions.get("t") == Session("chief", 1, 5, 2000)
    disk.full = False
    await sessions.touch("t", seen_at=6, expires_at=3000)
    assert await disk.get("t") == Session("chief", 1, 6, 3000)
    assert await sessions.get("t") == Session("chief", 1, 6, 3000)
    await sessions.remove("t")
    assert await sessions.get("t") is None


async def test_signing_out_ends_a_spare_session_at_once(disk):
    sessions = MemorySessions(stored=disk)
    disk.full = True
    await sessions.add("t", session())
    await sessions.remove("t")
    assert await sessions.get("t") is None
    with pytest.raises(StoreError):
        await sessions.remove("of the disk")


async def test_spare_sessions_are_few(disk):
    sessions = MemorySessions(stored=disk)
    disk.full = True
    for number in range(MOST_IN_MEMORY + 1):
        await sessions.add(str(number), session(number))
    assert await sessions.get("0") is None
    assert await sessions.get("1") is not None


async def test_a_second_factor_can_be_proven_on_a_full_disk(disk):
    sessions = MemorySessions(stored=disk)
    await sessions.add("t", replace(session(), mfa_pending=True))
    disk.full = True
    await sessions.complete("t", seen_at=5, expires_at=2000)
    assert await sessions.get("t") == Session("chief", 1, 5, 2000)
    assert (await disk.get("t")).mfa_pending
    disk.full = False
    await sessions.touch("t", seen_at=6, expires_at=3000)
    assert await disk.get("t") == Session("chief", 1, 6, 3000)


async def test_spare_sessions_end_with_a_change_of_their_account(disk):
    sessions = MemorySessions(stored=disk)
    disk.full = True
    await sessions.add("t", session())
    sessions.drop("guard")
    assert await sessions.get("t") is not None
    sessions.drop("chief")
    assert await sessions.get("t") is None
