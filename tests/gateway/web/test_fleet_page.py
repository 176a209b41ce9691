"""The page of the fleet in a real browser, over a real server: every gateway, as its heartbeats come."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from at_work import running
from fleet_scene import NAME, connection
from nats_server import nats_server
from playwright.async_api import expect
from waiting import until

from gateway.domain.server_lines import ConnectionState, FleetSeen
from gateway.fleet.connection import FleetServer, connected
from gateway.fleet.heartbeat import GatewaysSeen, HeartbeatValue, ProblemTold
from gateway.fleet.line import FleetLine
from gateway.fleet.names import FleetName, Outgoing
from gateway.fleet.operator import prepare
from gateway.runtime.clock import SystemClock
from tests.gateway.web.setups.site import fleet_seen

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]

FLEET_DOC = Path(__file__).parents[3] / "docs" / "fleet.md"
TROUBLE = ProblemTold(kind="gate_offline", severity="alarm", text="Barrier does not answer")


async def beat(line: FleetLine, name: FleetName, *problems: ProblemTold, ready: bool = True, version: str = "1.4.0"):
    """Put a heartbeat into the bucket, as that gateway does."""
    headline = "All 2 lanes work" if ready else "1 of 2 lanes cannot work: Main entry"
    value = HeartbeatValue(
        version=version,
        site=f"{name.site.title()} <b>Yard",
        ready=ready,
        headline=headline,
        problem_count=len(problems),
        problems=problems,
        last_event=9,
        waiting=0,
    )
    await line.put([Outgoing(name.heartbeat, value.model_dump_json().encode())])


async def sign_in(page, gateway, user="chief"):
    await page.goto(f"{gateway.url}/fleet/")
    await page.get_by_label("User name").fill(user)
    await page.get_by_label("Password").fill(user)
    await page.keyboard.press("Enter")


async def test_every_gateway_is_shown_as_its_heartbeats_come(open_gateway, browser_page, tmp_path):
    """The gateway's key has the rights that docs/fleet.md names."""
    (rights,) = re.findall(r"publish: \[ …, (.*) \]", FLEET_DOC.read_text("utf-8"))
    users = f"""no_auth_user: operator
        authorization {{ users: [ {{ user: operator, password: operator }}
        {{ user: gate, password: gate, permissions: {{ publish: [ {rights} ], subscribe: [ "_INBOX.>" ] }} }} ] }}"""
    with nats_server(tmp_path / "nats", users) as server:
        place = FleetServer(url=server.url, credentials="", ca_file=None, name="test")
        seen = GatewaysSeen(clock=SystemClock())
        gate = connection(server.url.replace("//", "//gate:gate@"), seen)
        async with (
            connected(place) as (line, _),
            open_gateway(fleet_seen=seen.since) as gateway,
            browser_page() as page,
        ):
            gateway.clock.wall = SystemClock().wall
            await prepare(line, days=1, replicas=1)
            for number in range(30):
                await beat(line, FleetName("north", f"gate-{number}"))
            async with running(gate.run()):
                await sign_in(page, gateway)
                rows = page.locator("#gateways tr")
                await expect(rows).to_have_count(30)
                await expect(page.locator("#gateways-count")).to_have_text("30 gateways")
                await expect(rows.first).to_contain_text("North <b>Yard")
                await beat(line, FleetName("north", "gate-7"), TROUBLE, ready=False)
                await expect(rows.first.locator(".gateway-name")).to_have_text("north.gate-7")
                await expect(rows.first.locator(".pill")).to_have_text("Not ready")
                await expect(rows.first.locator(".gateway-problems")).to_have_text("Barrier does not answer")
                await beat(line, FleetName("south", "gate-1"), version="1.5.0")
                await expect(rows).to_have_count(31)
                await page.get_by_label("Find a gateway").fill("1.5")
                await expect(rows).to_have_count(1)
                await page.get_by_label("Find a gateway").fill("")
                await line.put([Outgoing(FleetName("south", "gate-1").heartbeat, b"")])  # an operator deletes the key
                await expect(rows).to_have_count(30)
                assert await page.get_by_role("link", name="Fleet").get_attribute("aria-current") == "page"
                await page.get_by_role("link", name="Health").click()
                await expect(page.locator("#view-health")).to_be_visible()
                await page.go_back()
                await expect(rows).to_have_count(30)


async def test_a_key_that_may_not_read_the_bucket_is_named_and_the_line_works_on(open_gateway, browser_page, tmp_path):
    users = """authorization { users: [ { user: gate, password: gate, permissions: {
        publish: [ "$JS.API.STREAM.INFO.EVENTS" ], subscribe: [ "_INBOX.>" ] } } ] }"""
    with nats_server(tmp_path / "nats", users) as server:
        seen = GatewaysSeen(clock=SystemClock())
        url = server.url.replace("//", "//gate:gate@")
        line = connection(url, seen)
        async with open_gateway(fleet_seen=seen.since) as gateway, browser_page() as page, running(line.run()):
            await sign_in(page, gateway)
            await expect(page.locator("#gateways-fault")).to_contain_text("permissions violation")
            assert line.status().state is ConnectionState.CONNECTED


async def test_without_a_fleet_there_is_no_page(open_gateway):
    async with open_gateway() as gateway:
        for path in ("/fleet/", "/status/fleet"):
            status, answer = await gateway.call(path, method="GET")
            assert (status, answer["error"]) == (404, "this gateway belongs to no fleet: its site file has no [fleet]")


async def test_only_who_may_see_devices_sees_the_fleet(open_gateway):
    async with open_gateway(fleet_seen=fleet_seen) as gateway:
        status, answer = await gateway.call("/status/fleet", method="GET", user="nobody")
        assert (status, answer["gateways"]) == (500, None)
        assert "can_view_devices" in answer["error"]
        status, answer = await gateway.call("/status/fleet?after=run-4", method="GET", user="guard")
        assert (status, len(answer["gateways"])) == (200, 4)


async def test_only_what_changed_since_the_mark_is_answered(tmp_path):
    with nats_server(tmp_path / "nats") as server:
        seen = GatewaysSeen(clock=SystemClock())
        place = FleetServer(url=server.url, credentials="", ca_file=None, name="test")
        async with connected(place) as (line, _), running(connection(server.url, seen).run()):
            await prepare(line, days=1, replicas=1)
            for number in range(3):
                await beat(line, FleetName("north", f"gate-{number}"))
            first = await until(lambda: changed_by(seen, "", 3))
            await beat(line, NAME)
            changed = await until(lambda: changed_by(seen, first.mark, 1))
            assert ([one.name for one in changed.seen], changed.anew) == ([str(NAME)], False)
            assert seen.since(changed.mark).seen == ()
            assert seen.since("another-run-3").anew


def changed_by(seen: GatewaysSeen, mark: str, count: int) -> FleetSeen | None:
    """The changes since a mark, once so many gateways have changed."""
    found = seen.since(mark)
    return found if len(found.seen) == count else None
