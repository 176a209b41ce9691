"""Every screen at three sizes, in both themes and languages: accessible, nothing cut off, no error in the console.

The checker is axe-core, with its rules for WCAG 2.2 at the levels A and AA.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from lacks import lacks
from page_visitor import SCREENS, sign_in
from playwright.async_api import Page, expect

from drivers.contract import PointState
from gateway.domain.events import EventKind
from gateway.domain.problems import ProblemKind
from gateway.lanes.snapshots import LaneTrouble
from gateway.problems.problem import Acknowledgement, Problem, SitePart
from tests.gateway.web.setups.site import BROKER, fleet_seen

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]

AXE = Path(__file__).parents[2] / "player" / "node_modules" / "axe-core" / "axe.min.js"
SIZES = {"phone": (360, 740), "laptop": (1280, 800), "wide": (1920, 1080)}
_NO_VIDEO = ("409",)
"""What the console says of a camera that has no live picture."""
_ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules that can judge otherwise in another theme, which is colours alone."""
_FIND = """async (rules) => {
    const found = await axe.run(document, {runOnly: rules});
    const said = (one) => one.nodes.map((node) => `${one.id}: ${node.target} ${node.failureSummary}`);
    return found.violations.flatMap(said);
}"""
_CUT_OFF = """() => [...document.querySelectorAll("body *")].filter((node) => {
    const own = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.textContent.trim());
    if (!own || !node.checkVisibility() || node.closest(".hidden")) return false;
    const style = getComputedStyle(node);
    const clips = ["hidden", "clip"];
    return (clips.includes(style.overflowX) && node.scrollWidth > node.clientWidth + 1)
        || (clips.includes(style.overflowY) && node.scrollHeight > node.clientHeight + 1);
}).map((node) => `${node.tagName} ${node.className}: ${node.textContent.trim().slice(0, 60)}`)"""


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.is_file():
        lacks("axe-core is missing: run `make tests/player/node_modules/.package-lock.json`")
    return AXE.read_text(encoding="utf-8")


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    """A site with something to show at every place: events, a lane in trouble, problems of each severity."""
    async with open_gateway(fleet_seen=fleet_seen, broker=lambda: BROKER) as opened:
        for kind in (EventKind.ACCESS_DENIED, EventKind.DEVICE_LOST, EventKind.GATE_OPENED):
            await opened.happened("North entry: card 0042 was refused, for it has expired.", kind=kind)
        trouble = LaneTrouble(ProblemKind.ARMING_LOOP_UNKNOWN, "the arming loop is not known, so no card counts")
        opened.board.show(unable=(trouble,), under=PointState.ON, note="the gate stays open: something is under it")
        known = Acknowledgement("ada", at=1)
        for kind, part, said in (
            (ProblemKind.GATE_OFFLINE, SitePart.DEVICE, None),
            (ProblemKind.DEVICE_OFFLINE, SitePart.DEVICE, known),
            (ProblemKind.CLOCK_NOT_SET, SitePart.GATEWAY, known),
        ):
            problem = Problem(kind=kind, part=part, id="101", name="Barrier", text="It is away.", since=1)
            opened.problems.append(replace(problem, acknowledged=said))
        yield opened


async def _faults_of(page: Page, where: str) -> list[str]:
    """Judge what is shown in the light theme by all rules, and in the dark one by those of colours."""
    found = []
    for theme, rules in (("light", _ALL), ("dark", _OF_COLOURS)):
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        found += [f"{where}, {theme}: {one}" for one in await page.evaluate(_FIND, rules)]
        found += [f"{where}, {theme}: cut off: {one}" for one in await page.evaluate(_CUT_OFF)]
        wider = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        found += [f"{where}, {theme}: {wider} px too wide"] if wider > 0 else []
    return found


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("size", SIZES)
async def test_every_screen_is_accessible_and_whole_in_both_themes(gateway, browser_page, axe, size, language):
    width, height = SIZES[size]
    async with browser_page(size={"width": width, "height": height}, tolerate=_NO_VIDEO, language=language) as page:
        await page.add_init_script(axe)
        await page.goto(f"{gateway.url}/status/")
        await expect(page.locator("#name-field")).to_be_visible()
        faults = await _faults_of(page, "sign-in")
        await sign_in(page, gateway)
        for screen in SCREENS:
            await page.evaluate(
                "address => { history.pushState(null, '', address); dispatchEvent(new PopStateEvent('popstate')); }",
                f"/status/{screen}",
            )
            await page.wait_for_load_state("networkidle")
            faults += await _faults_of(page, screen or "now")
    assert faults == [], "\n".join(faults)


@pytest.mark.parametrize("language", ["en", "fr"])
async def test_no_screen_is_wider_than_a_window_enlarged_four_times(gateway, browser_page, monkeypatch, language):
    """WCAG 2.2, 1.4.10: 320 by 256 pixels are what is left of 1280 by 1024."""
    monkeypatch.setattr(gateway.board, "lanes", lambda: (replace(gateway.board.lane, name="Lieferanteneinfahrt " * 5),))
    async with browser_page(size={"width": 320, "height": 256}, tolerate=_NO_VIDEO, language=language) as page:
        await sign_in(page, gateway)
        wider = {}
        for screen in SCREENS:
            await page.goto(f"{gateway.url}/status/{screen}")
            await expect(page.locator("#board")).to_be_visible()
            await page.wait_for_load_state("networkidle")
            wider[screen] = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert {screen: more for screen, more in wider.items() if more > 0} == {}


async def test_a_long_name_of_the_site_stays_readable_on_the_wall_of_a_phone(gateway, browser_page):
    async with browser_page(
        size=dict(zip(("width", "height"), SIZES["phone"], strict=True)), tolerate=_NO_VIDEO
    ) as page:
        await sign_in(page, gateway, view="wall")
        name = page.locator("#wall-site")
        await name.evaluate("node => (node.textContent = 'Gare de la Est and Company, a rather long name of a site')")
        verdict = page.locator("#wall-verdict")
        await verdict.evaluate("node => (node.textContent = '1 of 12 lanes cannot work, 2 problems')")
        assert await name.evaluate("node => node.getBoundingClientRect().width") > 200


async def test_the_keyboard_reaches_every_control_with_a_visible_focus(gateway, browser_page):
    async with browser_page(tolerate=_NO_VIDEO) as page:
        await sign_in(page, gateway)
        for screen in SCREENS:
            await page.goto(f"{gateway.url}/status/{screen}")
            await expect(page.locator("#board")).to_be_visible()
            wanted = await page.evaluate(_CONTROLS)
            await page.evaluate("document.activeElement.blur()")
            reached, unseen = set(), []
            for _ in range(wanted + 10):
                await page.keyboard.press("Tab")
                number, is_seen, name = await page.evaluate(_FOCUSED)
                reached.add(number)
                unseen += [] if is_seen else [name]
            assert unseen == [], screen
            assert len(reached) >= wanted, screen


_CONTROLS = """() => {
    const all = document.querySelectorAll("a[href], button:not(:disabled), input:not(:disabled), select, summary");
    return [...all].filter((node) => node.checkVisibility({visibilityProperty: true}) && node.tabIndex >= 0).length;
}"""
_FOCUSED = """() => {
    const node = document.activeElement;
    node.dataset.seen ??= String(document.querySelectorAll("[data-seen]").length);
    const style = getComputedStyle(node);
    const shows = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
    const seen = node === document.body || shows || style.boxShadow !== "none";
    return [node.dataset.seen, seen, node.outerHTML.slice(0, 120)];
}"""
