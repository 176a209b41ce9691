"""Two technicians who change the same thing at once, each in a browser: nothing is lost without a sentence."""

from __future__ import annotations

import pytest
import pytest_asyncio
from page_visitor import sign_in
from playwright.async_api import expect

from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Problem, SitePart

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
MEANWHILE = "Somebody else has changed this meanwhile, so nothing was done."


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


async def test_a_card_that_the_other_saved_first(gateway, browser_page):
    async with browser_page() as one, browser_page(tolerate=("412",)) as other:
        for page in (one, other):
            await sign_in(page, gateway, view="cards")
            await page.get_by_role("button", name="Edit: Ada").click()
        for page, name in ((one, "Ana"), (other, "Bo")):
            await page.get_by_label("Holder", exact=True).fill(name)
            await page.get_by_role("button", name="Save").click()
            await expect(page.get_by_text("Saved.") if page is one else page.get_by_text(MEANWHILE)).to_be_visible()
        await other.get_by_role("button", name="Cancel").click()
        await other.get_by_role("button", name="Edit: Ana").click()
        await other.get_by_label("Holder", exact=True).fill("Bo")
        await other.get_by_role("button", name="Save").click()
        await expect(other.locator("#cards strong")).to_have_text(["Bo"])


async def test_an_order_that_the_other_gave_first(gateway, browser_page):
    async with browser_page() as one, browser_page(tolerate=("409",)) as other:
        for page, order in ((one, "Hold open"), (other, "Lock down")):
            await sign_in(page, gateway)
            await page.get_by_label("Standing order of Main entry").select_option(order)
        await one.locator("#ask-field").fill("delivery")
        await one.locator("#ask-yes").click()
        await expect(other.locator("#lanes .order")).to_contain_text("the lane is held open by chief: delivery")
        await other.locator("#ask-yes").click()
        told = other.locator("#ask-fault")
        await expect(told).to_contain_text("meanwhile: the lane is held open by chief: delivery")
        assert gateway.board.lanes()[0].order == "hold_open"
        await other.locator("#ask-yes").click()
        await expect(other.locator("#lanes .order")).to_contain_text("the lane is locked down by chief")


async def test_a_problem_that_the_other_knows_of_already(gateway, browser_page):
    gateway.problems.append(
        Problem(kind=ProblemKind.CLOCK_NOT_SET, part=SitePart.GATEWAY, id="", name="Gateway", text="unset", since=1)
    )
    async with browser_page() as one, browser_page() as other:
        for page in (one, other):
            await sign_in(page, gateway)
            await page.locator(".problem summary").click()
        await one.get_by_role("button", name="Silence for 8 hours").click()
        await expect(other.locator(".known-by")).to_contain_text("chief knows of it since ")
        await expect(other.get_by_role("button", name="I know of it")).to_be_hidden()
