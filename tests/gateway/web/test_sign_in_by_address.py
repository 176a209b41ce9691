"""Sign-ins from one address are slowed down however many names are tried; others are not."""

from __future__ import annotations


async def test_guesses_of_many_names_from_one_address_are_slowed_down(gateway):
    async def guess(name, password="wrong"):
        body = {"username": name, "password": password}
        async with gateway.client.post(f"{gateway.url}/v1/auth/login", json=body) as answer:
            return answer.status

    statuses = [await guess(f"guess-{number}") for number in range(101)]
    assert set(statuses) == {404}
    assert await guess("one-more") == 429
    assert await guess("chief", "chief") == 429, "the right password waits too"
    gateway.clock.pushed += 60
    assert await guess("chief", "chief") == 200
