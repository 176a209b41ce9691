"""A gateway that relays to a central over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from at_work import serving_central

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.central.relay import CentralRelay, RelayLimits
from gateway.domain.accounts import CentralAdmission
from gateway.domain.errors import CentralRefused
from gateway.domain.writes import JsonObject
from gateway.runtime.clock import SystemClock
from gateway.site.central_sections import CentralAccountsSection, CentralSection
from simulation.far_ends.central import Central, CentralAccount
from tests.gateway.web.setups.running_gateway import Gateway, OpenGateway
from tests.gateway.web.setups.site import SITE


class Letter:
    """Central's accounts, asked over its own interface: each has its name for a password."""

    def __init__(self, central: Central) -> None:
        self._central = central

    async def sign_in(self, username: str, password: str) -> CentralAdmission:
        session = self._central.sessions.sign_in(username, password)
        if session is None:
            raise CentralRefused("no")
        return CentralAdmission(
            token=session.token, mfa_enabled=not session.complete, role_name="of central",
            permissions=session.account.permissions, user={}, role={}, servers=[],
        )  # fmt: skip

    def admitted(self, answer: JsonObject) -> CentralAdmission | None:
        raise AssertionError("nobody signs in by a provider here")

    async def prove(self, token: str, code: str) -> None:
        raise CentralRefused("no")

    async def sign_out(self, token: str) -> None:
        self._central.sessions.end(token)


CENTRAL_ACCOUNTS = (
    CentralAccount("gateway", "gateway"),
    CentralAccount("boss", "boss"),
    CentralAccount("clerk", "clerk", frozenset({"can_view_companies"})),
    CentralAccount("careful", "careful", mfa_secret="JBSWY3DPEHPK3PXP"),
)


@pytest.fixture
def central_accounts() -> tuple[CentralAccount, ...]:
    """Each has its name for a password."""
    return CENTRAL_ACCOUNTS


@pytest.fixture
async def far_central(central_accounts: tuple[CentralAccount, ...]) -> AsyncIterator[Central]:
    """A central that runs."""
    records = {"devices": {101: "Gate"}, "cameras": {201: "Camera"}, "cards": 3}
    async with serving_central(*central_accounts, **records) as service:
        yield service


@pytest.fixture
def relayed(open_gateway: OpenGateway, far_central: Central) -> OpenGateway:
    """Opens a gateway whose way to central is real; its accounts are that central's, wherever the way leads."""

    @asynccontextmanager
    async def opened(url: str = "", limits: RelayLimits | None = None) -> AsyncIterator[Gateway]:
        url = url or far_central.url
        client = CentralClient(url=url, account=GatewayAccount("gateway", "gateway"), clock=SystemClock())
        relay = CentralRelay(client=client, url=url, limits=limits)
        running = asyncio.get_running_loop().create_task(relay.run())
        site = SITE.model_copy(
            update={
                "central": CentralSection(
                    url=far_central.url,
                    username="gateway",
                    password="gateway",
                    accounts=CentralAccountsSection(remember_days=0),
                )
            }
        )
        try:
            async with open_gateway(relay=relay, central_accounts=Letter(far_central), site=site) as gateway:
                yield gateway
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.close()

    return opened
