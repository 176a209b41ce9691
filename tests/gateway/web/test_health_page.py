"""Health at the page: webhooks and what may be done about them, what is kept, the end of the log."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from page_visitor import sign_in
from playwright.async_api import expect

from gateway.domain.server_lines import ConnectionState
from tests.gateway.web.setups.site import BROKER

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]

LOG = (
    json.dumps({"event": "gateway_started", "level": "info", "timestamp": "2026-01-01T10:00:00Z", "site": "North"}),
    json.dumps({"event": "link_lost", "level": "warning", "timestamp": "2026-01-01T10:00:01Z", "card": "12345678"}),
    "a line that is no JSON",
)


async def test_a_webhook_that_does_not_answer_says_so_and_is_tried(open_gateway, browser_page):
    async with open_gateway() as gateway, browser_page() as page:
        url = f"{gateway.url}/v1/nowhere?token=secret"
        await gateway.program(
            "POST", "/api/v1/webhooks", {"url": url, "events": ["alert.triggered"], "secret": "s" * 32}
        )
        await sign_in(page, gateway, view="health")
        hook = page.locator("#receivers .receiver")
        await expect(hook).to_contain_text(gateway.url.removeprefix("http://"))
        await expect(hook).to_contain_text("nothing waits · 0 delivered")
        assert "secret" not in await page.locator("#receivers").inner_html()
        await expect(hook.get_by_role("button", name="Enable again")).to_be_hidden()
        await hook.get_by_role("button", name="Send a test").click()
        await expect(page.locator("#toasts")).to_contain_text("The receiver did not take the test:")
        await expect(page.locator("#facts")).to_contain_text("Events")


async def test_the_end_of_the_log_is_shown_without_numbers_of_cards(open_gateway, browser_page):
    async with open_gateway(log=LOG) as gateway, browser_page() as page:
        await sign_in(page, gateway, view="health")
        await page.locator("#log-part summary").click()
        lines = page.locator("#log li")
        await expect(lines).to_have_count(3)
        await expect(lines.nth(0)).to_have_text("a line that is no JSON")
        await expect(lines.nth(1)).to_contain_text("link_lost")
        await expect(lines.nth(1)).to_have_class("bad-frame")
        await expect(lines.nth(2)).to_contain_text("gateway_started site=North")
        assert "12345678" not in await page.locator("#log").inner_text()


async def test_who_may_not_change_settings_gets_no_log(open_gateway, browser_page):
    async with open_gateway(log=LOG) as gateway, browser_page() as page:
        status, answer = await gateway.call("/status/log", method="GET", user="guard")
        assert (status, "can_edit_settings" in answer["error"]) == (500, True)
        await sign_in(page, gateway, "guard", view="health")
        await expect(page.locator("#devices-section")).to_be_visible()
        await expect(page.locator("#log-part")).to_be_hidden()
        await expect(page.locator("#receivers-section")).to_be_hidden()


async def test_the_broker_says_how_it_is_since_when_and_how_much_waits(open_gateway, browser_page):
    told = [BROKER]
    async with open_gateway(broker=lambda: told[-1]) as gateway, browser_page() as page:
        await sign_in(page, gateway, view="health")
        card = page.locator("#broker-section")
        await expect(card).to_contain_text("Away; the site works on its own")
        await expect(page.locator("#broker-lamp")).to_have_class("lamp bad")
        await expect(page.locator("#broker-detail")).to_contain_text("no answer within 10 s · broker.example.com:8883")
        await expect(page.locator("#broker-detail")).to_contain_text("since ")
        await expect(card).to_contain_text("1,204 events wait for the broker")
        told.append(replace(BROKER, state=ConnectionState.CONNECTED, reason="", waiting=0))
        gateway.store.changes.bump()
        await expect(card).to_contain_text("Connected")
        await expect(card).to_contain_text("Everything is with the broker")


async def test_without_a_broker_nothing_is_said_of_one(open_gateway, browser_page):
    async with open_gateway() as gateway, browser_page() as page:
        await sign_in(page, gateway, view="health")
        await expect(page.locator("#devices-section")).to_be_visible()
        await expect(page.locator("#broker-section")).to_be_hidden()
