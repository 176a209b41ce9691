"""Daily work by keyboard alone, on a screen and enlarged: what has the focus is always seen, and nothing holds it."""

from __future__ import annotations

import pytest
import pytest_asyncio
from page_visitor import SCREENS, sign_in
from playwright.async_api import expect

from gateway.domain.events import EventKind
from tests.gateway.web.setups.site import fleet_seen

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
ENLARGED = {"200 %": (640, 400), "400 %": (320, 200), "phone": (360, 740)}
MOST_STEPS = 120
NO_VIEW = ("503", "409")
_IN_SIGHT = """() => {
    const node = document.activeElement, box = node.getBoundingClientRect();
    if (node === document.body) return null;
    if (node.closest(".skip")) return "";
    const middle = (from, to, room) => (Math.max(from, 0) + Math.min(to, room)) / 2;
    const [x, y] = [middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight)];
    const over = document.elementFromPoint(x, y);
    const free = over && (node.contains(over) || over.contains(node) || over.closest("label")?.contains(node));
    return free ? "" : `${node.outerHTML.slice(0, 120)} behind ${over?.outerHTML.slice(0, 60)}`;
}"""
_OUTLINE = "(node) => node === document.activeElement && getComputedStyle(node).outlineStyle"
_WIDER = "() => document.documentElement.scrollWidth - innerWidth"


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway(fleet_seen=fleet_seen) as opened:
        data = {"credential": "0815", "reason": "unknown_credential"}
        await opened.happened("card 0815: no card has this number", kind=EventKind.ACCESS_DENIED, data=data)
        yield opened


async def to(page, wanted):
    """Press Tab until this has the focus."""
    for _ in range(MOST_STEPS):
        if outline := await wanted.evaluate(_OUTLINE):
            assert outline != "none"
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not come to {wanted}")


async def test_an_unknown_card_is_enrolled_by_keyboard(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)
        await to(page, page.locator("#lanes").get_by_role("link", name="Enrol this card"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Number printed on it")).to_have_value("0815")
        await to(page, page.get_by_label("Holder", exact=True))
        await page.keyboard.type("Ada")
        await to(page, page.get_by_role("button", name="Add the card"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Added: it counts at once.")).to_be_visible()
        await to(page, page.get_by_role("button", name="New card"))
        await page.keyboard.press("Enter")
        await expect(page.locator("#card-dialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator("#card-dialog")).to_be_hidden()
        await expect(page.get_by_role("button", name="New card")).to_be_focused()


async def test_events_are_exported_by_keyboard(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)
        await to(page, page.get_by_role("link", name="Events", exact=True))
        await page.keyboard.press("Enter")
        await to(page, page.get_by_role("button", name="Today"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Today")).to_have_attribute("aria-pressed", "true")
        await to(page, page.get_by_role("link", name="CSV"))
        async with page.expect_download() as waiting:
            await page.keyboard.press("Enter")
        assert (await (await waiting.value).path()).stat().st_size > 100


@pytest.mark.parametrize("enlarged", ENLARGED)
async def test_what_has_the_focus_is_in_sight(gateway, browser_page, enlarged):
    width, height = ENLARGED[enlarged]
    hidden = []
    async with browser_page(size={"width": width, "height": height}, tolerate=NO_VIEW) as page:
        await sign_in(page, gateway)
        for screen in SCREENS:
            await page.goto(f"{gateway.url}/status/{screen}")
            await expect(page.locator("#board")).to_be_visible()
            await page.wait_for_load_state("networkidle")
            assert await page.evaluate(_WIDER) <= 0, screen
            await page.evaluate("document.activeElement.blur()")
            for _ in range(MOST_STEPS):
                await page.keyboard.press("Tab")
                found = await page.evaluate(_IN_SIGHT)
                if found is None:
                    break
                hidden += [f"{screen}: {found}"] if found else []
    assert hidden == [], "\n".join(hidden)
