"""Central on the page, and its questions about them; in a real browser."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio
from page_visitor import sign_in
from playwright.async_api import expect

from gateway.domain.problems import ProblemKind
from gateway.domain.server_lines import CentralNotice
from gateway.domain.writes import CARD_CREATE, CARD_UPDATE

SINCE = 1_767_225_600_000_000
PHONE = {"width": 390, "height": 800}
pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


async def changes(gateway, numbers):
    """Rows of changes of cards."""
    for number in numbers:
        body = {"id": number, "number": "0042", "note": "by the oak"}
        await gateway.store.pending_writes.hold(CARD_UPDATE, number, body, now=SINCE, sends=True)
    return [row for row in await gateway.store.outbox.due(now=0, limit=500) if row.kind == "access_card"]


async def test_everything_is_fetched_anew_and_what_is_wrong_with_central_is_seen(gateway, browser_page):
    async with browser_page(size=PHONE) as page:
        await sign_in(page, gateway, view="health")
        central = page.locator("#central-section")
        await expect(central).to_contain_text("40 access cards, 3 devices, 1 cameras, fetched")
        await expect(central.locator("#central-notices")).to_be_hidden()
        gateway.central.show(
            notices=(CentralNotice(ProblemKind.CENTRAL_CLOCK_DIFFERS, "central's clock is 90 s behind this machine's"),)
        )
        gateway.store.changes.bump()
        await expect(central.locator("#central-notices li")).to_have_text(
            "central's clock is 90 s behind this machine's"
        )
        await central.get_by_role("button", name="Fetch everything again").click()
        await expect(page.get_by_text("Everything is fetched again as soon as central answers.")).to_be_visible()
        assert gateway.central.asked_by == ["user:chief"]
        gateway.central.show(progress="access cards: 20 of 40")
        gateway.store.changes.bump()
        await expect(central).to_contain_text("Fetching access cards: 20 of 40")
        await expect(central.get_by_role("button", name="Fetching everything again")).to_be_disabled()


async def test_central_that_refuses_the_sign_in_is_not_called_online(gateway, browser_page):
    kind = ProblemKind.CENTRAL_SIGN_IN_REFUSED
    gateway.central.show(notices=(CentralNotice(kind, "central refuses the user name or the password"),))
    try:
        async with browser_page() as page:
            await sign_in(page, gateway, view="health")
            words = "Answers, but refuses the sign-in; the site works on its own"
            await expect(page.locator("#central-state")).to_have_text(words)
            await expect(page.locator("#central-lamp")).to_have_class("lamp bad")
            await expect(page.locator("#pill-central")).to_have_text("Central refuses sign-in")
            await expect(page.locator("#pill-central")).to_have_class("pill warn")
    finally:
        gateway.central.show(notices=())


async def test_what_central_refused_is_changed_and_let_go_of_by_who_may(gateway, browser_page, tmp_path):
    for number in (4001, 4002):
        body = {"id": number, "number": "0042", "note": "<b>by the oak</b>"}
        await gateway.store.pending_writes.hold(CARD_UPDATE, number, body, now=SINCE, sends=True)
    for row in [row for row in await gateway.store.outbox.due(now=0) if row.kind == "access_card"]:
        await gateway.store.outbox.park(row, error="number: 0042 is already used")
    async with browser_page(size=PHONE, tolerate=("400",)) as page:
        await sign_in(page, gateway, view="health")
        refused = page.get_by_role("list", name="Refused by central").get_by_role("listitem")
        await expect(refused).to_have_count(2)
        await expect(refused.first).to_contain_text("<b>by the oak</b>")
        await expect(refused.first).to_contain_text("number: 0042 is already used")
        await refused.first.scroll_into_view_if_needed()
        await page.screenshot(path=tmp_path / "refused.png")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await refused.first.get_by_role("button", name="Change").click()
        await page.get_by_label("Field").fill("number=0043")
        await page.get_by_role("button", name="Change and send").click()
        await expect(refused).to_have_count(1)
        await refused.get_by_role("button", name="Drop").click()
        await page.locator("#confirm-yes").click()
        await expect(refused).to_have_count(0)
    (row,) = await gateway.store.pending_writes.waiting("access_card", 4001)
    assert (row.body["number"], row.refused) == ("0043", "")
    assert not await gateway.store.pending_writes.waiting("access_card", 4002)
    assert (await gateway.store.outbox.books()).balance()
    async with browser_page() as page:
        await sign_in(page, gateway, "guard", view="health")
        await expect(page.get_by_role("list", name="Refused by central")).to_be_hidden()


async def test_enter_does_what_is_asked_and_what_is_wrong_is_said_beside_the_field(gateway, browser_page):
    (row,) = await changes(gateway, [4001])
    await gateway.store.outbox.park(row, error="number: 0042 is already used")
    async with browser_page(size=PHONE, tolerate=("400",)) as page:
        await sign_in(page, gateway, view="health")
        await page.get_by_role("button", name="Change: access card 4001").click()
        field = page.get_by_label("Field")
        for said, fault in (
            ("number 0043", "Write the field's name, an equals sign and the value: name=value."),
            ("colour=red", "colour: is no field of this"),
            ("card_number=36028797018963969", "is too large for this page: use edge-gateway outbox edit."),
            ("card_number=1e400", "is too large for this page: use edge-gateway outbox edit."),
        ):
            await field.fill(said)
            await field.press("Enter")
            await expect(page.get_by_role("dialog").get_by_role("alert")).to_have_text(
                re.compile(re.escape(fault), re.IGNORECASE)
            )
            await expect(field).to_have_value(said)
            await expect(field).to_be_focused()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await field.fill("number=0043")
        await field.press("Enter")
        await expect(page.get_by_role("dialog")).to_be_hidden()
        await expect(page.get_by_text("Changed and sent again.")).to_be_visible()
        await page.get_by_role("link", name="Now").click()
        await page.get_by_role("button", name="Correct the count of Garage").click()
        await page.get_by_label("Vehicles inside").fill("2")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_be_hidden()
        await page.get_by_role("button", name="Correct the count of Garage").click()
        await expect(page.get_by_role("dialog").get_by_role("alert")).to_be_hidden()
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.locator("#areas .area-count")).to_have_text("0 of 2")
    (held,) = await gateway.store.pending_writes.waiting("access_card", 4001)
    assert held.body["number"] == "0043"


async def test_of_what_nobody_knows_a_person_says_that_central_lacks_it(gateway, browser_page):
    await gateway.store.pending_writes.hold(CARD_CREATE, None, {"number": "77"}, now=SINCE, sends=True)
    (row,) = [row for row in await gateway.store.outbox.due(now=0) if row.kind == "access_card"]
    await gateway.store.outbox.begin(row)
    await gateway.store.unknown_outcomes.leave_to_a_person(row, reason="it may be at central")
    async with browser_page() as page:
        await sign_in(page, gateway, view="health")
        await page.get_by_role("button", name="Central has it").click()
        await page.get_by_label("Central's id").fill("five")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("is a whole number")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Central lacks it").click()
        await page.locator("#confirm-yes").click()
        await expect(page.get_by_text("Sent again.", exact=True)).to_be_visible()
        await expect(page.get_by_role("list", name="Refused by central")).to_be_hidden()
    told = await gateway.store.refused.get(row.id)
    assert (told.parked, told.begun) == (False, False)


async def test_how_many_more_were_refused_is_said_and_the_rest_is_shown_when_asked_for(gateway, browser_page):
    rows = await changes(gateway, range(4001, 4104))
    for row in rows:
        await gateway.store.outbox.park(row, error="number: 0042 is already used")
    async with browser_page() as page:
        await sign_in(page, gateway, view="health")
        refused = page.get_by_role("list", name="Refused by central").get_by_role("listitem")
        await expect(refused).to_have_count(100)
        await expect(page.locator("#refused-rest")).to_contain_text("The oldest 100 of 103 that central refused.")
        await page.get_by_role("button", name="Show more").click()
        await expect(refused).to_have_count(103)
        await expect(page.locator("#refused-rest")).to_be_hidden()


async def test_why_something_waits_and_books_that_do_not_balance_are_said(gateway, browser_page):
    rows = await changes(gateway, range(4001, 4004))
    error = "PATCH /v1/access: permission denied: can_edit_access_cards"
    for row in rows[:2]:
        await gateway.store.outbox.failed(row, error=error, next_at=SINCE)
    async with browser_page(size=PHONE) as page:
        await sign_in(page, gateway, view="health")
        why = page.get_by_role("list", name="Why records wait").get_by_role("listitem")
        await page.locator("#held-title").press("Enter")
        await expect(why.filter(has_text="access card: update")).to_have_text(
            [re.compile(f"^2 . access card: update, since .*: {error}$"), re.compile("^1 . .*: not tried yet$")]
        )
        await expect(page.locator("#books-fault")).to_be_hidden()
        await expect(page.locator("#books-words")).to_contain_text(re.compile(r"^\d+ records wait for central"))
        async with page.expect_download() as download:
            await page.get_by_role("link", name="Support bundle").click()
        assert (await download.value).suggested_filename.endswith(".tar.gz")
        await gateway.store.database.write(
            lambda connection: connection.execute("UPDATE book SET count = count + 1 WHERE name = 'accepted'")
        )
        gateway.store.changes.bump()
        await expect(page.locator("#books-fault")).to_contain_text("The books do not balance")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
