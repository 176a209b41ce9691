"""The page's views: each has an address, shows what it is for, and fits a phone."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio
from page_visitor import sign_in
from playwright.async_api import expect

from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.store import Entry

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
DAY = 86_400_000_000
PHONE = {"width": 360, "height": 740}
VIEWS = ["", "events", "cards", "lines", "health"]


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


async def test_views_have_addresses_and_the_back_button_works(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)
        await page.get_by_role("link", name="Events").click()
        await expect(page).to_have_url(re.compile("/status/events$"))
        await expect(page.get_by_role("heading", name="All events")).to_be_visible()
        await expect(page.get_by_role("heading", name="Lanes")).to_be_hidden()
        await page.get_by_role("link", name="Health").click()
        await expect(page.get_by_role("heading", name="Devices")).to_be_visible()
        await page.go_back()
        await expect(page.get_by_role("heading", name="All events")).to_be_visible()
        await page.go_back()
        await expect(page.get_by_role("heading", name="Lanes")).to_be_visible()
        await expect(page.get_by_role("link", name="Now")).to_have_attribute("aria-current", "page")


@pytest.mark.parametrize(
    ("user", "view"), [("guard", "settings"), ("guard", "cards"), ("nobody", "events"), ("nobody", "lines")]
)
async def test_an_address_of_a_view_that_one_may_not_see_says_so(gateway, browser_page, user, view):
    async with browser_page() as page:
        await sign_in(page, gateway, user, view=view)
        await expect(page.get_by_text("Your account may not see this.")).to_be_visible()
        await expect(page.locator(".view:visible")).to_have_count(1)
        await expect(page.locator(f'#views a[href="/status/{view}"]:visible')).to_have_count(0)


@pytest.mark.parametrize("view", VIEWS)
async def test_a_view_fits_a_phone_and_is_kept_across_a_sign_in(gateway, browser_page, view):
    await gateway.happened("x" * 300)
    async with browser_page(size=PHONE, scheme="dark") as page:
        await sign_in(page, gateway, view=view)
        await expect(page.locator("#board")).to_be_visible()
        assert page.url.endswith(f"/status/{view}")
        await expect(page.locator(f"#view-{view or 'now'}")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await expect(page.get_by_role("link", name="Health")).to_be_in_viewport()


async def test_yesterdays_event_is_found_and_has_an_address(gateway, browser_page):
    yesterday = gateway.clock.wall().micros - DAY
    number = await gateway.happened("Card 0042 was refused.", kind=EventKind.ACCESS_DENIED, date_at=yesterday)
    for count in range(60):
        await gateway.happened(f"Passage {count}.")
    async with browser_page() as page:
        await sign_in(page, gateway, view="events")
        rows = page.get_by_role("list", name="All events").get_by_role("listitem")
        await expect(rows).to_have_count(50)
        await page.get_by_role("button", name="Show older ones").click()
        await expect(rows).to_have_count(62)
        await page.get_by_label("Plate, card or name").fill("0042")
        await page.get_by_role("button", name="Show", exact=True).click()
        await expect(rows).to_have_count(1)
        await rows.get_by_role("link").first.click()
        await expect(page).to_have_url(re.compile(f"/status/events/{number}$"))
        await page.reload()
        await expect(rows).to_have_text(re.compile("Card 0042 was refused."))
        await expect(page.get_by_label("Plate, card or name")).to_be_hidden()  # one event, and nothing before it
        await page.get_by_role("link", name="All events").click()
        await expect(rows).to_have_count(50)
        csv = await page.get_by_role("link", name="CSV").get_attribute("href")
        assert csv.startswith("/status/event/csv?")


async def test_events_are_exported_as_they_are_filtered(gateway, browser_page):
    await gateway.happened("Card 0042 was refused.", kind=EventKind.ACCESS_DENIED)
    async with browser_page() as page:
        await sign_in(page, gateway, view="events")
        await page.get_by_label("Plate, card or name").fill("0042")
        await page.keyboard.press("Tab")
        async with page.expect_download() as waiting:
            await page.get_by_role("link", name="CSV").click()
        file = await (await waiting.value).path()
        lines = file.read_text(encoding="utf-8-sig").splitlines()
        assert len(lines) == 2
        assert "Card 0042 was refused." in lines[1]


async def test_an_unknown_event_is_said(gateway, browser_page):
    async with browser_page(tolerate=("404",)) as page:
        await sign_in(page, gateway, view="events/4711")
        await expect(page.get_by_text("there is no event 4711")).to_be_visible()
        await expect(page.get_by_text("No event passes this filter.")).to_be_hidden()


@pytest.mark.parametrize("typed", ["lanes", "commissioning/", "buses", "lines/field", "EVENTS", "a//b/"])
async def test_an_address_that_is_not_there_leads_to_the_start_and_says_so(gateway, browser_page, typed):
    async with browser_page() as page:
        await sign_in(page, gateway)
        await page.goto(f"{gateway.url}/status/{typed}")
        await expect(page.get_by_text("There is nothing at that address.")).to_be_visible()
        await expect(page.get_by_role("heading", name="Lanes")).to_be_visible()
        await expect(page).to_have_url(f"{gateway.url}/status/")


async def test_a_slash_at_the_end_of_an_address_is_forgiven(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)
        await page.goto(f"{gateway.url}/status/health/")
        await expect(page).to_have_url(f"{gateway.url}/status/health")
        await expect(page.get_by_role("heading", name="Devices")).to_be_visible()


@pytest.mark.parametrize("typed", ["%", "%E9", "none"])
async def test_a_lane_that_is_typed_wrongly_is_said(gateway, browser_page, typed):
    async with browser_page() as page:
        await sign_in(page, gateway)
        await page.goto(f"{gateway.url}/status/lanes/{typed}")
        await expect(page.get_by_text("This site has no such lane.")).to_be_visible()
        await expect(page.get_by_role("heading", name="Inputs and outputs")).to_be_hidden()


async def test_a_card_is_found_suspended_edited_added_and_deleted(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway, view="cards")
        await page.get_by_label("Number, plate or holder").fill("Ada")
        await page.keyboard.press("Enter")
        card = page.get_by_role("list", name="Cards").get_by_role("listitem")
        await expect(card).to_have_count(1)
        await expect(card).to_contain_text("number 00111572 · plate DM 001 · PIN")
        await card.get_by_role("button", name="Suspend").click()
        await expect(card).to_contain_text("suspended")
        await card.get_by_role("button", name="Let it count again").click()
        await expect(card.locator(".status")).to_have_text("active")
        await card.get_by_role("button", name="Edit").click()
        await page.get_by_label("Holder", exact=True).fill("Ada Lovelace")
        await page.get_by_role("button", name="Save").click()
        await expect(card).to_contain_text("Ada Lovelace")
        await page.get_by_role("button", name="New card").click()
        await page.get_by_label("Number printed on it").fill("00199573")
        await page.get_by_label("Holder", exact=True).fill("Ada Byron")
        await page.get_by_role("button", name="Add the card").click()
        await expect(card).to_have_count(2)
        added = card.filter(has_text="Ada Byron")
        await expect(added).to_contain_text("number 00199573")
        await added.get_by_role("button", name="Delete").click()
        await page.get_by_role("button", name="Delete the card").click()
        await expect(card).to_have_count(1)


async def test_a_card_that_is_refused_is_said_in_its_dialog(gateway, browser_page):
    async with browser_page(tolerate=("400", "409")) as page:
        await sign_in(page, gateway, view="cards")
        await page.get_by_role("button", name="New card").click()
        await page.get_by_label("Number printed on it").fill("00111572")
        await page.get_by_role("button", name="Add the card").click()
        await expect(page.locator("#card-dialog-fault")).not_to_be_empty()
        await expect(page.locator("#card-dialog")).to_be_visible()


async def test_lines_show_how_their_units_answer(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway, view="lines")
        line = page.get_by_role("article").filter(has=page.get_by_role("heading", name="yard"))
        await expect(line).to_contain_text("Entry barrier unit 7")
        await expect(line).to_contain_text("8 ms of 300 ms allowed · 4 answered · 2 without an answer")
        await expect(line.get_by_role("img")).to_have_accessible_name(
            "Reply times of the last hour. up to 10 ms: 3 · up to 20 ms: 1"
        )


async def test_who_may_not_see_cards_has_no_view_of_them(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway, "guard")
        await expect(page.get_by_role("link", name="Events")).to_be_visible()
        await expect(page.get_by_role("link", name="Cards")).to_be_hidden()


async def test_a_filter_of_events_has_an_address_and_days_follow_each_other(gateway, browser_page):
    now = gateway.clock.wall().micros
    for days in range(3):
        await gateway.happened(f"{days} days ago, plate AB123", date_at=now - days * DAY)
    async with browser_page(size=PHONE) as page:
        await sign_in(page, gateway, view="events?search=AB123&lane=entry")
        rows = page.get_by_role("list", name="All events").get_by_role("listitem")
        await expect(rows).to_have_count(3)
        await expect(page.get_by_label("Plate, card or name")).to_have_value("AB123")
        await page.get_by_role("button", name="Yesterday").click()
        await expect(rows).to_have_text([re.compile("1 days ago")])
        await expect(page).to_have_url(re.compile("search=AB123"))
        await expect(page.get_by_role("button", name="Yesterday")).to_have_attribute("aria-pressed", "true")
        await page.get_by_role("button", name="The day before").click()
        await expect(rows).to_have_text([re.compile("2 days ago")])
        await page.go_back()
        await expect(rows).to_have_text([re.compile("1 days ago")])
        await page.get_by_role("button", name="The day after").click()
        await expect(rows).to_have_text([re.compile("0 days ago")])
        await page.get_by_role("button", name="All days").click()
        await expect(rows).to_have_count(3)


async def test_a_clip_shows_its_moment_and_an_event_alone_its_proof(gateway, browser_page):
    await gateway.passed()
    now = gateway.clock.wall().micros
    moment = Moment(201, "Moment marked", "", now - 1_000_000, now + 1_000_000, clock_trusted=True)
    event = Event(kind=EventKind.MOMENT_MARKED, date_at=now, clock_trusted=True, text="A bicycle.")
    recorded = await gateway.store.journal.record(Entry(events=(event,), moments=(moment,)))
    await gateway.store.camera_events.mark_ready(recorded.camera_event_ids[0])
    async with browser_page() as page:
        await sign_in(page, gateway, view="events")
        row = page.get_by_role("list", name="All events").get_by_role("listitem").filter(has_text="A bicycle.")
        await row.get_by_role("button", name="Play Moment marked").click()
        await page.locator("#video").evaluate("video => video.pause()")
        await page.get_by_role("button", name="The moment, 1 s after its begin").click()
        await page.wait_for_function("() => document.getElementById('video').currentTime >= 1")
        at = await page.locator("#player-moment").evaluate("node => parseFloat(node.style.getPropertyValue('--at'))")
        assert at == pytest.approx(50, abs=5)
        await page.keyboard.press("Escape")
        await row.get_by_role("link").first.click()
        proof = row.get_by_role("link", name="Proof package")
        await expect(proof).to_have_attribute("href", f"/status/proof/{recorded.event_ids[0]}")
