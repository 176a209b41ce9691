"""The page as its line, its session, its clock or its place on the screen fails it, in a real browser."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta

import pytest
import pytest_asyncio
from page_visitor import sign_in
from playwright.async_api import expect
from relay import relay_to

from drivers.contract import GatePosition
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Problem, SitePart

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
PHONE = {"width": 360, "height": 740}
NO_VIEW = ("503", "409")
HOURS = 3 * 3600
SCREENS = ("", "lanes/entry", "commissioning/entry", "events", "cards", "lines", "health", "settings", "wall")
COUNT_STREAMS = """() => {
    globalThis.streams = [];
    globalThis.EventSource = class extends EventSource {
        constructor(address) {
            super(address);
            streams.push(this);
            this.addEventListener("here", () => (this.beats = (this.beats ?? 0) + 1));
        }
    };
}"""
OPEN_STREAMS = "() => streams.filter((stream) => stream.readyState !== EventSource.CLOSED).length"
BEAT = "(had) => (streams.at(-1).beats ?? 0) > had"
SEEN_AS = """(state) => {
    Object.defineProperty(document, "visibilityState", { get: () => state, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
SMALL = """() => [...document.querySelectorAll("button, select, summary, input:not([type=checkbox], [type=radio])")]
    .filter((node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest(".hidden, .moment"))
    .filter((node) => node.getBoundingClientRect().height < 43.5 || node.getBoundingClientRect().width < 43.5)
    .map((node) => node.outerHTML.slice(0, 120))"""


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


def commanded(gateway):
    return [command.action for command in gateway.board.commands]


async def test_a_stop_need_not_wait_for_an_open(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)
        answered = asyncio.Event()

        async def late(route):
            await answered.wait()
            await route.continue_()

        await page.route("**/v1/device/open", late)
        await page.get_by_role("button", name="Open Main entry").click()
        await expect(page.get_by_role("button", name="Open Main entry")).to_be_disabled()
        await page.get_by_role("button", name="Stop Main entry").click()
        await expect(page.get_by_text("Stop recorded for Main entry.")).to_be_visible()
        assert commanded(gateway)[-1] is GateAction.STOP
        answered.set()
        await expect(page.get_by_role("button", name="Open Main entry")).to_be_enabled()


async def test_a_command_that_the_network_held_back_is_refused(gateway, browser_page):
    async def held_back(route):
        sent = datetime.fromisoformat(route.request.headers["sent-at"])
        assert abs(sent.timestamp() - gateway.clock.wall().micros / 1e6) < 5
        earlier = (sent - timedelta(seconds=20)).isoformat()
        await route.continue_(headers={**route.request.headers, "sent-at": earlier})

    async with browser_page(tolerate=NO_VIEW) as page:
        await sign_in(page, gateway)
        await page.route("**/v1/device/open", held_back)
        had = len(gateway.board.commands)
        await page.get_by_role("button", name="Open Main entry").click()
        await expect(page.get_by_text("The command came too late, so it was not carried out.")).to_be_visible()
        assert len(gateway.board.commands) == had


async def test_a_command_by_keyboard_keeps_its_place(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)
        await page.get_by_role("button", name="Open Main entry").focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Open recorded for Main entry.")).to_be_visible()
        await expect(page.get_by_role("button", name="Open Main entry")).to_be_focused()


async def test_a_question_that_is_open_as_the_line_goes_commands_nothing(open_gateway, browser_page):
    async with open_gateway() as gateway, relay_to(gateway.url) as front, browser_page(tolerate=("ERR_",)) as page:
        gateway.url = front.url
        sent = []
        page.on("request", lambda request: sent.append(request.url) if "/device/close" in request.url else None)
        await sign_in(page, gateway)
        close = page.get_by_role("button", name="Close Main entry")
        await close.focus()
        await page.keyboard.press("Enter")
        await front.cut()
        await expect(page.get_by_text("Connection lost")).to_be_visible()
        await page.locator("#confirm-yes").click()
        await expect(page.get_by_text("There is no connection, so nothing was sent.")).to_be_visible()
        await front.join()
        await expect(page.get_by_text("Connection lost")).to_be_hidden()
        assert sent == []
        assert commanded(gateway) == []


async def test_the_keyboard_goes_on_where_it_was_when_the_line_is_back(open_gateway, browser_page):
    async with open_gateway() as gateway, relay_to(gateway.url) as front, browser_page(tolerate=("ERR_",)) as page:
        gateway.url = front.url
        await sign_in(page, gateway)
        stop = page.get_by_role("button", name="Stop Main entry")
        await stop.focus()
        await front.cut()
        await expect(page.get_by_text("Connection lost")).to_be_visible()
        await front.join()
        await expect(page.get_by_text("Connection lost")).to_be_hidden()
        await expect(stop).to_be_focused()


@pytest.mark.parametrize(
    ("view", "fault", "there"),
    [
        ("events", "#history-fault", "#history > li"),
        ("cards", "#card-fault", "#cards > li"),
        ("health", "#trends-fault", "#travels > li"),
    ],
)
async def test_what_failed_while_the_line_was_lost_is_asked_for_again(open_gateway, browser_page, view, fault, there):
    async with open_gateway() as gateway, relay_to(gateway.url) as front, browser_page(tolerate=("ERR_",)) as page:
        gateway.url = front.url
        await sign_in(page, gateway)
        await front.cut()
        await expect(page.get_by_text("Connection lost")).to_be_visible()
        await page.get_by_role("link", name=view.capitalize(), exact=True).click()
        await expect(page.locator(fault)).to_have_text("The gateway does not answer.")
        await front.join()
        await expect(page.locator(there).first).to_be_visible()
        await expect(page.locator(fault)).to_be_empty()


@pytest.mark.parametrize("view", ["wall", "lanes/entry"])
async def test_full_screen_says_that_the_line_is_lost(open_gateway, browser_page, view):
    tolerate = ("ERR_", *NO_VIEW)
    async with open_gateway() as gateway, relay_to(gateway.url) as front, browser_page(tolerate=tolerate) as page:
        gateway.url = front.url
        await sign_in(page, gateway, view=view)
        await page.locator("#board").get_by_role("button", name="Full screen", exact=True).first.click()
        await expect(page.locator(":fullscreen")).to_have_count(1)
        await front.cut()
        await expect(page.get_by_text("Connection lost")).to_be_visible()
        place = await page.locator("#lost").bounding_box()
        with_banner = await page.screenshot(clip=place)
        await page.locator("#lost").evaluate("(banner) => (banner.style.visibility = 'hidden')")
        assert with_banner != await page.screenshot(clip=place), "the banner is covered"
        await page.locator("#lost").evaluate("(banner) => (banner.style.visibility = '')")
        await front.join()
        await expect(page.get_by_text("Connection lost")).to_be_hidden()


async def test_a_session_that_ends_says_why_and_goes_on_where_one_was(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway, view="events?severity=warning")
        await expect(page.locator("#sign-in-why")).to_be_empty()
        await page.evaluate("fetch('/v1/auth/logout', { method: 'POST' })")
        gateway.clock.pushed += 11  # so that the session is looked at again
        await expect(page.locator("#sign-in-why")).to_contain_text("Your session has ended")
        await page.locator("#name-field").fill("chief")
        await page.locator("#password-field").fill("chief")
        await page.locator("#sign-in-form button").click()
        await expect(page.locator("#history-severity")).to_have_value("warning")
        await page.locator("#user summary").click()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await expect(page.locator("#sign-in-why")).to_be_empty()


@pytest.mark.parametrize("step", [HOURS, -HOURS])
async def test_a_phone_whose_clock_is_set_tells_no_wrong_age(open_gateway, browser_page, step):
    async with open_gateway() as gateway, browser_page() as page:
        since = gateway.clock.wall().micros - 120_000_000
        gateway.problems.append(
            Problem(
                kind=ProblemKind.GATE_OFFLINE,
                part=SitePart.DEVICE,
                id="1",
                name="Barrier",
                text="It is away.",
                since=since,
            )
        )
        await page.add_init_script(f"({COUNT_STREAMS})()")
        await page.clock.install()
        await sign_in(page, gateway)
        await expect(page.locator(".problem-since")).to_have_text(re.compile(r"for \d min"))
        await page.clock.set_system_time((await page.evaluate("Date.now()")) / 1000 + step)
        had = await page.evaluate("streams.at(-1).beats ?? 0")
        await page.wait_for_function(BEAT, arg=had + 1)
        await page.clock.run_for(1100)  # ages are told each second
        await expect(page.locator(".problem-since")).to_have_text(re.compile(r"for \d min"))


async def test_what_came_while_the_browser_slept_is_asked_for_anew(gateway, browser_page):
    async with browser_page() as page:
        await page.add_init_script(f"({COUNT_STREAMS})()")
        await page.clock.install()
        await sign_in(page, gateway)
        await expect(page.get_by_text("Gate", exact=False).first).to_be_visible()
        had = await page.evaluate("streams.length")
        await page.clock.set_system_time((await page.evaluate("Date.now()")) / 1000 + HOURS)
        gateway.board.show(note="it has slept")
        await page.wait_for_function("(had) => streams.length > had", arg=had)
        await expect(page.get_by_text("it has slept").first).to_be_visible()
        await expect(page.get_by_text("Connection lost")).to_be_hidden()
        assert await page.evaluate(OPEN_STREAMS) == 1


async def test_a_page_that_nobody_sees_leaves_its_connection_to_others(gateway, browser_page):
    async with browser_page() as page:
        await page.add_init_script(f"({COUNT_STREAMS})()")
        await page.clock.install()
        await sign_in(page, gateway)
        await expect(page.get_by_text("Gate", exact=False).first).to_be_visible()
        await page.evaluate(SEEN_AS, "hidden")
        for number in range(20):
            await page.clock.run_for(3000)
            if not await page.evaluate(OPEN_STREAMS):
                break
            gateway.board.show(note=f"look {number}")
            await expect(page.get_by_text(f"look {number}", exact=True).first).to_be_attached()  # it has heard of us
        assert await page.evaluate(OPEN_STREAMS) == 0
        gateway.board.show(position=GatePosition.STOPPED)
        await page.evaluate(SEEN_AS, "visible")
        await expect(page.get_by_text("Gate stopped")).to_be_visible()
        await expect(page.get_by_text("Connection lost")).to_be_hidden()
        assert await page.evaluate(OPEN_STREAMS) == 1


async def test_on_a_phone_each_control_is_as_large_as_a_thumb(gateway, browser_page):
    await gateway.happened("card 0042 denied: the card has expired", kind=EventKind.ACCESS_DENIED)
    found = {}
    async with browser_page(size=PHONE, language="fr-FR", tolerate=NO_VIEW) as page:
        await page.goto(f"{gateway.url}/status/")
        await expect(page.locator("#name-field")).to_be_visible()
        found["sign-in"] = await page.evaluate(SMALL)
        await sign_in(page, gateway)
        for screen in SCREENS:
            await page.goto(f"{gateway.url}/status/{screen}")
            await expect(page.locator("#board")).to_be_visible()
            await page.wait_for_load_state("networkidle")
            found[screen] = await page.evaluate(SMALL)
    assert {screen: small for screen, small in found.items() if small} == {}


async def test_events_of_the_wall_stay_within_a_phone(gateway, browser_page):
    await gateway.happened("the vehicle left the loop before it was admitted", kind=EventKind.VEHICLE_BACKED_OUT)
    async with browser_page(size=PHONE, language="fr-FR", tolerate=NO_VIEW) as page:
        await sign_in(page, gateway, view="wall")
        await expect(page.locator("#wall-events li").first).to_be_visible()
        right = "(rows) => Math.max(...rows.map((row) => row.getBoundingClientRect().right))"
        edge = await page.locator("#wall-events").evaluate("(list) => list.getBoundingClientRect().right")
        assert await page.locator("#wall-events li > *").evaluate_all(right) <= edge
