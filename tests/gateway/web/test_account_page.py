"""Signing in at the page with a second factor, and the menu of who is signed in; in a real browser."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import expect

from gateway.web.auth.accounts import hash_password
from gateway.web.register.changes import AddAccount, SetSecondFactor
from simulation.far_ends.central.accounts import totp
from tests.gateway.web.setups.browser import PATIENCE
from tests.gateway.web.setups.local import ask

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway, tmp_path):
    async with open_gateway() as opened:
        password_hash = hash_password("correct horse")
        for change in (
            AddAccount(username="ada", password_hash=password_hash, role="operator"),
            SetSecondFactor(username="ada", secret=SECRET, step=0),
        ):
            assert not (await ask(change, run_folder=tmp_path / "run")).error
        yield opened


@pytest.fixture
def page_of(browser):
    @asynccontextmanager
    async def opened(**options):
        faults = []
        context = await browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        try:
            yield page
        finally:
            await context.close()
        assert faults == []

    return opened


async def type_password(page, gateway):
    await page.goto(f"{gateway.url}/status/")
    await page.get_by_label("User name").fill("ada")
    await page.get_by_label("Password").fill("correct horse")
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("heading", name="Second factor")).to_be_visible()


def code(gateway):
    return totp(SECRET, gateway.clock.wall().micros // 1_000_000)


@pytest.mark.parametrize(
    ("size", "scheme"), [({"width": 1280, "height": 800}, "light"), ({"width": 360, "height": 740}, "dark")]
)
async def test_the_code_is_asked_for_before_anything_is_shown(gateway, page_of, size, scheme):
    async with page_of(viewport=size, color_scheme=scheme) as page:
        await type_password(page, gateway)
        await expect(page.get_by_label("Code")).to_be_focused()
        await expect(page.locator("#board")).to_be_hidden()
        await page.get_by_label("Code").fill("123")
        await page.get_by_role("button", name="Continue").click()
        await expect(page.get_by_text("The code is not accepted")).to_be_visible()
        await _picture(page, f"code-{scheme}")
        assert await page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        await page.reload()
        await expect(page.get_by_label("Code")).to_be_visible()
        await page.get_by_label("Code").fill(code(gateway))
        await page.keyboard.press("Enter")
        await expect(page.locator("#board")).to_be_visible()
        await page.locator("#user summary").click()
        await expect(page.locator("#account-role")).to_have_text("operator · account of this site")
        await _picture(page, f"menu-{scheme}")
        assert await page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
        await page.locator("#user summary").click()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_label("User name")).to_be_focused()


async def test_another_account_can_be_taken_instead(gateway, page_of):
    async with page_of() as page:
        await type_password(page, gateway)
        await page.get_by_role("button", name="Sign in with another account").click()
        await expect(page.get_by_label("User name")).to_be_focused()
        assert [cookie["value"] for cookie in await page.context.cookies() if cookie["name"] == "session"] == []


async def _picture(page, name):
    if folder := os.environ.get("PICTURES"):
        await page.screenshot(path=f"{folder}/{name}.png")
