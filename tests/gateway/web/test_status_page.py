"""The page in a real browser: signing in, watching, commanding, playing, and losing the line."""

import re

import pytest
import pytest_asyncio
from page_visitor import sign_in
from playwright.async_api import expect
from relay import relay_to
from waiting import until

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.credentials import Card
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.domain.problems import ProblemKind
from gateway.lanes.snapshots import LaneTrouble, Phase
from gateway.problems.problem import Problem, SitePart
from gateway.store import Entry, StoredCard
from gateway.web.families import Route
from gateway.web.http.bodies import Body, read_body
from gateway.web.http.errors import success
from gateway.web.status.snapshot import DemoCard
from simulation.demo.gateway import DEMO_PRESENT

pytestmark = pytest.mark.asyncio(loop_scope="module")

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


@pytest.mark.long("a real browser")
async def test_a_lane_is_watched_and_commanded_without_reloading(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)
        lane = page.get_by_role("article").filter(has_text="Main entry")
        await expect(lane.get_by_text("Gate closed")).to_be_visible()
        await expect(lane.get_by_text("Idle")).to_be_visible()
        gateway.board.show(phase=Phase.OPENING, position=GatePosition.OPENING, vehicle=PointState.ON, note="Card 0042")
        await expect(lane.get_by_text("Gate opening")).to_be_visible()
        await expect(lane.get_by_text("Arming loop occupied")).to_be_visible()
        await expect(lane.get_by_text("Card 0042")).to_be_visible()
        await lane.get_by_role("button", name="Open Main entry").click()
        await expect(lane.get_by_text("Gate open", exact=True)).to_be_visible()
        await expect(page.get_by_text("Open recorded for Main entry")).to_be_visible()
        await lane.get_by_role("button", name="Close Main entry").click()
        await page.get_by_role("button", name="Cancel").click()
        assert [command.action for command in gateway.board.commands] == [GateAction.OPEN]
        await lane.get_by_role("button", name="Close Main entry").click()
        await page.get_by_role("button", name="Close the gate").click()
        await expect(lane.get_by_text("Gate closed")).to_be_visible()
        assert [command.source for command in gateway.board.commands] == ["user:chief"] * 2
        await lane.get_by_role("button", name="Stop Main entry").click()
        await expect(page.get_by_text("Stop recorded for Main entry. Check that the gate has stopped.")).to_be_visible()
        gateway.board.records = False
        await lane.get_by_role("button", name="Stop Main entry").click()
        await expect(lane.get_by_text("Gate stopped")).to_be_visible()
        await expect(page.get_by_text("Stop sent to Main entry, but NOT recorded")).to_be_visible()
        gateway.board.show(can_stop=False)
        await expect(lane.get_by_role("button", name="Stop Main entry")).to_be_hidden()
        gateway.board.show(can_close=False)
        await expect(lane.get_by_role("button", name="Close Main entry")).to_be_hidden()


@pytest.mark.long("a real browser")
async def test_a_refused_command_says_why(gateway, browser_page):
    async with browser_page(tolerate=("409",)) as page:
        await sign_in(page, gateway)
        gateway.board.lose("no answer from 127.0.0.1:502")
        await expect(page.locator("#devices")).to_contain_text("Offline")
        await page.get_by_role("button", name="Open Main entry").click()
        await expect(page.get_by_text("the gate is offline: no answer")).to_be_visible()


@pytest.mark.long("a real browser")
async def test_events_arrive_are_filtered_and_never_become_markup(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)
        rows = page.locator("#events > li")
        await expect(rows).to_have_count(1)
        await gateway.happened("<img src=x onerror=alert(1)> passed.", kind=EventKind.ACCESS_DENIED)
        await gateway.happened("Gate 101 did not open.", kind=EventKind.OPENING_TIMED_OUT)
        await expect(rows).to_have_count(3)
        await expect(rows.first).to_contain_text("Gate did not open")
        await expect(rows.nth(1)).to_contain_text("<img src=x onerror=alert(1)> passed.")
        await expect(page.locator("#announcer")).to_contain_text("Gate did not open")
        await page.get_by_label("Lowest severity shown").select_option("alarm")
        await expect(rows).to_have_count(1)
        await page.get_by_label("Lowest severity shown").select_option("info")
        await page.get_by_label("Find in events").fill("onerror")
        await expect(rows).to_have_count(1)


