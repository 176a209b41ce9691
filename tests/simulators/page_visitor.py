"""Somebody at the status page in a browser."""

from __future__ import annotations

from playwright.async_api import expect


async def sign_in(page, gateway, username="chief", *, view="", password=""):
    """As an account whose password is its name unless it is given, at the address of a view."""
    await page.goto(f"{gateway.url}/status/{view}")
    await page.get_by_label("User name").fill(username)
    await page.get_by_label("Password").fill(password or username)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.locator("#user")).to_be_visible()
