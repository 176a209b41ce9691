"""A lane's own view in a real browser: its picture over its buttons, a command followed, inputs, passages, a trial."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from page_visitor import sign_in
from playwright.async_api import expect

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.events import EventKind
from gateway.domain.problems import ProblemKind
from gateway.lanes.snapshots import CommandSnapshot, LaneTrouble, Phase
from gateway.problems.problem import Problem, SitePart

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
PHONE = {"width": 360, "height": 740}
NO_VIEW = ("503", "409")
"""The tests' cameras have no worker that shows them live."""


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


@pytest.fixture
def lane_page(browser_page):
    """Opens a page in a browser that plays no HLS: of a camera that nobody shows live there are stills."""

    @asynccontextmanager
    async def opened(size=None):
        async with browser_page(size=size, tolerate=NO_VIEW) as page:
            await page.add_init_script("HTMLMediaElement.prototype.canPlayType = () => ''")
            yield page

    return opened


def command(gateway, state, *, action=GateAction.OPEN, detail=""):
    return CommandSnapshot("1", action, state, "chief", gateway.clock.wall().micros, detail)


async def test_a_command_is_followed_until_the_gate_has_moved_or_why_not(gateway, lane_page):
    async with lane_page(size=PHONE) as page:
        await sign_in(page, gateway, view="lanes/entry")
        await expect(page.get_by_role("heading", name="Main entry")).to_be_visible()
        steps = page.locator("#lane .followed li")
        for state, position, done, following in (
            (CommandState.SENT, GatePosition.CLOSED, ["asked"], "acknowledged"),
            (CommandState.ACKNOWLEDGED, GatePosition.CLOSED, ["asked", "acknowledged"], "opening"),
            (CommandState.DONE, GatePosition.OPENING, ["asked", "acknowledged", "opening"], "open"),
            (CommandState.DONE, GatePosition.OPEN, ["asked", "acknowledged", "opening", "open"], None),
        ):
            gateway.board.show(command=command(gateway, state), position=position)
            await expect(page.locator("#lane .followed li.done")).to_have_text(done)
            if following:
                await expect(page.locator("#lane .followed li.next")).to_have_text(following)
            await expect(steps).to_have_count(4)
        refused = "a vehicle is in the way"
        gateway.board.show(command=command(gateway, CommandState.REFUSED, action=GateAction.CLOSE, detail=refused))
        await expect(steps).to_have_text(["asked", f"not done: {refused}"])
        await page.get_by_role("button", name="Open Main entry").click()
        await expect(page.locator("#lane .followed")).to_contain_text("Open by chief")


async def test_the_picture_covers_no_button_and_falls_back_to_stills(gateway, lane_page):
    async with lane_page(size=PHONE) as page:
        await sign_in(page, gateway, view="lanes/entry")
        await expect(page.locator("#lane .live img")).to_be_visible()
        await expect(page.locator("#lane .live-state")).to_have_text("Stills")
        picture = await page.locator("#lane .live").bounding_box()
        for name in ("Open Main entry", "Close Main entry", "Stop Main entry", "Hold Main entry open"):
            button = page.get_by_role("button", name=name)
            await expect(button).to_be_in_viewport(ratio=1)
            assert (await button.bounding_box())["y"] >= picture["y"] + picture["height"]


async def test_full_screen_keeps_the_buttons(gateway, lane_page):
    async with lane_page() as page:
        await sign_in(page, gateway, view="lanes/entry")
        await page.locator("#lane").get_by_role("button", name="Full screen").click()
        await expect(page.locator(".lane:fullscreen")).to_have_count(1)
        await expect(page.get_by_role("button", name="Open Main entry")).to_be_in_viewport(ratio=1)
        await page.locator("#lane").get_by_role("button", name="Full screen").click()
        await expect(page.locator(".lane:fullscreen")).to_have_count(0)