@pytest.mark.long("a real browser")
async def test_a_clip_plays_in_the_page(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)
        await page.get_by_role("button", name="Play Vehicle passed, Entry overview").click()
        await until(lambda: page.evaluate("document.querySelector('#video').currentTime >= 0.3"))
        assert await page.evaluate("document.querySelector('#video').duration") == pytest.approx(2, abs=0.2)
        await expect(page.locator(".clip img")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator("#player")).to_be_hidden()


@pytest.mark.long("a real browser")
async def test_a_clips_mark_tells_what_there_is_of_it(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)

        def clip_of(words):
            return page.locator("#events > *").filter(has_text=words).locator(".clips button")

        gateway.clock.pushed += 60  # each has footage of its own
        await gateway.passed("A lorry.", footage_seconds=4)
        part = clip_of("A lorry.")
        await expect(part.locator(".play")).to_have_text("▶ !")
        await expect(part).to_be_enabled()
        missing = "6.0 s are missing: the camera could not be reached"
        await expect(part).to_have_accessible_name(f"Play Vehicle passed, Entry overview; {missing}")

        gateway.clock.pushed += 60
        coming_id = await gateway.passed("A van.", ready=False)
        coming = clip_of("A van.")
        await expect(coming.locator(".play")).to_have_text("…")
        await expect(coming).to_be_disabled()
        await expect(coming).to_have_accessible_name("Entry overview: the clip is still being recorded")
        assert await coming.locator("img").get_attribute("src") is None, "there is no picture to ask for yet"
        await gateway.store.camera_events.mark_ready(coming_id)
        await expect(coming.locator(".play")).to_have_text("▶")
        await expect(coming).to_be_enabled()
        await expect(coming).to_have_accessible_name("Play Vehicle passed, Entry overview")


@pytest.mark.long("a real browser")
async def test_a_clip_without_footage_is_not_offered_to_be_played(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway)
        now = gateway.clock.wall().micros
        moment = Moment(202, "Moment marked", "", now - 5_000_000, now + 5_000_000, clock_trusted=True)
        event = Event(kind=EventKind.MOMENT_MARKED, date_at=now, clock_trusted=True, text="A bicycle.")
        recorded = await gateway.store.journal.record(Entry(events=(event,), moments=(moment,)))
        await gateway.store.camera_events.mark_ready(recorded.camera_event_ids[0])
        none = page.locator("#events > *").filter(has_text="A bicycle.").locator(".clips button")
        await expect(none.locator(".play")).to_have_text("\N{EN DASH}")
        await expect(none).to_be_disabled()
        await expect(none).to_have_accessible_name(
            "Camera 202: there is no footage: the camera has never delivered a picture"
        )


@pytest.mark.long("a real browser")
async def test_a_phone_shows_all_of_it_without_scrolling_sideways(gateway, browser_page):
    gateway.board.show(note="a-long-word-without-a-place-to-break-" * 4)
    gateway.board.lose("no-answer-from-a-host-with-a-very-long-name." * 4)
    await gateway.happened("x" * 300)
    async with browser_page(size=PHONE, scheme="dark") as page:
        await page.goto(f"{gateway.url}/status/")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await sign_in(page, gateway)
        await expect(page.locator("#cameras article")).to_be_visible()
        await expect(page.locator("#facts")).to_contain_text("5.1 GB, full in 9 days at this rate")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.long("a real browser")
async def test_who_may_not_is_not_offered(gateway, browser_page):
    async with browser_page() as page:
        await sign_in(page, gateway, "guard")
        await expect(page.get_by_role("heading", name="Main entry")).to_be_visible()
        await expect(page.get_by_role("button", name="Open Main entry")).to_be_hidden()
        await expect(page.locator("#cameras-section")).to_be_hidden()
        await expect(page.locator(".clip")).to_have_count(0)
        await page.locator("#user summary").click()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert "Main entry" not in await page.content()


@pytest.mark.long("a real browser")
async def test_a_quiet_site_keeps_the_page_in_touch(gateway, browser_page):
    heartbeat = """() => new Promise((done) => {
        const stream = new EventSource("/status/live");
        let beats = 0;
        stream.addEventListener("here", () => { if (++beats === 2) { stream.close(); done(true); } });
    })"""
    async with browser_page() as page:  # which fails on an error in the page
        await sign_in(page, gateway)
        assert await page.evaluate(heartbeat)
        await expect(page.locator("#lost")).to_be_hidden()


@pytest.mark.long("a real browser")
async def test_a_wrong_password_is_told(gateway, browser_page):
    async with browser_page(tolerate=("404",)) as page:
        await page.goto(f"{gateway.url}/status/")
        await page.get_by_label("User name").fill("chief")
        await page.get_by_label("Password").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Username or password not accepted")).to_be_visible()


