"""The cards' view in a real browser: what was read, unknown cards, why a card opens nothing, and what central lacks."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio
from page_visitor import sign_in
from playwright.async_api import expect

from gateway.domain.credentials import Credential, raw_alias
from gateway.domain.events import EventKind
from gateway.domain.writes import CARD_UPDATE

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
PHONE = {"width": 360, "height": 740}


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


async def read(gateway, credential, *, reason, card_id=None, **more):
    data = {"credential": credential, "reason": reason, "card_id": card_id, **more}
    kind = EventKind.ACCESS_GRANTED if reason == "valid_card" else EventKind.ACCESS_DENIED
    return await gateway.happened(f"card {credential}: decided", kind=kind, data=data)


async def test_a_card_that_was_read_is_looked_up_by_its_reading(gateway, browser_page):
    await read(gateway, "001,11572", reason="valid_card", card_id=4001)
    async with browser_page(size=PHONE) as page:
        await sign_in(page, gateway, view="cards")
        await page.get_by_role("button", name=re.compile("^001,11572")).click()
        card = page.locator("#cards > li")
        await expect(card.locator("strong")).to_have_text(["Ada"])
        await card.get_by_text("Why, and what happened").click()
        await expect(card).to_contain_text("Nothing about the card itself keeps it from opening a gate.")
        await card.get_by_role("button", name="Suspend").click()
        await expect(card.locator(".status")).to_have_text("suspended")
        await card.get_by_role("link", name="What happened with it").click()
        await expect(page).to_have_url(re.compile(r"/status/events\?search=00111572$"))


async def test_an_unknown_reading_is_enrolled_with_what_the_reader_said(gateway, browser_page):
    tag = Credential(32, 0x04A1B2C3)
    await read(gateway, tag.shown(), reason="unknown_credential", read_as=tag.read_as())
    async with browser_page(size=PHONE) as page:
        await sign_in(page, gateway, view="cards")
        await page.get_by_role("list", name="Unknown in the last day").get_by_role("link", name="Enrol").click()
        await expect(page.locator("#card-read-as")).to_have_text("uid 04A1B2C3")
        await page.get_by_label("Holder", exact=True).fill("Grace")
        await page.get_by_role("button", name="Add the card").click()
        await expect(page.get_by_text("Added: it counts at once.")).to_be_visible()
        await expect(page).to_have_url(re.compile(r"/status/cards$"))
    (card,) = await gateway.store.cards.matching((raw_alias(32, 0x04A1B2C3),))
    assert card.holder == "Grace"


async def test_what_central_does_not_have_yet_is_shown(gateway, browser_page):
    await gateway.store.pending_writes.hold(
        CARD_UPDATE, 4001, {"id": 4001, "number": "77"}, now=gateway.clock.wall().micros, sends=True
    )
    await gateway.happened(
        "access card 4001 was changed here and at central: note",
        kind=EventKind.CHANGED_ON_BOTH_SIDES,
        data={"kind": "access_card", "record_id": 4001},
    )
    async with browser_page(size=PHONE) as page:
        await sign_in(page, gateway, view="cards")
        waiting = page.get_by_role("list", name="Not yet at central").get_by_role("listitem")
        await expect(waiting.filter(has_text=re.compile("^77: changed since .*, waits$"))).to_have_count(1)
        both = page.get_by_role("list", name="Changed here and at central")
        await expect(both).to_contain_text("access card 4001 was changed here and at central: note")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


async def test_a_card_that_is_out_of_its_time_does_not_look_well(gateway, browser_page):
    for number, bounds in (("501", {"valid_until": "2020-01-31"}), ("502", {"valid_from": "2099-01-01"})):
        status, _ = await gateway.call("/v1/access", {"number": number, "zones": ["north"], **bounds}, method="PUT")
        assert status == 200
    async with browser_page(size=PHONE) as page:
        await sign_in(page, gateway, view="cards")
        card = page.locator("#cards > li")
        for number, state, why in (
            ("501", "expired", "It has expired: it was valid until"),
            ("502", "not valid yet", "It is not valid before"),
        ):
            await page.get_by_label("Number, plate or holder").fill(number)
            await page.get_by_role("button", name="Find").click()
            await expect(card.locator(".status")).to_have_text([state])
            await card.get_by_text("Why, and what happened").click()
            await expect(card).to_contain_text(why)
            await expect(card).to_contain_text("It is for these zones or lanes alone: north.")


async def test_what_is_said_of_an_unknown_reading_is_in_sight_on_a_phone(open_gateway, browser_page):
    async with open_gateway() as gateway, browser_page(size=PHONE) as page:
        for number in range(12):
            fields = Credential(32, 0x04A1B200 + number)
            await read(gateway, fields.shown(), reason="unknown_credential", read_as=fields.read_as())
        await sign_in(page, gateway, view="cards")
        await expect(page.locator("#unknown-reads > li")).to_have_count(12)
        await page.locator("#card-reads-list button").first.click()
        told = page.get_by_text("No card has this in its number, plate or name.")
        await expect(told).to_be_in_viewport(ratio=1)
        await page.locator("#cards-enrol").click()
        await expect(page.locator("#card-read-as")).to_contain_text("uid 04A1B2")
        await page.get_by_role("button", name="Cancel").click()
        await page.get_by_label("Number, plate or holder").fill("")
        await page.get_by_role("button", name="Find").click()
        await expect(page.locator("#cards-enrol")).to_be_hidden()
        below = "([desk, list]) => Boolean(desk.compareDocumentPosition(list) & Node.DOCUMENT_POSITION_FOLLOWING)"
        both = [await page.locator(name).element_handle() for name in ("#card-desk", "#cards")]
        assert await page.evaluate(below, both)