async def test_a_gate_is_held_open_and_let_go(gateway, lane_page):
    async with lane_page(size=PHONE) as page:
        await sign_in(page, gateway, view="lanes/entry")
        await page.get_by_role("button", name="Hold Main entry open").click()
        await page.get_by_role("dialog").get_by_label("Why").fill("delivery")
        await page.get_by_role("button", name="Hold open", exact=True).click()
        await expect(page.locator("#lane .order")).to_contain_text("held open by chief: delivery")
        await page.get_by_role("button", name="End hold of Main entry").click()
        await page.get_by_role("button", name="Let work as scheduled").click()
        await expect(page.locator("#lane .order")).to_be_hidden()


async def test_inputs_have_an_age_and_passages_a_picture(gateway, lane_page):
    async with lane_page() as page:
        await sign_in(page, gateway, view="lanes/entry")
        points = page.locator("#lane-points li")
        await expect(points).to_have_count(3)
        await expect(points.first).to_contain_text("Gate: closed for ")
        await expect(points.first).to_contain_text("Entry barrier · reported 0 s ago")
        passages = page.get_by_role("list", name="Last passages").get_by_role("listitem")
        await expect(passages).to_have_count(1)
        await expect(passages.locator("img")).to_be_visible()
        await gateway.passed("A van passed.")
        await expect(passages).to_have_count(2)
        await expect(passages.first).to_contain_text("A van passed.")
        await passages.last.get_by_role("link").click()
        await expect(page).to_have_url(re.compile(r"/status/events/\d+$"))


async def test_the_inputs_of_a_lane_and_its_card_are_of_one_stream(gateway, lane_page):
    async with lane_page() as page:
        asked = {"status": 409, "json": {"success": False, "error": "no ages"}}
        await page.route("**/status/lane/points/**", lambda route: route.fulfill(**asked))
        await sign_in(page, gateway, view="lanes/entry")
        points = page.locator("#lane-points li")
        await expect(points.first).to_contain_text("Gate: closed")
        gateway.board.show(position=GatePosition.OPEN, vehicle=PointState.ON)
        await expect(page.locator("#lane .gate-text")).to_have_text("Gate open")
        await expect(points.first).to_contain_text("Gate: open")
        await expect(points.nth(1)).to_contain_text("Arming loop: on")


async def test_why_it_did_not_open_is_one_sentence_and_an_unknown_card_is_enrolled(gateway, lane_page):
    data = {"credential": "0815", "reason": "expired", "trace": "known: passed (card 7); validity: FAILED (until May)"}
    async with lane_page(size=PHONE) as page:
        await gateway.happened(
            "card 0815: the card has expired", kind=EventKind.ACCESS_DENIED, device_id=101, data=data
        )
        await sign_in(page, gateway, view="lanes/entry")
        said = page.locator("#lane-read-text")
        await expect(said).to_have_text(re.compile(r"^Not opened at .* for card 0815, because the card has expired\.$"))
        await expect(page.locator("#lane-enrol")).to_be_hidden()
        await page.get_by_text("Each rule").first.click()
        await expect(page.locator("#lane-trace .failed")).to_have_text("validity: FAILED (until May)")
        plate = data | {"credential": "DM77", "form": "plate"}
        await gateway.happened(
            "plate DM77: the card has expired", kind=EventKind.ACCESS_DENIED, device_id=101, data=plate
        )
        await expect(said).to_contain_text("for plate DM77, because the card has expired.")
        data |= {"credential": "4712", "reason": "unknown_credential"}
        await gateway.happened(
            "card 4712: no card has this number", kind=EventKind.ACCESS_DENIED, device_id=101, data=data
        )
        await expect(said).to_contain_text("card 4712, because no card has this number or plate.")
        await page.locator("#lane-enrol").click()
        await expect(page.get_by_label("Number printed on it")).to_have_value("4712")


