"""The page in French: every text of its own, of events and of problems, and the way between languages."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import pytest_asyncio
from page_visitor import SCREENS, sign_in
from playwright.async_api import expect

from gateway.domain.commands import CommandState, GateAction, command_text
from gateway.domain.events import EventKind
from gateway.domain.problems import ProblemKind
from gateway.lanes.snapshots import CommandSnapshot, LaneTrouble
from gateway.problems.problem import Problem, SitePart
from gateway.texts import FOLDER, english, read_language, text
from gateway.web.status.page_files import page_files
from tests.gateway.web.setups.site import BROKER, fleet_seen
from tests.gateway.web.setups.words import in_french, recognised_in_french

pytestmark = pytest.mark.long("a real browser")

in_one_loop = pytest.mark.asyncio(loop_scope="module")

ENGLISH = r"\b(the|is|was|of|for|with|until|since|not|has|no|it|and|from|there|are)\b"
"""Words that every English sentence has one of, and no French one."""


def denied(number):
    return text("event.decided", credential=text("credential.card", number=number), why=text("reason.expired"))


def english_sentences():
    """Return the English sentences of the gateway, with each plural form."""
    own = [sentence for key, sentence in english().items() if not key.startswith("page.")]
    return {form for one in own for form in ([one] if isinstance(one, str) else one.values())}


NAMES = frozenset(
    {
        "A vehicle passed.",  # the words of a test
        "America/Toronto",
        "Entry barrier",
        "UTC",
        "administrator",
        "broker.example.com:8883",
        "modbus-gate",
        "serial-reader",
    }
)
"""Names and words of others, which are shown as they are in every language."""

SHOWN = """() => {
    const nodes = [...document.querySelectorAll("body *")]
        .filter((node) => node.translate && !["code", "noscript"].includes(node.localName));
    const texts = nodes.flatMap((node) => [...node.childNodes]).filter((child) => child.nodeType === 3);
    const names = ["aria-label", "title", "placeholder", "alt"];
    const named = nodes.flatMap((node) => names.map((name) => node.getAttribute(name)));
    return [...texts.map((child) => child.data), ...named].filter(Boolean).map((text) => text.trim());
}"""


@pytest.fixture
def fleet_gateway(open_gateway):
    """Open a gateway with a fleet, a broker, a problem, a card that was refused and a commissioning that has begun."""

    @asynccontextmanager
    async def opened_so():
        async with open_gateway(fleet_seen=fleet_seen, broker=lambda: BROKER) as opened:
            await happen(opened)
            yield opened

    return opened_so


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(fleet_gateway):
    async with fleet_gateway() as opened:
        yield opened


async def happen(opened):
    """Make the events and the problem that the screens show."""
    await opened.happened(denied("0042"), kind=EventKind.ACCESS_DENIED)
    opened.problems.append(
        Problem(
            kind=ProblemKind.GATE_OFFLINE,
            part=SitePart.DEVICE,
            id="101",
            name="Barrier",
            text="the gate's position is not known: open it, then close it",
            lanes=("Main entry",),
            since=1,
        )
    )
    await opened.call("/status/commissioning/begin", {"lane_id": "entry"})


def test_names_of_events_have_their_french():
    known = english_sentences()
    assert sorted({kind.label for kind in EventKind} - known) == []


@in_one_loop
async def test_every_screen_is_french_in_a_french_browser(gateway, browser_page):
    async with browser_page(language="fr-FR", tolerate=("409",)) as page:
        await sign_in(page, gateway)
        assert await page.evaluate("document.documentElement.lang") == "fr"
        left = set()
        for screen in SCREENS:
            await page.goto(f"{gateway.url}/status/{screen}")
            await expect(page.locator("#board")).to_be_visible()
            await page.wait_for_load_state("networkidle")
            left |= {text for text in await page.evaluate(SHOWN) if re.search(ENGLISH, text)}
        assert sorted(left) == []


@in_one_loop
async def test_a_stored_text_with_a_key_of_another_release_is_english(gateway, browser_page):
    known, gone = {"key": "point.closing", "arguments": {}}, {"key": "gone.since", "arguments": {}}
    words = [
        {"key": key, "arguments": {"point": point}, "english": "the closing loop is active"}
        for key, point in (("safety.active", known), ("safety.active", gone), ("gone.active", known))
    ]
    shown = await in_french(gateway, browser_page, "say", [[one] for one in words])
    assert shown == ["la boucle de fermeture est active", "the closing loop is active", "the closing loop is active"]


@in_one_loop
async def test_what_happened_is_told_in_french(gateway, browser_page):
    async with browser_page(language="fr", tolerate=("409",)) as page:
        await sign_in(page, gateway)
        await expect(page.locator("#problems")).to_contain_text("la position de la barrière n'est pas connue")
        step = page.locator("#problems li li", has=page.locator("code"))
        await expect(step.first).to_contain_text("; edge-gateway discover liste")
        await expect(step.first.locator("code")).to_have_text("edge-gateway discover")
        await expect(page.locator("#events")).to_contain_text("carte 0042")
        await expect(page.locator("#events")).not_to_contain_text("expired")


@in_one_loop
async def test_a_problem_is_told_by_its_key_with_names_as_they_are(open_gateway, browser_page):
    """A device is called as an entry of the page is, and what it said itself is looked up."""
    away = text("device.away_for.silent", device="Events", why="it hung up")
    refused = text("problem.records_refused.text", count=12345)
    one = text("problem.records_refused.text", count=1)
    async with open_gateway() as gateway, browser_page(language="fr", tolerate=("409", "503")) as page:
        gateway.problems += [
            Problem(
                kind=ProblemKind.GATE_OFFLINE,
                part=SitePart.DEVICE,
                id="101",
                name="Events",
                text=away,
                lanes=tuple("ABCDE"),
            ),
            Problem(kind=ProblemKind.RECORDS_REFUSED, part=SitePart.CENTRAL, id="", name="Central", text=refused),
            Problem(
                kind=ProblemKind.RECORDS_REFUSED, part=SitePart.CENTRAL, id="", name="Central", text=one, subject="x"
            ),
        ]
        await sign_in(page, gateway)
        told = page.locator("#problems > li")
        await expect(told.nth(0).locator(".problem-text")).to_have_text("Events ne répond pas : il a raccroché")
        await expect(told.nth(0).locator(".problem-name")).to_be_hidden()
        await expect(told.nth(0).locator(".problem-means")).to_contain_text("A, B, C et 2 autres hors service. Aucun")
        await expect(told.nth(0).locator("li").first).to_contain_text("Vérifiez l'alimentation de la commande")
        await expect(told.nth(1).locator(".problem-text")).to_have_text(
            re.compile("^12\u202f345 données ont été refusées")
        )
        await expect(told.nth(2).locator(".problem-text")).to_have_text(re.compile("^1 donnée a été refusée"))
        await expect(page.locator("#pill-gateway")).to_have_text("5 voies sur 1 hors service, 3 problèmes")


@in_one_loop
async def test_what_a_lane_waits_for_is_told_by_its_key(open_gateway, browser_page):
    point = text("safety.not_clear", point="Lines", seconds=1.5)
    stopped = text("gate.stopped_though", who="Events", why=text("order.hold_open", who=text("actor.schedule")))
    async with open_gateway() as gateway, browser_page(language="fr", tolerate=("409", "503")) as page:
        gateway.board.show(
            note=text("lane.closing_waits", why=point),
            order_text=text("order_for.hold_open", who="Health", reason="Gate"),
            troubles=(LaneTrouble(ProblemKind.GATE_STOPPED, stopped),),
        )
        await sign_in(page, gateway)
        lane = page.locator("#lanes")
        await expect(lane.locator(".note")).to_have_text(re.compile("Lines n'est pas .*libre.* 1,5 s"))
        await expect(lane.locator(".order")).to_have_text("la voie est maintenue ouverte par Health\u00a0: Gate")
        trouble = "Events a arrêté la barrière, alors que la voie est maintenue ouverte par l'horaire"
        await expect(lane.locator(".troubles")).to_contain_text(trouble)


@in_one_loop
async def test_why_a_device_is_lost_and_what_a_gate_was_told_are_french(gateway, browser_page):
    why = "unit 2 on exit-bus did not answer within 300 ms"
    told = text("device.away_for.silent", device="Barrier", why=why)
    await gateway.happened(told, kind=EventKind.DEVICE_LOST)
    now = gateway.clock.wall().micros
    gateway.board.show(command=CommandSnapshot("1", GateAction.CLOSE, CommandState.DONE, "lane", now, ""))
    async with browser_page(language="fr", tolerate=("409", "503")) as page:
        await sign_in(page, gateway)
        await expect(page.locator("#events")).to_contain_text("le module 2 de exit-bus n'a pas répondu en 300 ms")
        await page.goto(f"{gateway.url}/status/lanes/entry")
        await expect(page.locator("#lane .followed")).to_contain_text("Fermeture par la voie")
        await expect(page.locator("#lane-points")).to_contain_text("ordre de fermer · exécuté")


@in_one_loop
async def test_a_warning_is_spoken_in_french_alone(gateway, browser_page):
    async with browser_page(language="fr") as page:
        await sign_in(page, gateway)
        await expect(page.locator("#events > li").first).to_be_visible()
        for credential in ("0042", "0043"):
            await gateway.happened(denied(credential), kind=EventKind.ACCESS_DENIED)
        lost = text("device.away_for.silent", device="Reader", why="it hung up")
        await gateway.happened(lost, kind=EventKind.DEVICE_LOST)
        await expect(page.locator("#announcer")).to_contain_text("Reader ne répond pas : il a raccroché")
        assert not re.search(ENGLISH, await page.locator("#announcer").inner_text())


NUMBERS = {
    "12,345 records were refused by central, and wait for a person": "12\u202f345 données",
    "access cards: 120,500 of 1,250,000": "120\u202f500 sur 1\u202f250\u202f000",
    "1,204 access cards, 12 devices, 4 cameras": "1\u202f204 cartes d'accès, 12 appareils",
    "3.40 GB, nothing was recorded lately": "3,40 Go, rien n'a été",
    "3.40 GB, full: the oldest goes, about 9 days are kept": "3,40 Go, plein : le plus ancien part",
    "card 12,345 denied: the card has expired": "carte 12,345",  # a name, whatever it looks like
    "Reader does not answer: 10.0.0.2 refuses the connection": "10.0.0.2",
    "POST /v1/access/list: nothing answers at 10.0.0.2: the connection was refused": "rien ne répond à 10.0.0.2",
}


@in_one_loop
async def test_numbers_in_sentences_of_the_gateway_are_written_as_french_does(gateway, browser_page):
    shown = await recognised_in_french(gateway, browser_page, list(NUMBERS))
    assert {sentence: french for sentence, french in NUMBERS.items() if french not in shown[sentence]} == {}


OWN = [
    ("{time} ms of {allowed} ms allowed", {"time": 0.38, "allowed": 300}, "0,38 ms sur 300 ms permises"),
    ("Unit {unit}", {"unit": "2236"}, "Module 2236"),  # a name, whatever it looks like
    ("The oldest {shown} of {all} that central refused.", {"shown": 1, "all": 2236}, "des 2\u202f236 que le central"),
    ("Open {lane}", {"lane": "the lane"}, "Ouvrir the lane"),  # a name, whatever it says
    ("No French has this: {why}", {"why": "Now"}, "No French has this: Now"),
]
COUNTED = {0: "0 passerelle", 1: "1 passerelle", 2: "2 passerelles", 1234: "1\u202f234 passerelles"}


@in_one_loop
async def test_texts_of_the_page_have_numbers_and_names_in_their_places(gateway, browser_page):
    shown = await in_french(gateway, browser_page, "t", [[text, places] for text, places, _ in OWN])
    assert [one for one, (_, _, french) in zip(shown, OWN, strict=True) if french not in one] == []
    gateways = [["{count} gateway", "{count} gateways", count] for count in COUNTED]
    assert await in_french(gateway, browser_page, "n", gateways) == list(COUNTED.values())


@in_one_loop
async def test_one_gateway_of_the_fleet_is_told_in_the_singular(gateway, browser_page):
    async with browser_page(language="fr", tolerate=("409",)) as page:
        await sign_in(page, gateway)
        await page.goto(f"{gateway.url}/fleet/")
        await expect(page.get_by_text("4 passerelles · 1 absente · 1 pas prête", exact=True)).to_be_visible()


@in_one_loop
async def test_no_line_of_french_breaks_before_a_mark(gateway, browser_page):
    passed = text("event.passed.tailgated")
    credential, why = text("credential.card", number="0042"), text("reason.expired")
    await gateway.happened(text("event.passed_denied", passed=passed, credential=credential, why=why))
    async with browser_page(language="fr-FR", tolerate=("409",)) as page:
        await sign_in(page, gateway)
        found = set()
        for screen in SCREENS:
            await page.goto(f"{gateway.url}/status/{screen}")
            await expect(page.locator("#board")).to_be_visible()
            await page.wait_for_load_state("networkidle")
            found |= {
                text for text in await page.evaluate(SHOWN) if re.search(r"[^\s\u00a0][:;!?](\s|$)| [:;!?»]", text)
            }
        assert sorted(found) == []


@in_one_loop
async def test_names_of_any_kind_are_shown_as_they_are(open_gateway, browser_page):
    """A long name of marks does not hold the page up, and one that turns directions around turns nothing else."""
    joined = "un, deux. trois; quatre: cinq · six " * 20
    async with open_gateway() as gateway, browser_page(language="fr", tolerate=("409",)) as page:
        for number in range(30):
            credential = text("credential.card", number=f"{number} of {joined}{number}")
            await gateway.happened(text("event.decided", credential=credential, why=text("reason.expired")))
        await gateway.happened("\u202edrac is away")
        await sign_in(page, gateway)
        await expect(page.locator("#events > li")).to_have_count(32)
        await expect(page.locator("#events > li").first).not_to_contain_text("\u202e")


SAID = {
    text("device.away_for.silent", device="Gate", why="it hung up"): "Gate ne répond pas : il a raccroché",
    text("event.camera_recording", camera="Camera"): "Camera enregistre",
    "Lines cannot work: Gate does not answer: it hung up": "Lines hors service : Gate ne répond pas : il a raccroché",
    text(
        "event.decided_of",
        credential=text("credential.card", number="0042"),
        holder="Events",
        why=text("reason.valid_card"),
    ): "carte 0042 de Events : la carte est valable",
    command_text(GateAction.OPEN, "user:Events", text("command.replaced_unsent_by.close")): (
        "ouverture par Events : remplacée par une fermeture avant"
    ),
    text("event.stop_ended", who="Health", why=text("stop.ended_by.order", who="Events")): (
        "n'est plus arrêtée par Health : Events donne une"
    ),
    command_text(GateAction.CLOSE, "lane", text("command.replaced_unsent_by.open")): (
        "fermeture par la voie : remplacée par une ouverture"
    ),
    text(
        "event.problem_known",
        who="Health",
        why=text("device.away_for.silent", device="Gate", why="it hung up"),
    ): "Health en a connaissance : Gate ne répond pas",
}
"""Texts about a lane, a device, a camera and persons that have the names of other texts of the page."""


@in_one_loop
async def test_names_that_are_words_of_the_page_stay_in_sentences(open_gateway, browser_page):
    async with open_gateway() as gateway, browser_page(language="fr", tolerate=("409", "503")) as page:
        gateway.board.show(name="Lines")
        gateway.board.gate = replace(gateway.board.gate, name="Gate", online=False, detail="it hung up")
        gateway.recording.camera = replace(gateway.recording.camera, name="Camera")
        for said in SAID:
            await gateway.happened(said)
        await sign_in(page, gateway)
        events = page.locator("#events .description")
        await expect(events).to_have_count(len(SAID) + 1)
        shown = [text.replace("\u00a0", " ") for text in await events.all_inner_texts()]
        missing = [french for french in SAID.values() if not any(text.startswith(french) for text in shown)]
        assert missing == [], shown
        await expect(page.locator("#events .marks").first).to_have_text("Lines")
        await expect(page.get_by_role("button", name="Ouvrir Lines", exact=True)).to_be_visible()
        await expect(page.locator("#cameras h3")).to_have_text("Camera")
        await expect(page.locator("#cameras .picture")).to_have_text(re.compile(r"Camera$"))
        await page.goto(f"{gateway.url}/status/events")
        await expect(page.locator("#history-lane option").last).to_have_text("Lines")


@in_one_loop
async def test_a_person_chooses_another_language_for_good(gateway, browser_page):
    async with browser_page(language="de-DE", tolerate=("409",)) as page:
        await page.goto(f"{gateway.url}/status/")
        await expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
        await page.locator("#sign-in .languages").select_option("Français")
        await expect(page.get_by_role("button", name="Se connecter", exact=True)).to_be_visible()
        await sign_in(page, gateway)
        await page.reload()
        await expect(page.get_by_role("link", name="Événements")).to_be_visible()


@pytest.fixture
def with_language(monkeypatch, tmp_path):
    """Serve one more language with these sentences."""

    def served(name, sentences):
        for path in FOLDER.glob("*.json"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
        (tmp_path / f"{name}.json").write_text(json.dumps(sentences), "utf-8")
        monkeypatch.setattr("gateway.web.status.page_files.FOLDER", tmp_path)
        page_files.cache_clear()

    yield served
    page_files.cache_clear()


@in_one_loop
async def test_a_third_language_is_one_more_file(open_gateway, browser_page, with_language):
    own = {"language": "Deutsch", "page.sign_in": "Anmelden", "verdict.lane_works": "Die Spur arbeitet"}
    with_language("de", dict(read_language("fr"), **own))
    async with open_gateway() as gateway, browser_page(language="de-DE", tolerate=("409",)) as page:
        await page.goto(f"{gateway.url}/status/")
        await expect(page.get_by_role("button", name="Anmelden", exact=True)).to_be_visible()
        chosen = page.locator("#sign-in .languages")
        await expect(chosen.locator("option")).to_have_text(["Deutsch", "English", "Français"])
        await expect(chosen).to_have_value("de")
        await sign_in(page, gateway)
        await expect(page.locator("#pill-gateway")).to_have_text("Die Spur arbeitet")


def bracketed(sentence):
    """Return a sentence between brackets, in each of its forms."""
    if isinstance(sentence, str):
        return f"⟦{sentence}⟧"
    return {form: f"⟦{one}⟧" for form, one in sentence.items()}


def outside_brackets(text):
    """Return what of a text no language has made. Code in a sentence leaves parts of it on both sides."""
    while (shorter := re.sub("⟦[^⟦⟧]*⟧", "", text)) != text:
        text = shorter
    return re.sub("^[^⟦⟧]*⟧|⟦[^⟦⟧]*$", "", text)


@in_one_loop
async def test_every_word_of_every_screen_comes_from_the_language_s_file(fleet_gateway, browser_page, with_language):
    with_language("de", {key: bracketed(sentence) for key, sentence in english().items()} | {"language": "Deutsch"})
    async with fleet_gateway() as gateway, browser_page(language="de-DE", tolerate=("409",)) as page:
        await page.goto(f"{gateway.url}/status/")
        shown = set(await page.evaluate(SHOWN))
        await sign_in(page, gateway)
        for screen in SCREENS:
            await page.goto(f"{gateway.url}/status/{screen}")
            await expect(page.locator("#board")).to_be_visible()
            await page.wait_for_load_state("networkidle")
            shown |= set(await page.evaluate(SHOWN))
    assert len(shown) > 300
    parts = {part for text in shown for part in re.split(" · |, ", outside_brackets(text))}
    left = {part for part in parts if re.search(r"[^\W\d_]", part)} - NAMES
    assert left == set()
    assert sorted(text for text in shown if re.search(r"undefined|NaN|[{}]|^⟦?[a-z_]+\.[a-z_.]+⟧?$", text)) == []
