"""The wall view in a real browser: everything on one screen without scrolling, however many lanes and cameras."""

from __future__ import annotations

from dataclasses import replace

import pytest
import pytest_asyncio
from page_visitor import sign_in
from playwright.async_api import expect

from drivers.contract import PointState
from gateway.domain.events import EventKind
from gateway.domain.problems import ProblemKind
from gateway.lanes.snapshots import LaneTrouble

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
SCREEN = {"width": 1920, "height": 1080}
OVERFLOW = (
    """() => [document.documentElement.scrollHeight - innerHeight, document.documentElement.scrollWidth - innerWidth]"""
)


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


async def fits(page, selector):
    """Return whether every element is whole on the screen."""
    return await page.locator(selector).evaluate_all(
        "nodes => nodes.every((node) => { const box = node.getBoundingClientRect();"
        " return box.height > 20 && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth; })"
    )


@pytest.mark.parametrize(("lanes", "cameras"), [(1, 1), (3, 2), (12, 16), (40, 0)], ids="{}".format)
async def test_all_lanes_cameras_and_last_events_are_on_one_screen_in_both_themes(
    gateway, browser_page, monkeypatch, lanes, cameras
):
    lane, camera = gateway.board.lane, gateway.recording.camera
    many = tuple(
        replace(lane, lane_id=f"lane-{number}", name=f"Lane {number}", note="a long note " * 20)
        for number in range(lanes)
    )
    seen = tuple(replace(camera, camera_id=201 + number, name=f"Camera {number}") for number in range(cameras))
    monkeypatch.setattr(gateway.board, "lanes", lambda: many)
    monkeypatch.setattr(gateway.recording, "cameras", lambda: seen)
    for number in range(50):
        await gateway.happened(f"Event {number} " + "x" * 300)
    async with browser_page(size=SCREEN, tolerate=("404",)) as page:
        await sign_in(page, gateway, view="wall")
        await expect(page.locator(".wall-lane")).to_have_count(lanes)
        await expect(page.locator(".wall-camera")).to_have_count(cameras)
        for theme in ("light", "dark"):
            await page.emulate_media(color_scheme=theme)
            await expect(page.locator("#wall-events li").first).to_be_in_viewport(ratio=1)
            assert await page.evaluate(OVERFLOW) == [0, 0]
            assert await fits(page, ".wall-lane")
            assert await fits(page, ".wall-camera")
        await page.get_by_role("button", name="Full screen", exact=True).first.click()
        await expect(page.locator(".wall:fullscreen")).to_have_count(1)
        assert await fits(page, ".wall-lane")


async def test_a_lane_that_cannot_work_stands_out_and_leads_to_its_view(gateway, browser_page):
    why = "the arming loop is not known, so no card counts"
    gateway.board.show(vehicle=PointState.UNKNOWN, unable=(LaneTrouble(ProblemKind.ARMING_LOOP_UNKNOWN, why),))
    await gateway.happened("card 0815: refused", kind=EventKind.ACCESS_DENIED, data={"credential": "0815"})
    async with browser_page(size=SCREEN, tolerate=("409", "503")) as page:
        await sign_in(page, gateway)
        await page.get_by_role("link", name="Wall view").click()
        lane = page.locator(".wall-lane")
        await expect(lane).to_contain_text("Cannot work")
        await expect(lane).to_contain_text(why)
        await expect(lane).to_contain_text("card 0815: refused")
        await lane.get_by_role("link").click()
        await expect(page.get_by_role("button", name="Open Main entry")).to_be_visible()
        await page.get_by_role("link", name="Now").click()
        await expect(page.locator(".wall-lane")).to_have_count(0)


async def test_a_phone_shows_the_wall_one_below_the_other(gateway, browser_page):
    async with browser_page(size={"width": 360, "height": 740}) as page:
        await sign_in(page, gateway, view="wall")
        await expect(page.locator(".wall-lane")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("cameras", [0, 2])
async def test_a_wall_without_lanes_says_so(gateway, browser_page, monkeypatch, cameras):
    seen = tuple(replace(gateway.recording.camera, camera_id=201 + number) for number in range(cameras))
    monkeypatch.setattr(gateway.board, "lanes", lambda: ())
    monkeypatch.setattr(gateway.recording, "cameras", lambda: seen)
    async with browser_page(size=SCREEN, tolerate=("404",)) as page:
        await sign_in(page, gateway, view="wall")
        await expect(page.locator("#wall-none")).to_be_in_viewport(ratio=1)
        await expect(page.locator(".wall-camera")).to_have_count(cameras)
        assert await fits(page, ".wall-camera")
        assert await page.evaluate(OVERFLOW) == [0, 0]


async def test_a_wall_of_more_pixels_is_as_readable(gateway, browser_page):
    heights = []
    for size in (SCREEN, {"width": 3840, "height": 2160}):
        async with browser_page(size=size, tolerate=("404", "409", "503")) as page:
            await sign_in(page, gateway, view="wall")
            await expect(page.locator(".wall-lane")).to_be_visible()
            box = await page.locator(".wall-lane h3").bounding_box()
            heights.append(box["height"] / size["height"])
            assert await page.evaluate(OVERFLOW) == [0, 0]
            assert await fits(page, ".wall-lane")
            await page.get_by_role("button", name="Full screen", exact=True).first.click()
            await expect(page.locator(".wall:fullscreen")).to_have_count(1)
            assert await fits(page, ".wall-lane")
    assert heights[1] == pytest.approx(heights[0], rel=0.2)
