"""A session that an attacker chose is nobody's."""

from __future__ import annotations

CHOSEN = "A" * 43


async def signed_in(gateway) -> str:
    """Sign in with a cookie and a header that were there before; the session that was given."""
    gateway.client.cookie_jar.clear()
    headers = {"Cookie": f"session={CHOSEN}", "SessionID": CHOSEN}
    body = {"username": "chief", "password": "chief"}
    async with gateway.client.post(f"{gateway.url}/v1/auth/login", json=body, headers=headers) as answer:
        assert answer.status == 200
        return (await answer.json())["session"]


async def opens(gateway, session: str) -> bool:
    gateway.client.cookie_jar.clear()
    headers = {"SessionID": session, "Cookie": f"session={session}"}
    async with gateway.client.post(f"{gateway.url}/v1/device/list", json={}, headers=headers) as answer:
        return (await answer.json())["success"]


async def test_each_sign_in_makes_a_session_of_its_own_whatever_came_with_it(gateway):
    first, second = await signed_in(gateway), await signed_in(gateway)
    assert len({first, second, CHOSEN}) == 3
    assert await opens(gateway, first)
    assert await opens(gateway, second)
    assert not await opens(gateway, CHOSEN)
