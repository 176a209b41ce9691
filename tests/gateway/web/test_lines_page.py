"""The view of lines in a real browser, over a line with real units: frames as they come, and a scan."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress

import pytest
from playwright.async_api import expect

from drivers.bus.bus import Bus
from drivers.bus.line_quality import LineQuality, UnitQuality
from drivers.contract import DriverError
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Table
from drivers.modbus.unit_requests import ModbusRequests
from gateway.domain.problems import ProblemKind
from gateway.lines.frames import PolledLine
from gateway.problems.lines import SiteLine
from gateway.problems.problem import Problem, SitePart
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]

USED, NEW = 7, 9


async def keep_polling(bus):
    requests = ModbusRequests(bus=bus, unit=USED, framing="rtu", timeout=0.3)
    while True:
        due = time.monotonic() + 0.2
        with suppress(DriverError):
            await requests.read(Read(Table.DISCRETE_INPUT, 0, 6), deadline=due + 1)
        await asyncio.sleep(max(0.0, due - time.monotonic()))  # the pace of somebody who polls


@asynccontextmanager
async def a_yard(tmp_path):
    """A line with a unit that is polled, and one that nobody knows of."""
    units = {unit: relay_module(Barrier()) for unit in (USED, NEW)}
    far_end = ModbusFarEnd(units=units, framing="rtu")
    async with far_end.serial(path=tmp_path / "port") as terminal, asyncio.TaskGroup() as group:
        bus = Bus(name="yard", spec=LinkSpec(f"serial:{terminal.path}", baud=115_200))
        tasks = [group.create_task(body) for body in (bus.run(), keep_polling(bus))]
        yield PolledLine(
            bus=bus, framing="rtu", names={USED: ("Barrier",)}, card_units=frozenset(), is_moving=lambda: False
        )
        for task in tasks:
            task.cancel()


async def sign_in(page, gateway, user):
    await page.goto(f"{gateway.url}/status/lines")
    await page.get_by_label("User name").fill(user)
    await page.get_by_label("Password").fill(user)
    await page.keyboard.press("Enter")
    await expect(page.locator(".line-card")).to_be_visible()


async def test_frames_and_a_scan_at_the_page(open_gateway, browser_page, tmp_path):
    async with (
        a_yard(tmp_path) as yard,
        open_gateway(lines={"yard": yard}) as gateway,
        browser_page() as page,
    ):
        await sign_in(page, gateway, "chief")
        card = page.locator(".line-card")
        await expect(card.locator(".verdict")).to_have_text("Every unit answers in time.")
        await expect(card.locator(".unit-verdict")).to_have_text("It answers in time.")
        await card.get_by_text("Frames as they come").click()
        await expect(card.locator(".frames li").first).to_contain_text("read inputs 0-5 → 1 0 0 0 0 0")
        await card.get_by_text("Look for units").click()
        await card.get_by_label("From").fill("5")
        await card.get_by_label("to", exact=True).fill("10")
        await card.get_by_role("button", name="Scan").click()
        await expect(card.locator(".scan-state")).to_have_text("6 of 6: every address was asked.")
        await expect(card.locator(".scan-units li")).to_have_count(2)
        await expect(card.locator(".new-unit")).to_have_text("Unit 9, new: illegal data address")
        await card.get_by_label("From").fill("100")
        await card.get_by_label("to", exact=True).fill("247")
        await card.get_by_role("button", name="Scan").click()
        await card.get_by_role("button", name="Stop").click()
        await expect(card.locator(".scan-state")).to_contain_text("it was stopped")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_device_that_does_not_answer_leads_to_itself_on_its_line(open_gateway, browser_page, tmp_path):
    offline = Problem(
        kind=ProblemKind.DEVICE_OFFLINE,
        part=SitePart.DEVICE,
        id="101",
        name="Barrier",
        text="Barrier does not answer",
        line="yard",
    )
    async with a_yard(tmp_path) as yard, open_gateway(lines={"yard": yard}) as gateway, browser_page() as page:
        gateway.problems.append(offline)
        await sign_in(page, gateway, "chief")
        await page.get_by_role("link", name="Now").click()
        await page.locator(".problem summary").click()
        await page.get_by_role("link", name="Show it on its line").click()
        await expect(page.locator(".unit").filter(has_text="unit 7")).to_be_focused()
        assert page.url.endswith("/status/lines?device=101")
        await page.goto(f"{gateway.url}/status/lines?line=yard")
        await expect(page.locator(".line-card")).to_be_focused()


async def test_a_scan_is_offered_only_to_who_may(open_gateway, tmp_path):
    async with a_yard(tmp_path) as yard, open_gateway(lines={"yard": yard}) as gateway:
        for path, body in (("", {"line": "yard"}), ("/stop", {"line": "yard"})):
            status, answer = await gateway.call(f"/status/line/scan{path}", body, user="guard")
            assert (status, "can_control_devices" in answer["error"]) == (500, True)
        status, answer = await gateway.call("/status/line/scan", {"line": "yard", "first": 9, "last": 8})
        assert (status, answer["error"]) == (400, "last: must not be below first")
        status, answer = await gateway.call("/status/line/frames?line=yard&after=0", method="GET", user="guard")
        assert (status, answer["success"]) == (200, True)
        status, answer = await gateway.call("/status/line/frames?line=garage", method="GET")
        assert status == 404


def reader(address, *, unsecured="", is_tampered=False):
    return UnitQuality(
        unit=address,
        reply_times=(0, 0, 0, 5, 0, 0, 0, 0, 0, 0),
        failed={},
        reply_seconds=0.016,
        allowed_seconds=0.2,
        failing=None,
        failures=0,
        losses=0,
        unsecured=unsecured,
        is_tampered=is_tampered,
    )


async def test_readers_on_osdp_stand_beside_the_other_lines(open_gateway, browser_page):
    units = (reader(1), reader(2, unsecured="answers, but has another key"), reader(3, is_tampered=True))
    osdp = SiteLine(LineQuality(name="readers", down_reason="", strays=0, units=units), {1: (102,)})
    async with open_gateway(more_lines=(osdp,)) as gateway, browser_page() as page:
        await page.goto(f"{gateway.url}/status/lines")
        await page.get_by_label("User name").fill("chief")
        await page.get_by_label("Password").fill("chief")
        await page.keyboard.press("Enter")
        modbus, line = page.locator(".line-card").nth(0), page.locator(".line-card").nth(1)
        await expect(line.locator("h3")).to_have_text("readers")
        await expect(line.locator(".verdict")).to_have_text("Others answer, but not unit 2 as it should.")
        good, foreign, opened = (line.locator(".unit").nth(place) for place in range(3))
        await expect(good).to_contain_text("Secure channel on")
        await expect(good).to_contain_text("16 ms of 200 ms allowed")
        await expect(foreign).to_contain_text("Secure channel off")
        await expect(foreign).to_contain_text("It answers, but has another key. Give it its key again")
        await expect(opened.get_by_text("Housing open", exact=True)).to_be_visible()
        await expect(good.get_by_text("Housing open", exact=True)).to_be_hidden()
        await expect(line.locator(".pill").first).to_have_text("Look here")
        await expect(line.get_by_text("Frames as they come")).to_be_hidden()
        await expect(modbus.locator(".unit-channel")).to_be_hidden()