async def test_a_card_is_tested_and_opens_only_if_the_person_says_so(gateway, lane_page):
    async with lane_page(size=PHONE) as page:
        await sign_in(page, gateway, view="lanes/entry")
        await page.get_by_label("Number or plate").fill("0816")
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(page.locator("#try-result")).to_contain_text("Test: would not open")
        await expect(page.get_by_role("button", name="Open the gate now")).to_be_hidden()
        await page.get_by_label("Number or plate").fill("00111572")
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(page.locator("#try-result")).to_contain_text(
            "00111572 of Ada: the card is valid. Nothing was opened."
        )
        before = len(gateway.board.commands)
        await page.get_by_role("button", name="Open the gate now").click()
        await expect(page.get_by_text("Open recorded for Main entry")).to_be_visible()
        assert len(gateway.board.commands) == before + 1
    latest = await gateway.store.events.latest(limit=5)
    assert "test by chief: card 00111572 would be let in: the card is valid" in [one.description for one in latest]


async def test_a_lane_that_is_not_there_is_said_and_a_guard_sees_no_controls(gateway, lane_page):
    async with lane_page() as page:
        await sign_in(page, gateway, view="lanes/roof")
        await expect(page.get_by_text("This site has no such lane.")).to_be_visible()
    async with lane_page(size=PHONE) as page:
        await sign_in(page, gateway, "guard", view="lanes/entry")
        await expect(page.get_by_role("heading", name="Main entry")).to_be_visible()
        await expect(page.locator("#lane .controls")).to_be_hidden()
        await expect(page.locator("#try-section")).to_be_hidden()
        await expect(page.locator("#lane .live")).to_have_count(0)
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize(("view", "said"), [("", "#lanes"), ("lanes/entry", "#lane"), ("wall", "#wall-lanes")])
async def test_a_lane_says_why_its_position_is_unknown_where_that_is_known(gateway, lane_page, view, said):
    cause = LaneTrouble(ProblemKind.GATE_LIMITS_BOTH_ON, "both limit switches are on")
    gateway.board.show(unable=(cause,), troubles=(cause,))
    try:
        async with lane_page() as page:
            await sign_in(page, gateway, view=view)
            await expect(page.locator(said).get_by_text(cause.text)).to_be_visible()
            await expect(page.locator(said).get_by_text("Cannot work", exact=True)).to_be_visible()
    finally:
        gateway.board.show(unable=(), troubles=())


@pytest.mark.parametrize(("view", "said"), [("", "#lanes"), ("lanes/entry", "#lane"), ("wall", "#wall-lanes")])
@pytest.mark.parametrize(
    ("phase", "position", "word"),
    [
        (Phase.IDLE, GatePosition.CLOSED, "Cannot work"),
        (Phase.ARMED, GatePosition.CLOSED, "Cannot work"),
        (Phase.IDLE, GatePosition.OPEN, "Gate does not move"),
    ],
)
async def test_a_lane_whose_gate_did_not_move_is_never_idle(gateway, lane_page, view, said, phase, position, word):
    unmoved = LaneTrouble(ProblemKind.GATE_DOES_NOT_MOVE, "the gate did not follow: locked")
    stops = () if position is GatePosition.OPEN else (unmoved,)
    gateway.board.show(phase=phase, position=position, unable=stops, troubles=(unmoved,))
    try:
        async with lane_page() as page:
            await sign_in(page, gateway, view=view)
            await expect(page.locator(said).locator(".phase")).to_have_text(word)
            await expect(page.locator(said).locator(".phase")).to_have_class("pill phase bad")
            await expect(page.locator(said).get_by_text(unmoved.text)).to_be_visible()
    finally:
        gateway.board.show(phase=Phase.IDLE, position=GatePosition.CLOSED, unable=(), troubles=())


async def test_both_limits_lead_to_the_view_that_lists_these_inputs(gateway, browser_page):
    kind = ProblemKind.GATE_LIMITS_BOTH_ON
    problem = Problem(kind=kind, part=SitePart.LANE, id="entry", name="Main entry", text="both limit switches are on")
    gateway.problems.append(problem)
    try:
        async with browser_page() as page:
            await sign_in(page, gateway)
            await page.locator(".problem summary").click()
            await page.get_by_role("link", name="Show its inputs").click()
            await expect(page.locator("#devices").get_by_text("Entry barrier")).to_be_visible()
    finally:
        gateway.problems.remove(problem)
