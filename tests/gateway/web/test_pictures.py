"""Pictures of cameras in a real browser: fetched only while they can be seen, and live where one taps."""

from __future__ import annotations

import pytest
import pytest_asyncio
from page_visitor import sign_in
from playwright.async_api import expect

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
PHONE = {"width": 360, "height": 740}
NO_VIEW = ("503", "409")
"""The tests' cameras have no worker that shows them live."""
HIDE = """(state) => {
    Object.defineProperty(document, "visibilityState", { get: () => state, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


def asked_pictures(page):
    """The addresses of cameras' pictures that the page asks for, as they come."""
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/v1/camera/thumbnail/" in request.url else None)
    return asked


async def told_twice(gateway, page):
    """Wait until the page has shown two more changes of the site."""
    for note in ("one more change", "and another one"):
        gateway.board.show(note=note)
        await expect(page.locator("#lanes .note")).to_have_text(note)


async def test_a_picture_is_fetched_once_it_can_be_seen(gateway, browser_page):
    for number in range(20):  # so that the cameras are far below
        await gateway.happened(f"Passage {number}.")
    async with browser_page(size=PHONE) as page:
        asked = asked_pictures(page)
        await sign_in(page, gateway)
        await expect(page.locator("#cameras article")).to_have_count(1)
        await expect(page.locator("#cameras .live")).not_to_be_in_viewport()
        await told_twice(gateway, page)
        assert asked == []
        await page.locator("#cameras .live").scroll_into_view_if_needed()
        await expect(page.locator("#cameras img")).to_be_visible()
        assert len(asked) == 1


async def test_nothing_is_fetched_behind_another_view_or_in_a_tab_that_is_not_looked_at(gateway, browser_page):
    async with browser_page() as page:
        asked = asked_pictures(page)
        await page.goto(f"{gateway.url}/status/")
        await page.evaluate(HIDE, "hidden")
        await page.get_by_label("User name").fill("chief")
        await page.get_by_label("Password").fill("chief")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("#cameras article")).to_be_visible()
        await told_twice(gateway, page)
        assert asked == []
        await page.evaluate(HIDE, "visible")
        await expect(page.locator("#cameras img")).to_be_visible()
        assert len(asked) == 1


async def test_a_tap_makes_a_picture_live_in_its_place_and_another_ends_it(gateway, browser_page):
    async with browser_page(tolerate=NO_VIEW) as page:
        views = []
        page.on("request", lambda request: views.append(request.url) if "/v1/camera/whep/" in request.url else None)
        await sign_in(page, gateway)
        await expect(page.locator("#cameras img")).to_be_visible()
        assert views == []
        await page.get_by_role("button", name="Watch live Entry overview").click()
        await expect(page.locator("#cameras .live-state")).not_to_be_empty()
        await expect(page.get_by_role("button", name="Open Main entry")).to_be_in_viewport(ratio=1)
        assert len(views) == 1
        await page.get_by_role("button", name="Stop watching Entry overview").click()
        await expect(page.locator("#cameras .live-state")).to_be_hidden()
