"""The page of a running site in a real browser, on a phone's screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from gateway.domain.events import EventKind

pytestmark = pytest.mark.timeout(120)


def test_a_technician_sends_a_vehicle_and_watches_its_clip(browser, make_site, wait_until):
    site = make_site(demo_page=True)
    wait_until(lambda: site.api.events(types=[EventKind.CARDS_CHANGED]), within=20, why="cards come from central")
    for camera in (201, 202):  # before its first footage a camera has no picture to load
        picture = f"/v1/camera/thumbnail/{camera}"
        wait_until(lambda picture=picture: site.api.raw("GET", picture)[0] == 200, within=30, why="footage")
    context = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(f"{site.api.base}/", wait_until="domcontentloaded")
    page.fill("input[name=username]", "demo")
    page.fill("input[name=password]", "demo")
    page.click("button[type=submit]")

    entry = page.locator("#lanes > *").filter(has_text="North entry")
    expect(entry).to_contain_text("Gate closed", timeout=10_000)
    entry.get_by_role("button", name="valid card 1").click()
    expect(entry).to_contain_text("Gate open", timeout=15_000)
    expect(entry).to_contain_text("Gate closed", timeout=20_000)
    passed = page.locator("#events > *").filter(has_text="Vehicle passed").first
    expect(passed).to_be_visible()

    clip = passed.get_by_role("button")
    expect(clip).to_be_enabled(timeout=30_000)
    clip.click()
    page.wait_for_function(
        "() => { const video = document.querySelector('video'); return video?.currentTime > 1 && !video.error }",
        timeout=15_000,
    )
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, "the page is wider than the phone"
    assert [text for text in complaints if "favicon" not in text] == []
    context.close()