@pytest.mark.long("a real browser")
async def test_a_lost_line_is_told_and_mends_itself(open_gateway, browser_page):
    async with open_gateway() as gateway, relay_to(gateway.url) as front, browser_page(tolerate=("ERR_",)) as page:
        gateway.url = front.url
        await sign_in(page, gateway)
        await expect(page.get_by_text("Gate closed")).to_be_visible()
        await front.cut()
        await expect(page.get_by_text("Connection lost")).to_be_visible()
        assert await page.evaluate("document.getElementById('board').inert")
        gateway.board.show(position=GatePosition.OPEN)
        await front.join()
        await expect(page.get_by_text("Gate open", exact=True)).to_be_visible()
        await expect(page.get_by_text("Connection lost")).to_be_hidden()


@pytest.mark.long("a real browser")
async def test_a_gateway_that_says_nothing_more_is_noticed_within_five_seconds(open_gateway, browser_page):
    async with open_gateway() as gateway, relay_to(gateway.url) as front, browser_page(tolerate=("ERR_",)) as page:
        gateway.url = front.url
        await page.clock.install()
        await sign_in(page, gateway)
        await expect(page.get_by_text("Gate closed")).to_be_visible()
        front.hold()
        await page.clock.run_for(5000)
        await expect(page.get_by_text("Connection lost")).to_be_visible()
        assert await page.evaluate("getComputedStyle(document.getElementById('pills')).opacity") == "0.35"
        age = await page.locator("#lanes .phase").text_content()
        await page.clock.run_for(1500)
        assert await page.locator("#lanes .phase").text_content() == age
        front.let_go()
        await expect(page.get_by_text("Connection lost")).to_be_hidden()


@pytest.mark.long("a real browser")
async def test_the_demo_presents_a_card(open_gateway, browser_page):
    presented = []

    class PresentBody(Body):
        lane_id: str
        card: str

    async def present(request, caller):
        wanted = await read_body(request, PresentBody)
        presented.append((wanted.lane_id, wanted.card, caller.username))
        return success(lane=wanted.lane_id)

    cards = (DemoCard("0042", "Ada's card"), DemoCard("9999", "Unknown card"))
    async with open_gateway((Route(DEMO_PRESENT, present),), cards) as gateway, browser_page() as page:
        await sign_in(page, gateway)
        await page.get_by_role("button", name="Present Ada's card at Main entry").click()
        await expect(page.get_by_text("Ada's card presented at Main entry.")).to_be_visible()
    assert presented == [("entry", "0042", "chief")]


@pytest.mark.long("a real browser")
async def test_a_lane_is_locked_down_with_a_reason_and_works_again(gateway, browser_page):
    async with browser_page(size=PHONE) as page:
        await sign_in(page, gateway)
        lane = page.locator("#lanes article")
        await lane.get_by_label("Standing order of Main entry").select_option("lock_down")
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("No card lets anybody in")
        await page.get_by_role("button", name="Cancel").click()
        await expect(lane.get_by_label("Standing order of Main entry")).to_have_value("")
        await lane.get_by_label("Standing order of Main entry").select_option("lock_down")
        await dialog.get_by_label("Why").fill("police")
        gateway.board.show(note="something happens while the question is open")
        await expect(lane.locator(".note")).to_have_text("something happens while the question is open")
        await page.get_by_role("button", name="Lock down").click()
        await expect(lane.locator(".order")).to_have_text("the lane is locked down by chief: police")
        await lane.get_by_label("Standing order of Main entry").select_option("")
        await page.get_by_role("button", name="Let work as scheduled").click()
        await expect(lane.locator(".order")).to_be_hidden()


@pytest.mark.long("a real browser")
async def test_a_count_is_corrected_and_troubles_are_seen(gateway, browser_page):
    stuck = "the arming loop has been on for 5 minutes: a vehicle, or the detector is stuck"
    gateway.board.show(troubles=(LaneTrouble(ProblemKind.INPUT_STUCK, stuck, "the arming loop"),))
    async with browser_page(size=DESKTOP) as page:
        await sign_in(page, gateway)
        await expect(page.locator("#lanes .troubles li")).to_contain_text("on for 5 minutes")
        await page.get_by_role("button", name="Correct the count of Garage").click()
        await page.get_by_label("Vehicles inside").fill("2")
        await page.get_by_role("button", name="Correct the count", exact=True).click()
        await expect(page.locator("#areas .area-count")).to_have_text("2 of 2")


