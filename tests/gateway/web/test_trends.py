"""The counts of each part of the site by day, as the page gets and draws them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from page_visitor import sign_in
from playwright.async_api import expect

from gateway.domain.day_counts import DayCount, Measure
from gateway.domain.events import EventKind

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]


async def with_counts(gateway):
    """Add amounts of today, of ten days ago, and of before what is shown; return today."""
    _, answer = await gateway.call("/status/trends", method="GET")
    today = date.fromisoformat(answer["trends"]["days"][-1])
    known = ((40, 7), (10, 300), (1, 500), (0, 20))
    await gateway.store.day_counts.add(
        [
            *(
                DayCount((today - timedelta(days=back)).isoformat(), Measure.CYCLES, "entry", amount)
                for back, amount in known
            ),
            DayCount(today.isoformat(), Measure.MISSED_VEHICLES, "entry", 3),
            DayCount(today.isoformat(), Measure.FOOTAGE_GAPS, "201", 1),
            DayCount(today.isoformat(), Measure.FOOTAGE_SECONDS, "201", 150),
        ]
    )
    return today


async def test_the_last_four_weeks_are_told_day_by_day(open_gateway):
    async with open_gateway() as gateway:
        today = await with_counts(gateway)
        status, answer = await gateway.call("/status/trends", method="GET")
        assert status == 200
        trends = answer["trends"]
        assert (len(trends["days"]), trends["days"][-1]) == (28, today.isoformat())
        assert trends["since"] == (today - timedelta(days=40)).isoformat()
        lane = trends["lanes"][0]
        assert lane["id"] == "entry"
        assert lane["cycles"] == [*[0] * 17, 300, *[0] * 8, 500, 20]
        assert lane["missed_vehicles"] == [*[0] * 27, 3]
        assert trends["cameras"][0]["seconds"][-1] == 150


async def test_a_cycle_of_this_moment_counts_when_it_is_asked_for(open_gateway):
    async with open_gateway() as gateway:
        await gateway.happened("the gate is open", kind=EventKind.GATE_OPENED)
        _, answer = await gateway.call("/status/trends", method="GET")
        assert answer["trends"]["lanes"][0]["cycles"][-1] == 1


async def test_who_may_not_see_cameras_is_not_told_of_them(open_gateway):
    async with open_gateway() as gateway:
        status, answer = await gateway.call("/status/trends", method="GET", user="guard")
        assert (status, answer["trends"]["cameras"]) == (200, [])


async def test_the_page_draws_them_with_a_table_behind(open_gateway, browser_page):
    async with open_gateway() as gateway, browser_page() as page:
        await with_counts(gateway)
        await sign_in(page, gateway, view="health")
        lane = page.locator("#travels .trend").first
        await expect(lane).to_contain_text("Cycles: 20 today; 30 a day before.")
        await expect(lane).to_contain_text("Vehicles that a loop may have missed: 3 in four weeks, 3 today.")
        await expect(lane).to_contain_text("No input chattered or stuck.")
        figure = lane.locator("figure", has_text="Cycles")
        await expect(figure.locator("svg rect")).to_have_count(28)
        await figure.get_by_text("By day").click()
        rows = figure.get_by_role("row")
        await expect(rows).to_have_count(29)
        assert await rows.nth(2).get_by_role("cell").inner_text() == "500"
        await expect(page.locator("#camera-trends .trend").first).to_contain_text(
            "1 gap in four weeks, 2 min of footage"
        )
