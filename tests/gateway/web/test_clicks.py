"""The number of clicks of daily work on a phone, counted in a real browser from the page as it opens."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio
from page_visitor import sign_in
from playwright.async_api import expect

from gateway.domain.events import EventKind

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
PHONE = {"width": 360, "height": 740}
DAY = 86_400_000_000
NO_VIEW = ("503", "409")
"""The tests' cameras have no worker that shows them live."""


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


COUNTING = """() => addEventListener("click", () => {
    sessionStorage.setItem("clicks", 1 + Number(sessionStorage.getItem("clicks")));
}, true)"""


async def clicked(page):
    """The clicks that the page itself has seen."""
    return await page.evaluate("Number(sessionStorage.getItem('clicks'))")


async def opened(page, gateway):
    """Sign in, and count from then on."""
    await sign_in(page, gateway)
    await expect(page.locator("#lanes article")).to_be_visible()
    await page.evaluate(COUNTING)


async def test_yesterdays_event_in_three(gateway, browser_page):
    yesterday = gateway.clock.wall().micros - DAY
    await gateway.happened("Card 0042 was refused.", kind=EventKind.ACCESS_DENIED, date_at=yesterday)
    for number in range(60):
        await gateway.happened(f"Passage {number}.")
    async with browser_page(size=PHONE) as page:
        await opened(page, gateway)
        await page.get_by_role("link", name="Events").click()
        await page.get_by_role("button", name="Yesterday").click()
        rows = page.get_by_role("list", name="All events").get_by_role("listitem")
        await expect(rows).to_have_count(1)
        await rows.get_by_role("link").first.click()
        await expect(page).to_have_url(re.compile(r"/status/events/\d+$"))
        await expect(rows).to_contain_text("Card 0042 was refused.")
        assert await clicked(page) <= 3


async def test_an_unknown_card_enrolled_in_four(gateway, browser_page):
    data = {"credential": "0815", "reason": "unknown_credential"}
    await gateway.happened("card 0815: no card has this number", kind=EventKind.ACCESS_DENIED, data=data)
    async with browser_page(size=PHONE) as page:
        await opened(page, gateway)
        await page.locator("#lanes").get_by_role("link", name="Enrol this card").click()
        await expect(page.get_by_label("Number printed on it")).to_have_value("0815")
        await page.get_by_label("Holder", exact=True).fill("Ada")
        await page.get_by_role("button", name="Add the card").click()
        await expect(page.get_by_text("Added: it counts at once.")).to_be_visible()
        assert await clicked(page) <= 4


async def test_why_a_car_was_refused_in_two(gateway, browser_page):
    data = {"credential": "0042", "reason": "expired", "trace": "known: passed (card 7); validity: FAILED (until May)"}
    await gateway.happened("card 0042: the card has expired", kind=EventKind.ACCESS_DENIED, device_id=101, data=data)
    async with browser_page(size=PHONE, tolerate=NO_VIEW) as page:
        await opened(page, gateway)
        await expect(page.locator("#lanes .decision")).to_contain_text("card 0042: the card has expired")
        await page.get_by_role("link", name="Main entry").click()
        await expect(page.locator("#lane-read-text")).to_contain_text("because the card has expired.")
        await page.locator("#lane-read").get_by_text("Each rule").click()
        await expect(page.locator("#lane-trace").get_by_text("validity: FAILED (until May)")).to_be_visible()
        assert await clicked(page) <= 2


async def test_the_quality_of_a_bus_in_two(gateway, browser_page):
    async with browser_page(size=PHONE) as page:
        await opened(page, gateway)
        await page.get_by_role("link", name="Lines").click()
        await expect(page.get_by_text("4 answered · 2 without an answer")).to_be_visible()
        assert await clicked(page) <= 2


@pytest.mark.parametrize("form", ["CSV", "Excel"])
async def test_an_export_of_a_day_in_three(gateway, browser_page, form):
    async with browser_page(size=PHONE) as page:
        await opened(page, gateway)
        await page.get_by_role("link", name="Events").click()
        await page.get_by_role("button", name="Today").click()
        await expect(page).to_have_url(re.compile("start_date="))
        async with page.expect_download() as waiting:
            await page.get_by_role("link", name=form).click()
        assert (await (await waiting.value).path()).stat().st_size > 100
        assert await clicked(page) <= 3


async def test_a_gate_opened_in_one(gateway, browser_page):
    async with browser_page(size=PHONE) as page:
        await opened(page, gateway)
        button = page.get_by_role("button", name="Open Main entry")
        await expect(button).to_be_in_viewport(ratio=1)
        await button.click()
        await expect(page.get_by_text("Open recorded for Main entry")).to_be_visible()
        assert await clicked(page) <= 1