@pytest.mark.long("a real browser")
async def test_a_card_that_was_passed_back_is_forgiven_from_its_event(gateway, browser_page):
    await gateway.store.cards.apply(put=[StoredCard(Card(7, "0007"), "{}")], now=1)
    stamp = gateway.clock.wall()
    denied = Event(
        EventKind.ACCESS_DENIED,
        stamp.micros,
        clock_trusted=True,
        text="card 0007: the card was already used in this direction",
        lane_id="entry",
        data={"reason": "anti_passback", "card_id": 7, "trace": "anti-passback: FAILED (last seen entering garage)"},
    )
    await gateway.store.journal.record(Entry(events=(denied,)))
    async with browser_page(size=PHONE) as page:
        await sign_in(page, gateway)
        await page.locator("#events .event").first.get_by_text("Why").click()
        await expect(page.get_by_text("last seen entering garage")).to_be_visible()
        await page.get_by_role("button", name="Let this card in again").click()
        await page.get_by_role("button", name="Forgive").click()
        await expect(page.get_by_text("Anti-passback forgiven")).to_be_visible()
        await expect(
            page.get_by_text("chief forgave anti-passback for card 0007; the next passage counts as the first")
        ).to_be_visible()


@pytest.mark.long("a real browser")
async def test_who_only_looks_is_offered_neither(gateway, browser_page):
    async with browser_page(size=DESKTOP) as page:
        await sign_in(page, gateway, "guard")
        await expect(page.locator("#areas .area-count")).to_be_visible()
        await expect(page.locator("#lanes .orders")).to_be_hidden()
        await expect(page.locator("#areas .correct")).to_be_hidden()


@pytest.mark.long("a real browser")
async def test_lane_that_cannot_work_is_red_and_so_is_the_header(gateway, browser_page):
    why = "the arming loop is not known, so no card counts: check its device and its wiring"
    for size, scheme in (({"width": 1280, "height": 900}, "light"), ({"width": 390, "height": 844}, "dark")):
        async with browser_page(size=size, scheme=scheme) as page:
            await sign_in(page, gateway)
            lane = page.locator(".lane").first
            await expect(lane.locator(".phase")).to_contain_text("Idle")
            trouble = LaneTrouble(ProblemKind.ARMING_LOOP_UNKNOWN, why)
            gateway.board.show(vehicle=PointState.UNKNOWN, unable=(trouble,))
            gateway.problems.append(
                Problem(
                    kind=trouble.kind,
                    part=SitePart.LANE,
                    id="entry",
                    name="Main entry",
                    text=why,
                    lanes=("Main entry",),
                )
            )
            await expect(lane.locator(".phase")).to_contain_text("Cannot work")
            await expect(lane.locator(".phase")).to_have_class("pill phase bad")
            gateway.board.show(phase=Phase.FAULT)
            await expect(lane.locator(".phase")).to_have_text("Cannot work")  # no age: the phase has one, not the fault
            await expect(lane.locator(".troubles li")).to_have_text([why])
            await expect(page.locator("#pill-gateway")).to_have_text("1 of 1 lanes cannot work, 1 problem")
            await expect(page.locator("#pill-gateway")).to_have_class("pill bad")
            problem = page.locator("#problems li.problem")
            await expect(problem).to_have_class("problem bad")
            await expect(problem.locator(".problem-text")).to_have_text(why)
            await expect(problem.locator("summary")).to_contain_text(f"Arming loop unknown · Main entry: {why}")
            await expect(problem.locator(".problem-steps")).to_be_hidden()
            await problem.locator("summary").click()
            await expect(problem.locator(".problem-means")).to_contain_text("Main entry cannot work. No card or plate")
            await expect(problem.locator(".problem-steps > li").first).to_be_visible()
            gateway.board.show(phase=Phase.IDLE, vehicle=PointState.OFF, unable=())
            gateway.problems.clear()
            await expect(lane.locator(".phase")).to_contain_text("Idle")
            await expect(page.locator("#pill-gateway")).to_have_text("The lane works")
            await expect(page.locator("#problems-section")).to_be_hidden()


@pytest.mark.long("a real browser")
async def test_a_problem_is_acknowledged_with_ones_name_and_silenced(gateway, browser_page):
    text = "the clock is not set by a time server"
    gateway.problems.append(
        Problem(kind=ProblemKind.CLOCK_NOT_SET, part=SitePart.GATEWAY, id="", name="Gateway", text=text, since=1)
    )
    async with browser_page() as page:
        await sign_in(page, gateway)
        problem = page.locator(".problem").filter(has_text=text)
        await problem.locator("summary").click()
        await problem.get_by_role("button", name="I know of it").click()
        await expect(problem).to_contain_text("chief knows of it since ")
        await problem.get_by_role("button", name="Silence for 8 hours").click()
        await expect(problem).to_contain_text(", silent until ")
        await expect(problem.get_by_role("button", name="I know of it")).to_be_hidden()
    status, answer = await gateway.call(
        "/status/problem/acknowledge", {"kind": "line_down", "part": "line", "id": "yard"}
    )
    assert (status, answer["error"]) == (404, "this problem is over")


