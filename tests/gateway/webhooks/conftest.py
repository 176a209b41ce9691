"""A real store, a sender on it, and a real HTTP server that receives as each test wants."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

import pytest
from aiohttp import web
from waiting import until

from gateway.domain.announcements import AnnouncedType, PlaceNames
from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import SystemClock
from gateway.store import Entry, Store, Webhook
from gateway.webhooks.client import ReceiverClient
from gateway.webhooks.registry import WebhookRegistry
from gateway.webhooks.sender import WebhookSender

SECRET = "whsec_c2VjcmV0LW9mLXRoZS10ZXN0cy1sb25n"
LOOPBACK = (ip_network("127.0.0.0/8"),)
PLACES = PlaceNames(lanes={"entry": "Main entry"}, devices={101: "Main entry"})


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return json.loads(self.body)["id"]

    @property
    def event_id(self) -> int:
        return json.loads(self.body)["data"]["event_id"]

    def is_signed(self, secret: str = SECRET) -> bool:
        proof = hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(proof, self.headers["X-SERVICE-Signature"])


@dataclass
class Receiver:
    """Answers each request as `answer` says: a status, headers beside it, or None to break the connection off."""

    url: str = ""
    got: list[Received] = field(default_factory=list)
    answer: Callable[[Received, int], int | tuple[int, dict[str, str]] | None] = lambda _got, _count: 204
    wait: float = 0.0
    answered: dict[str, int] = field(default_factory=dict)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        got = Received(request.path, dict(request.headers), await request.read())
        self.got.append(got)
        said = self.answer(got, len(self.got))
        if self.wait:
            await asyncio.sleep(self.wait)  # a slow receiver
        if said is None:
            assert request.transport is not None
            request.transport.abort()
            raise web.HTTPServiceUnavailable
        status, headers = said if isinstance(said, tuple) else (said, {})
        if 200 <= status < 300:
            self.answered[got.id] = self.answered.get(got.id, 0) + 1
        return web.Response(status=status, headers=headers)


@pytest.fixture
async def receiving() -> AsyncIterator[Callable[[], object]]:
    """`await receiving()`: one more receiver on a port of its own."""
    runners: list[web.AppRunner] = []

    async def start(port: int = 0) -> Receiver:
        receiver = Receiver()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", receiver.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        return receiver

    yield start
    for runner in runners:
        await runner.cleanup()


@dataclass
class Site:
    store: Store
    registry: WebhookRegistry
    clock: SystemClock
    _stop: Callable[[], object]

    async def stop(self) -> None:
        """End the sender; the store stays."""
        await self._stop()

    async def happened(self, kind: EventKind = EventKind.ACCESS_GRANTED, description: str = "a card", **data) -> int:
        event = Event(
            kind=kind,
            date_at=self.clock.wall().micros,
            clock_trusted=True,
            text=description,
            device_id=101,
            lane_id="entry",
            data=data,
        )
        return (await self.store.journal.record(Entry(events=(event,)))).event_ids[0]

    async def hook(self, url: str, *types: str) -> Webhook:
        wanted = types or tuple(AnnouncedType)
        return await self.registry.create(url=url, types=wanted, secret=SECRET, by="key:tests")

    async def known(self, webhook: Webhook) -> Webhook:
        found = await self.store.webhooks.get(webhook.id)
        assert found is not None
        assert found.books.balance(), found.books
        return found

    async def settled(self, webhook: Webhook) -> Webhook:
        """Wait until nothing waits for it any more."""

        async def empty() -> bool:
            return (await self.known(webhook)).books.waiting == 0

        await until(empty)
        return await self.known(webhook)


@pytest.fixture
def opened() -> Callable[..., object]:
    """`async with opened(folder) as site`: a store with a sender; time between tries passes 100,000 times as fast."""

    @asynccontextmanager
    async def opening(folder: Path, *, pace=lambda seconds: seconds / 100_000, timeout: float = 1.0, clock=None):
        clock = clock or SystemClock()
        store = Store(folder=folder, site_name="North", sends=False, places=PLACES)
        await store.open()
        client = ReceiverClient(allowed=LOOPBACK, timeout_seconds=timeout)
        sender = WebhookSender(webhooks=store.webhooks, client=client, clock=clock, pace=pace, chance=lambda: 0.5)
        loop = asyncio.get_running_loop()
        tending, sending = loop.create_task(store.run()), loop.create_task(sender.run())

        async def stop() -> None:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending

        try:
            yield Site(store, WebhookRegistry(webhooks=store.webhooks, client=client, clock=clock), clock, stop)
        finally:
            await stop()
            tending.cancel()
            with suppress(asyncio.CancelledError):
                await tending
            client.close()
            await store.close()

    return opening


@pytest.fixture
async def site(opened, tmp_path) -> AsyncIterator[Site]:
    async with opened(tmp_path) as opened_site:
        yield opened_site
