from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from at_work import serving_central

from simulation.far_ends.central import Central, CentralAccount

ACCOUNTS = (
    CentralAccount("gateway", "right horse"),
    CentralAccount("viewer", "view", permissions=frozenset({"can_view_devices"})),
    CentralAccount("guard", "guard", mfa_secret="JBSWY3DPEHPK3PXP"),
)

Ask = Callable[..., Awaitable[tuple[int, dict[str, Any]]]]


@pytest.fixture
async def central() -> AsyncIterator[Central]:
    devices = {number: f"Device {number}" for number in range(101, 131)}
    cameras = {201: "Entry camera", 202: "Exit camera"}
    async with serving_central(*ACCOUNTS, devices=devices, cameras=cameras, cards=60) as service:
        yield service


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session


@pytest.fixture
async def ask(central: Central, http: aiohttp.ClientSession) -> Ask:
    """Sends a request with the session of `gateway`, unless headers are given; answers status and body."""
    async with http.post(
        central.url + "/v1/auth/login", json={"username": "gateway", "password": "right horse"}
    ) as answer:
        token = (await answer.json())["session"]

    async def send(
        method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, raw: bytes | None = None
    ) -> tuple[int, dict[str, Any]]:
        content = {"data": raw} if raw is not None else {"json": body}
        async with http.request(
            method, central.url + path, headers=headers if headers is not None else {"SessionID": token}, **content
        ) as answer:
            return answer.status, await answer.json()

    return send