@pytest.mark.long("a real browser")
async def test_the_title_counts_what_nobody_knows_of_and_an_alarm_calls_by_choice(gateway, browser_page):
    listen = """() => {
        globalThis.called = [];
        globalThis.Notification = class {
            static permission = "granted";
            static async requestPermission() { return "granted"; }
            constructor(title, { body }) { called.push(`${title}: ${body}`); }
        };
        globalThis.AudioContext = class extends AudioContext {
            createOscillator() { called.push("sound"); return super.createOscillator(); }
        };
    }"""
    away = Problem(
        kind=ProblemKind.GATE_OFFLINE, part=SitePart.DEVICE, id="101", name="Barrier", text="Barrier is away", since=1
    )
    async with browser_page() as page:
        await page.add_init_script(f"({listen})()")
        await sign_in(page, gateway)
        await expect(page).to_have_title("North Yard · Edge gateway")
        await page.locator("#user summary").click()
        await page.get_by_label("Notification at alarms").check()
        await page.get_by_label("Sound at alarms").check()
        await page.evaluate("called.length = 0")
        gateway.problems.append(away)
        gateway.board.show(note="")
        await expect(page).to_have_title("(1) North Yard · Edge gateway")
        called = await page.evaluate("called")
        assert called == ["sound", "sound", "North Yard: Gate controller offline: Barrier is away"]
        await page.locator("#views").get_by_role("link", name="Events").click()
        await expect(page).to_have_title("(1) Events · North Yard · Edge gateway")
        await gateway.call("/status/problem/acknowledge", {"kind": "gate_offline", "part": "device", "id": "101"})
        await expect(page).to_have_title("Events · North Yard · Edge gateway")


@pytest.mark.long("a real browser")
async def test_a_page_that_did_not_come_whole_comes_again(gateway, browser_page):
    async with browser_page(tolerate=("ERR_FAILED",)) as page:
        await page.route("**/static/page.js", lambda route: route.abort(), times=1)
        await page.goto(f"{gateway.url}/status/")
        await expect(page.get_by_role("alert")).to_contain_text("did not come")
        await expect(page.get_by_label("User name")).to_be_visible()


@pytest.mark.long("a real browser")
async def test_a_problem_offers_what_the_page_can_do_about_it(gateway, browser_page):
    gateway.problems += [
        Problem(
            kind=ProblemKind.GATE_HELD_OPEN, part=SitePart.LANE, id="entry", name="Main entry", text="open", since=1
        ),
        Problem(kind=ProblemKind.CENTRAL_LIST_OLD, part=SitePart.CENTRAL, id="", name="Central", text="old", since=1),
        Problem(kind=ProblemKind.CLOCK_NOT_SET, part=SitePart.GATEWAY, id="", name="Gateway", text="not set", since=1),
    ]
    async with browser_page(tolerate=("409",)) as page:
        await sign_in(page, gateway)
        for summary in await page.locator("#problems summary").all():
            await summary.click()
        unset = page.locator(".problem").filter(has_text="Clock not set")
        await expect(unset.locator(".go")).to_be_hidden()
        await expect(unset.locator(".act")).to_be_hidden()
        await page.locator("#problems").get_by_role("button", name="Fetch everything again").click()
        await expect(page.get_by_text("Under way.")).to_be_visible()
        assert gateway.central.asked_by == ["user:chief"]
        await page.locator("#problems").get_by_role("link", name="Show the lane").click()
        await expect(page).to_have_url(f"{gateway.url}/status/lanes/entry")
    gateway.problems.clear()


@pytest.mark.long("a real browser")
@pytest.mark.parametrize(
    ("zone", "told"), [("America/New_York", None), ("Europe/Paris", re.compile("Site time GMT-0[45]:00"))]
)
async def test_where_clocks_show_other_hours_the_sites_are_named(gateway, browser_page, zone, told):
    async with browser_page(zone=zone) as page:
        await sign_in(page, gateway)
        await expect(page.locator("#pill-gateway")).to_be_visible()
        pill = page.locator("#pill-zone")
        await (expect(pill).to_be_hidden() if told is None else expect(pill).to_have_text(told))
