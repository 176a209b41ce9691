"""From a card notice to the refusal of the revoked card, at a gateway that runs as it is installed.

Central, made for this from the interface document alone, answers each request after 100 ms and lists 5,000 cards in ten
pages. The refusal is what the gateway itself says of a card that is tried at its lane, asked all the time. Notices go
over a real server: at rest, while a pull is on its way, two that cross, one after another that was lost, and after a
time without the server.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import nats
import pytest
from aiohttp import web
from figures import show
from free_ports import free_port
from nats_server import NatsServer, nats_server
from relay import Relay
from running_gateway import PASSWORD, SITE, RunningGateway, give_account
from waiting import until

from gateway.fleet.line import FleetLine
from gateway.fleet.operator import prepare

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(400)]

CARDS, PAGE = 5000, 500
LATENCY = 0.1
ROUNDS = 6
AIM_SECONDS = 1.0
SUBJECT = "cards.north"


class Central:
    """Central's cards, and nothing else. `held` makes the pages of the list wait."""

    def __init__(self) -> None:
        self.cards = {
            number: {"id": number, "number": str(number), "status": "active"} for number in range(1, CARDS + 1)
        }
        self.pages = 0
        self.held = asyncio.Event()
        self.held.set()

    def revoke(self, number: int) -> None:
        """Take a card's right away."""
        self.cards[number]["status"] = "suspended"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer an operation."""
        asked = await request.json() if request.can_read_body else {}
        await asyncio.sleep(LATENCY)
        match request.method, request.path:
            case "POST", "/v1/auth/login":
                user = {"mfa_enabled": False}
                return web.json_response({"success": True, "session": "s", "user": user, "role": {}, "servers": []})
            case "POST", "/v1/access":
                card = self.cards.get(asked["id"])
                found = {"success": bool(card), "access_card": card, "error": None if card else "not found"}
                return web.json_response(found, status=200 if card else 404)
            case "POST", "/v1/access/list":
                first = (asked["page"] - 1) * asked["page_limit"]
                page = [
                    dict(card) for card in list(self.cards.values())[first : first + min(asked["page_limit"], PAGE)]
                ]
                self.pages += 1
                await self.held.wait()
                return web.json_response({"success": True, "access_cards": page, "count": CARDS})
            case "POST", "/v1/device/list":
                return web.json_response({"success": True, "devices": [], "count": 0})
            case "POST", "/v1/camera/list":
                return web.json_response({"success": True, "cameras": [], "count": 0})
        return web.json_response({"success": False, "error": "no such operation"}, status=404)

    @asynccontextmanager
    async def serving(self):
        """Listen while the context lasts; yields the address."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            self.held.set()
            await runner.cleanup()


class Lane:
    """The gateway's lane, at which cards are tried."""

    def __init__(self, http: aiohttp.ClientSession, port: int) -> None:
        self._http = http
        self._base = f"http://127.0.0.1:{port}"
        self._session = ""

    async def sign_in(self) -> None:
        answer = await self._called("/v1/auth/login", username="chief", password=PASSWORD)
        self._session = answer["session"]

    async def opens(self, card: int) -> bool:
        """Try a card."""
        answer = await self._called("/status/lane/try", lane_id="entry", card=str(card))
        return answer["trial"]["opens"]

    async def refused_after(self, card: int, began: float) -> float:
        """Try a card until it is refused; the seconds since then."""

        async def is_refused() -> bool:
            return not await self.opens(card)

        await until(is_refused, within=120)
        return time.monotonic() - began

    async def _called(self, path: str, **body: object) -> dict:
        async with self._http.post(self._base + path, json=body, headers={"SessionID": self._session}) as answer:
            said = await answer.json()
            assert answer.status == 200, said
            return said


def site_file(central: str, server: str, port: int) -> str:
    """A site with one lane, whose gate is away."""
    return (
        SITE.replace("port = 0", f"port = {port}")
        + f"""
[central]
url = "{central}"
username = "gateway"
password = "central"
[fleet]
urls = ["{server}"]
site = "north"
gateway = "gate-1"
[[links]]
id = "plc"
url = "tcp://127.0.0.1:9"
[[links]]
id = "desk"
url = "serial:/dev/none"
[[devices]]
id = 101
name = "Gate"
driver = "modbus-gate"
link = "plc"
profile = "advantech-adam-6000"
[[devices]]
id = 102
name = "Reader"
driver = "serial-reader"
link = "desk"
[[lanes]]
id = "entry"
name = "Entry"
gate = 101
readers = [102]
arming = {{ device = 101, point = "arming_loop" }}
closing = {{ device = 101, point = "closing_loop" }}
closes = "device"
"""
    )


