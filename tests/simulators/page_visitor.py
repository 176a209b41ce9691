"""Somebody at the status page in a browser."""

from __future__ import annotations

from playwright.async_api import expect

SCREENS = (
    "",
    "lanes/entry",
    "commissioning/entry",
    "events",
    "cards",
    "lines",
    "health",
    "settings",
    "wall",
    "../fleet/",
)
"""Every screen, by its address below the page's."""


async def sign_in(page, gateway, username="chief", *, view="", password=""):
    """As an account whose password is its name unless it is given, at the address of a view."""
    await page.goto(f"{gateway.url}/status/{view}")
    await page.locator("#name-field").fill(username)
    await page.locator("#password-field").fill(password or username)
    await page.locator("#sign-in-form button").click()
    await expect(page.locator("#user")).to_be_visible()
