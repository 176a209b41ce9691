from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import at_work
import pytest
from fresh_ids import fresh_ids
from waiting import until
from wired import central_writes, down_sync, outbox_sender

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.central.pull.pull import DownSync
from gateway.central.push.outbox import OutboxSender
from gateway.central.push.writes import CentralWrites
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import Store
from simulation.far_ends.central import Central, CentralAccount

SOON = Backoff(first=0.001, longest=0.005)


@pytest.fixture
async def central() -> AsyncIterator[Central]:
    guard = CentralAccount("guard", "guard", mfa_secret="JBSWY3DPEHPK3PXP")
    devices = {number: f"Device {number}" for number in range(101, 104)}
    async with at_work.serving_central(
        CentralAccount("gateway", "right horse"), guard, devices=devices, cameras={201: "Entry camera"}, cards=40
    ) as service:
        yield service


@pytest.fixture
async def connect(central: Central) -> AsyncIterator[Callable[..., CentralClient]]:
    """Makes clients of the simulated central; they are closed at the end."""
    made: list[CentralClient] = []

    def make(**changed) -> CentralClient:
        whose = {"username": "gateway", "password": "right horse"}
        names = ("username", "password", "totp_secret", "used_codes")
        whose |= {name: changed.pop(name) for name in names if name in changed}
        account = GatewayAccount(**whose)
        wanted = {"url": central.url, "account": account, "clock": SystemClock(), "timeout_seconds": 2.0}
        made.append(CentralClient(**(wanted | changed)))
        return made[-1]

    yield make
    for client in made:
        await client.close()


@pytest.fixture
def client(connect: Callable[..., CentralClient]) -> CentralClient:
    return connect()


@pytest.fixture
async def store(tmp_path) -> AsyncIterator[Store]:
    """An open store whose writers run."""
    async with at_work.opened_store(tmp_path, site_name="Test site", sends=True) as opened:
        yield opened


@pytest.fixture
def running() -> Callable[..., contextlib.AbstractAsyncContextManager[None]]:
    """Runs something that never ends, for as long as the context lasts."""
    return at_work.running


@pytest.fixture
def writes(client: CentralClient, store: Store) -> CentralWrites:
    return central_writes(client=client, store=store, clock=SystemClock())


@pytest.fixture
def sender(client: CentralClient, store: Store) -> OutboxSender:
    """Tries again at once, and takes a write for over as soon as its answer is lost."""
    return outbox_sender(
        client=client,
        newest=fresh_ids(client),
        store=store,
        clock=SystemClock(),
        row_backoff=SOON,
        away_backoff=SOON,
        may_take=0,
    )


@pytest.fixture
def go_up(sender: OutboxSender, store: Store) -> Callable[[], Awaitable[None]]:
    """Send until nothing waits."""

    async def sent() -> bool:
        await sender.send_due()
        return not (await store.outbox.books()).waiting

    async def send() -> None:
        await until(sent)

    return send


@pytest.fixture
async def down(client: CentralClient, store: Store) -> DownSync:
    """Everything was pulled once."""
    down = down_sync(client=client, store=store, clock=SystemClock())
    await down.pull()
    return down
