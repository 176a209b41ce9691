from __future__ import annotations

import pytest

from gateway.domain.errors import StoreError
from gateway.store import Session


async def test_a_session_lives_through_a_restart_until_it_is_removed(opened, tmp_path):
    made = Session("demo", 1, 1, 100)
    async with opened(tmp_path) as store:
        await store.sessions.add("token", made)
    async with opened(tmp_path) as store:
        assert await store.sessions.get("token") == made
        await store.sessions.touch("token", seen_at=5, expires_at=200)
        assert await store.sessions.get("token") == Session("demo", 1, 5, 200)
        await store.sessions.remove("token")
        assert await store.sessions.get("token") is None
        await store.sessions.touch("token", seen_at=6, expires_at=300)
        assert await store.sessions.get("token") is None


async def test_expired_sessions_go_when_a_new_one_comes(store):
    await store.sessions.add("old", Session("demo", 1, 1, 100))
    await store.sessions.add("new", Session("demo", 100, 100, 200))
    assert await store.sessions.get("old") is None
    assert await store.sessions.get("new") is not None


async def test_a_token_belongs_to_one_session(store):
    await store.sessions.add("token", Session("demo", 1, 1, 100))
    with pytest.raises(StoreError):
        await store.sessions.add("token", Session("other", 1, 1, 100))
    assert (await store.sessions.get("token")).username == "demo"


async def test_the_token_itself_is_nowhere_on_disk(opened, tmp_path):
    async with opened(tmp_path) as store:
        await store.sessions.add("very-secret-token", Session("demo", 1, 1, 100))
        assert not any(b"very-secret-token" in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