class Scene:
    """Everything that takes part. `number` is that of the last notice."""

    def __init__(self, central: Central, client: nats.NATS, lane: Lane, relay: Relay, server: NatsServer) -> None:
        self.central, self.client, self.lane, self.relay, self.server = central, client, lane, relay, server
        self.number = 0
        self._next = 100

    def card(self) -> int:
        """A card that is valid."""
        self._next += 1
        return self._next

    async def notice(self, *cards: int, skipped: int = 0) -> float:
        """Publish a notice of cards, which central has just changed; when."""
        self.number += 1 + skipped
        return await self.say(self.number, *cards)

    async def say(self, number: int, *cards: int) -> float:
        """Publish a notice with a number of its own; when."""
        began = time.monotonic()
        await self.client.publish(SUBJECT, json.dumps({"ids": cards, "number": number}).encode())
        await self.client.flush()
        return began

    async def at_rest(self) -> float:
        card = self.card()
        assert await self.lane.opens(card)
        self.central.revoke(card)
        return await self.lane.refused_after(card, await self.notice(card))

    async def two_that_cross(self) -> float:
        first, second = self.card(), self.card()
        for card in (first, second):
            self.central.revoke(card)
        self.number += 2
        began = await self.say(self.number, second)
        await self.say(self.number - 1, first)
        return max([await self.lane.refused_after(card, began) for card in (first, second)])

    async def after_a_lost_one(self) -> tuple[float, float]:
        """The seconds until the card of the notice that came is refused, and that of the lost one."""
        lost, card = self.card(), self.card()
        for one in (lost, card):
            self.central.revoke(one)
        began = await self.notice(card, skipped=1)
        return await self.lane.refused_after(card, began), await self.lane.refused_after(lost, began)

    async def while_a_pull_hangs(self) -> float:
        """Seconds while a page of a pull does not come; another lost notice causes the pull."""
        self.central.held.clear()
        pages = self.central.pages
        await self.notice(skipped=1)
        await until(lambda: self.central.pages > pages, within=60)
        try:
            return await self.at_rest()
        finally:
            self.central.held.set()

    async def after_a_time_away(self) -> tuple[float, float]:
        """A card is revoked while the box is away: seconds until it is refused, after the line's return and a notice.

        And the same for a card that is noticed right after the line's return.
        """
        missed, card = self.card(), self.card()
        await self.relay.cut()
        self.central.revoke(missed)
        await self.notice(missed)
        self.central.revoke(card)
        await self.relay.join()
        returned = time.monotonic()

        async def is_refused() -> bool:
            await self.notice(card)
            return not await self.lane.opens(card)

        await until(is_refused, within=90)
        noticed = time.monotonic() - returned
        return noticed, await self.lane.refused_after(missed, returned)


@asynccontextmanager
async def scene(folder: Path):
    central, port = Central(), free_port()
    with nats_server(folder / "nats") as server:
        client = await nats.connect(server.url)
        await prepare(FleetLine(client), days=1, replicas=1)
        relay = Relay(server.port)
        await relay.join()
        async with central.serving() as url, aiohttp.ClientSession() as http:
            (folder / "site.toml").write_text(site_file(url, f"nats://127.0.0.1:{relay.port}", port))
            give_account(folder / "data")
            with RunningGateway(
                folder, "--data", folder / "data", EDGE_GATEWAY_SECRET_CENTRAL="right horse"
            ) as gateway:
                await asyncio.to_thread(gateway.serves)
                lane = Lane(http, port)
                await lane.sign_in()

                async def has_cards() -> bool:
                    return await lane.opens(CARDS)

                await until(has_cards, within=90)
                whole = Scene(central, client, lane, relay, server)
                await whole.notice()
                await whole.at_rest()
                yield whole
                gateway.end()
        await relay.cut()
        await client.close()


async def test_revocation(tmp_path):
    async with scene(tmp_path) as site:
        rest = [await site.at_rest() for _ in range(ROUNDS)]
        crossed = [await site.two_that_cross() for _ in range(ROUNDS)]
        lost = [await site.after_a_lost_one() for _ in range(3)]
        hanging = [await site.while_a_pull_hangs() for _ in range(3)]
        away = await site.after_a_time_away()
    show("notice to refusal, longest", max(rest), "s", aim=AIM_SECONDS)
    show("notice to refusal, two that cross, longest", max(crossed), "s", aim=AIM_SECONDS)
    show("notice to refusal, after a lost one, longest", max(one for one, _ in lost), "s", aim=AIM_SECONDS)
    show("the lost one's card, by the pull of 5,000 that follows, longest", max(one for _, one in lost), "s")
    show("notice to refusal, while a page of a pull hangs, longest", max(hanging), "s", aim=AIM_SECONDS)
    show("line's return to refusal, with its reconnection", away[0], "s")
    show("line's return to refusal of a card noticed meanwhile", away[1], "s")
