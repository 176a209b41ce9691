"""Chromium, and pages that fail on errors of the console."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from chromium import FLAGS, chromium
from waiting import GENEROUS

PATIENCE = 1000 * GENEROUS
"""Milliseconds for which the browser waits for what a page does or shows. A busy machine needs some of them."""

NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED"
"""Chromium gives up what it loads when an interface comes or goes, as in the tests of cut lines beside."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser():
    from playwright.async_api import async_playwright, expect

    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield started
        await started.close()


@pytest.fixture
def browser_page(browser):
    """Opens a page with no past and fails on whatever the console calls an error."""

    @asynccontextmanager
    async def opened(size=None, scheme="light", tolerate=(), language="en-GB", zone=None):
        faults = []
        size = size or {"width": 1280, "height": 900}
        context = await browser.new_context(viewport=size, color_scheme=scheme, locale=language, timezone_id=zone)
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("response", lambda answer: print(answer.status, answer.url) if answer.status >= 400 else None)
        try:
            yield page
        finally:
            await context.close()
        found = [fault for fault in faults if not any(word in fault for word in (*tolerate, NETWORK_CHANGED))]
        assert found == [], found

    return opened
