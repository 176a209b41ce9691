"""Parking entries over HTTP: listed, reported, as Excel, made and changed, with central there and away."""

from __future__ import annotations

import asyncio
import re
import zipfile
from io import BytesIO

import pytest
from at_work import serving_central
from wired import outbox_sender

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import LONGEST_STAY, Passage, PassageOutcome
from gateway.domain.presence import Movement, Way
from gateway.runtime.clock import SystemClock
from gateway.store import Entry
from gateway.web.operations.entries import EntriesAnswer, EntryAnswer, EntryReportAnswer
from simulation.far_ends.central import CentralAccount, Faults

NOON = 1_768_323_600_000_000  # 2026-01-13 12:00 at Toronto
HOUR = 3_600_000_000
LIST, REPORT, ONE = "/v1/entry/list", "/v1/entry/report", "/v1/entry"


def at(gateway, micros):
    """It is this time now; who was signed in is no more."""
    gateway.clock.pushed += (micros - gateway.clock.wall().micros) / 1e6
    gateway.tokens.clear()


async def passes(gateway, when, direction="entry", **known):
    event = Event(EventKind.VEHICLE_PASSED, when, clock_trusted=True, text="It passed.", device_id=101)
    passage = Passage("entry", direction, PassageOutcome.PASSED, when - 1, when, clock_trusted=True, **known)
    await gateway.store.journal.record(Entry(events=(event,), passage=passage))


@pytest.fixture
async def busy(gateway):
    """One that came and went, one that is there, one that only went."""
    await passes(gateway, NOON, card_id=7, credential="0042")
    await passes(gateway, NOON + HOUR, "exit", card_id=7, credential="0042")
    await passes(gateway, NOON + 2 * HOUR, credential="AB123CD", plate="AB123CD")
    await passes(gateway, NOON + 25 * HOUR, "exit", card_id=9, credential="=1+1")
    at(gateway, NOON + 26 * HOUR)
    return gateway


async def test_entries_are_listed_newest_first_with_every_field(busy):
    status, answer = await busy.call(LIST, {})
    assert status == 200
    EntriesAnswer.model_validate(answer)
    gone, there, closed = answer["entries"]
    assert (answer["count"], answer["next_cursor"]) == (3, closed["site_id"])
    assert (closed["status"], closed["type"], closed["duration_minutes"]) == ("closed", "entry", 60)
    assert (closed["entry_at"], closed["exit_at"]) == ("2026-01-13T17:00:00.000Z", "2026-01-13T18:00:00.000Z")
    assert (closed["lane_id"], closed["lane_name"], closed["exit_lane_name"]) == ("entry", "Main entry", "Main entry")
    assert (closed["access_id"], closed["credential"], closed["manual"]) == (7, "0042", False)
    assert (there["status"], there["plate"]) == ("open", "AB123CD")
    assert (there["exit_at"], there["duration_minutes"]) == (None, None)
    assert (gone["status"], gone["type"], gone["date_at"]) == ("exit_only", "exit", "2026-01-14T18:00:00.000Z")
    assert {entry["sync"] for entry in answer["entries"]} == {"waiting"}


async def test_filters_pages_and_cursors(busy):
    async def found(**body):
        status, answer = await busy.call(LIST, body)
        assert status == 200, answer
        return [entry["credential"] for entry in answer["entries"]]

    day = {"start_date": "2026-01-13", "end_date": "2026-01-13"}
    assert await found(**day) == ["AB123CD", "0042"]
    assert await found(**day, status="open") == ["AB123CD"]
    assert await found(status=["closed", "exit_only"]) == ["=1+1", "0042"]
    assert await found(plates=["ab-123 cd"]) == ["AB123CD"]
    assert await found(access_ids=[7, 8]) == ["0042"]
    assert await found(search="123c") == ["AB123CD"]
    assert await found(lane_ids=["elsewhere"]) == []
    assert await found(device_ids=[101], page=2, page_limit=2) == ["0042"]
    _, first = await busy.call(LIST, {"page_limit": 1})
    await passes(busy, NOON + 25 * HOUR, credential="new")
    assert await found(cursor_id=first["next_cursor"], page_limit=1) == ["AB123CD"]


@pytest.mark.parametrize(
    ("path", "method", "body", "error"),
    [
        (LIST, "POST", {"start_date": "soon"}, "start_date: must be a date like"),
        (REPORT, "POST", {"end_date": 5}, "end_date: must be a valid string"),
        ("/v1/entry/excel", "POST", {"status": "gone"}, "status.0: must be 'open', "),
        ("/v1/entry/reportExcel", "POST", {"device_ids": ["a"]}, "device_ids.0: must be a valid integer"),
        (ONE, "PUT", {}, "device_id: is missing"),
        (ONE, "PUT", {"device_id": 555}, "device_id: there is no device 555"),
        (ONE, "PUT", {"device_id": 101, "date_at": "noon"}, "date_at: must be a date like"),
        (ONE, "PUT", {"device_id": 101, "type": "through"}, "type: must be 'entry' or 'exit'"),
        (ONE, "PUT", {"device_id": 101, "type": "exit", "exit_at": "2026-01-13"}, "exit_at: the moment of an exit"),
        (ONE, "PUT", {"device_id": 101, "date_at": "2026-01-13T12:00:00", "exit_at": "2026-01-13T11:00:00"},
         "exit_at: is before the entry"),
        (ONE, "PUT", {"device_id": 101, "exit_device_id": 6}, "exit_device_id: there is no device 6"),
        (ONE, "PATCH", {"plate": "X"}, "id: is missing"),
        (ONE, "PATCH", {"id": "7"}, "id: must be a valid integer"),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_is_named(gateway, path, method, body, error):
    status, answer = await gateway.call(path, body, method=method)
    assert (status, answer["success"]) == (400, False)
    assert answer["error"].startswith(error), answer
    assert answer["entry" if method != "POST" else "entries"] is None


async def test_an_unknown_entry_is_404(gateway):
    assert (await gateway.call(ONE, {"id": 7, "plate": "X"}, method="PATCH"))[0] == 404


@pytest.mark.parametrize(
    ("path", "method"),
    [(LIST, "POST"), (REPORT, "POST"), ("/v1/entry/excel", "POST"), ("/v1/entry/reportExcel", "POST"),
     (ONE, "PUT"), (ONE, "PATCH")],
)  # fmt: skip
async def test_nobody_gets_in_without_a_session_and_the_permission(gateway, path, method):
    assert (await gateway.call(path, {}, method=method, user=""))[1]["error"] == "authentication required"
    status, answer = await gateway.call(path, {}, method=method, user="guard")
    assert status == 500
    verb = {"POST": "view", "PUT": "add", "PATCH": "edit"}[method]
    assert answer["error"] == f"permission denied: this needs can_{verb}_entries"


async def test_a_report_says_what_all_of_it_amounts_to(busy):
    _, answer = await busy.call(REPORT, {"page_limit": 1})
    EntryReportAnswer.model_validate(answer)
    assert len(answer["entries"]) == 1
    assert answer["totals"] == {
        "count": 3, "open": 1, "closed": 1, "exit_only": 1, "superseded": 0, "timed_out": 0,
        "average_minutes": 60.0, "longest_minutes": 60.0,
    }  # fmt: skip


async def test_an_entry_that_is_there_for_too_long_has_timed_out(busy):
    at(busy, NOON + 26 * HOUR + LONGEST_STAY)
    _, answer = await busy.call(LIST, {"status": ["timed_out"]})
    assert [entry["plate"] for entry in answer["entries"]] == ["AB123CD"]


def sheet(content):
    with zipfile.ZipFile(BytesIO(content)) as book:
        text = book.read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in text
    rows = re.findall(r"<row [^>]*>(.*?)</row>", text)
    return [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<c [^>]*>(.*?)</c>", row)] for row in rows]


@pytest.mark.parametrize(("path", "report"), [("/v1/entry/excel", False), ("/v1/entry/reportExcel", True)])
async def test_entries_as_excel(busy, path, report):
    headers = await busy.sign_in()
    body = {"start_date": "2026-01-13"}
    async with busy.client.post(busy.url + path, json=body, headers=headers) as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"].endswith("spreadsheetml.sheet")
        titles, gone, _, closed, *totals = sheet(await answer.read())
    assert titles[:5] == ["Id", "Status", "Entered", "Left", "Minutes"]
    assert closed[1:7] == ["closed", "46035.5", closed[3], "60", "Main entry", "Main entry"]
    assert float(closed[3]) == pytest.approx(46035.5 + 1 / 24)
    assert "=1+1" in gone
    assert totals == ([["Entries", "3"], ["Open", "1"], ["Closed", "1"], ["Exit only", "1"], ["Superseded", "0"],
        ["Timed out", "0"], ["Minutes on average", "60.0"], ["Minutes at most", "60.0"]] if report else [])  # fmt: skip


async def test_an_entry_by_hand_is_found_by_its_exit(gateway):
    at(gateway, NOON)
    body = {"device_id": 101, "plate": "ab 12", "date_at": "2026-01-13T12:00:00", "note": "Forgot the card."}
    status, answer = await gateway.call(ONE, body, method="PUT")
    assert status == 200, answer
    EntryAnswer.model_validate(answer)
    made = answer["entry"]
    assert (made["manual"], made["plate"], made["status"], made["note"]) == (True, "AB12", "open", "Forgot the card.")
    assert (made["entry_at"], made["lane_id"], made["area"]) == ("2026-01-13T17:00:00.000Z", "entry", "garage")
    assert made["sync"] == "in_step"  # a site that stands alone
    event = Event(EventKind.VEHICLE_PASSED, NOON + HOUR, clock_trusted=True, text="Out.", device_id=101)
    passage = Passage("entry", "exit", PassageOutcome.PASSED, NOON, NOON + HOUR, clock_trusted=True, plate="AB12")
    movement = Movement(Way(leaves="garage"), NOON + HOUR)
    await gateway.store.journal.record(Entry(events=(event,), passage=passage, movements=(movement,)))
    _, answer = await gateway.call(LIST, {})
    assert [(entry["id"], entry["status"]) for entry in answer["entries"]] == [(made["id"], "closed")]


async def test_an_entry_without_a_moment_is_of_now(gateway):
    _, answer = await gateway.call(ONE, {"device_id": 101, "date_at": " ", "exit_at": ""}, method="PUT")
    _, listed = await gateway.call(LIST, {"status": "open"})
    assert [entry["id"] for entry in listed["entries"]] == [answer["entry"]["id"]]


async def test_an_entry_is_closed_opened_again_and_corrected(busy):
    _, answer = await busy.call(LIST, {"status": "open"})
    (there,) = answer["entries"]
    change = {"id": there["id"], "exit_at": "2026-01-13T15:00:00", "exit_device_id": 101, "access_id": 5}
    status, answer = await busy.call(ONE, change, method="PATCH")
    assert status == 200, answer
    closed = answer["entry"]
    assert (closed["status"], closed["duration_minutes"], closed["access_id"]) == ("closed", 60, 5)
    assert (closed["exit_lane_id"], closed["manual"]) == ("entry", False)
    status, answer = await busy.call(ONE, {"id": there["id"], "exit_at": "2026-01-13T13:00:00"}, method="PATCH")
    assert (status, answer["error"]) == (400, "exit_at: is before the entry")
    _, answer = await busy.call(ONE, {"id": there["id"], "exit_at": None}, method="PATCH")
    assert (answer["entry"]["status"], answer["entry"]["exit_at"]) == ("open", None)
    _, answer = await busy.call(LIST, {"status": "exit_only"})
    (gone,) = answer["entries"]
    status, answer = await busy.call(ONE, {"id": gone["id"], "exit_at": "2026-01-14"}, method="PATCH")
    assert status == 400


@pytest.fixture
async def central():
    account = CentralAccount("gateway", "secret")
    async with serving_central(account, devices={101: "Device 101", 102: "Device 102"}) as central:
        yield central


@pytest.fixture
async def client(central):
    client = CentralClient(
        url=central.url, account=GatewayAccount("gateway", "secret"), clock=SystemClock(), timeout_seconds=5
    )
    yield client
    await client.close()


async def goes_up(gateway, client):
    """Send all that waits; return the books."""
    sender = outbox_sender(client=client, store=gateway.store, clock=gateway.clock)
    await sender.start_afresh()
    for _ in range(10):
        await sender.send_due()
        if not (await gateway.store.outbox.books()).waiting:
            break
        await gateway.store.outbox.retry_now()
    return await gateway.store.outbox.books()


async def test_an_entry_goes_through_to_central_while_it_answers(open_gateway, central, client):
    async with open_gateway(client=client) as gateway:
        body = {"device_id": 101, "plate": "AB12", "date_at": "2026-01-13T12:00:00", "note": "x"}
        status, answer = await gateway.call(ONE, body, method="PUT")
        assert status == 200, answer
        made = answer["entry"]
        (theirs,) = central.entries
        assert (made["id"], made["central_id"], made["sync"]) == (theirs["id"], theirs["id"], "in_step")
        assert made["site_id"] >= 2_000_000_000
        assert (theirs["plate"], theirs["date_at"], theirs["lane"]) == ("AB12", "2026-01-13T17:00:00.000Z", "entry")
        for known in (made["id"], made["site_id"]):
            change = {"id": known, "note": f"by {known}"}
            status, answer = await gateway.call(ONE, change, method="PATCH")
            assert (status, answer["entry"]["note"]) == (200, f"by {known}")
        assert central.entries[0]["note"] == f"by {made['site_id']}"
        status, answer = await gateway.call(ONE, {"id": made["id"], "surprise": 1}, method="PATCH")
        assert (status, "surprise" in answer["entry"]) == (200, False)
        assert (await gateway.store.outbox.books()).waiting == 1  # the conftest's camera event


async def test_the_first_ids_of_a_card_and_a_device_keep_finding_their_entries(open_gateway, central, client):
    async with open_gateway(client=client) as gateway:
        central.faults = Faults(down=True)
        _, answer = await gateway.call("/v1/access", {"number": "9901"}, method="PUT")
        card = answer["access_card"]["id"]
        assert card >= 2_000_000_000
        status, answer = await gateway.call(ONE, {"device_id": 101, "access_id": card + 9}, method="PUT")
        assert (status, answer["error"]) == (400, f"access_id: there is no access card {card + 9}")
        status, _ = await gateway.call(ONE, {"device_id": 101, "plate": "AB12", "access_id": card}, method="PUT")
        assert status == 200
        central.faults = Faults()
        central.tables.cameras.put({"id": 201, "name": "Camera"})
        await goes_up(gateway, client)
        (theirs,) = central.entries
        for number in (card, theirs["access_id"]):
            _, answer = await gateway.call("/v1/entry/list", {"access_ids": [number]})
            assert [entry["plate"] for entry in answer["entries"]] == ["AB12"], number


async def test_what_is_held_while_central_is_away_goes_up_later(open_gateway, central, client):
    async with open_gateway(client=client) as gateway:
        central.faults = Faults(down=True)
        _, answer = await gateway.call(ONE, {"device_id": 101, "plate": "AB12"}, method="PUT")
        made = answer["entry"]
        assert (made["id"], made["central_id"], made["sync"]) == (made["site_id"], None, "waiting")
        _, answer = await gateway.call(ONE, {"id": made["id"], "note": "later"}, method="PATCH")
        assert answer["entry"]["note"] == "later"
        await passes(gateway, NOON + HOUR, "exit", credential="0042")
        central.faults = Faults()
        central.tables.cameras.put({"id": 201, "name": "Camera"})
        books = await goes_up(gateway, client)
        assert (books.waiting, books.parked, books.balance()) == (0, 0, True)
        assert [(entry["type"], entry["note"]) for entry in central.entries] == [("entry", "later"), ("exit", "")]
        _, answer = await gateway.call(LIST, {})
        assert {entry["sync"] for entry in answer["entries"]} == {"in_step"}
        assert {entry["id"] for entry in answer["entries"]} == {entry["id"] for entry in central.entries}
        status, _ = await gateway.call(ONE, {"id": made["site_id"], "note": "old id"}, method="PATCH")
        assert (status, central.entries[0]["note"]) == (200, "old id")


async def test_a_walk_misses_nothing_and_shows_nothing_twice_while_vehicles_come_and_go(open_gateway, central, client):
    """Between any two pages one comes, one leaves, one is corrected, and central gives ids to what went up."""
    async with open_gateway(client=client) as gateway:
        at(gateway, NOON + 2 * HOUR)
        central.tables.cameras.put({"id": 201, "name": "Camera"})
        for number in range(40):
            await passes(gateway, NOON + number, credential=f"{number:04}")
        sender = outbox_sender(client=client, store=gateway.store, clock=gateway.clock)
        _, before = await gateway.call(LIST, {"page_limit": 500})
        walked, numbers, cursor, turn = [], [], 0, 0
        while True:
            status, page = await gateway.call(LIST, {"page_limit": 7, "cursor_id": cursor})
            assert status == 200
            EntriesAnswer.model_validate(page)
            walked += page["entries"]
            numbers.append(page["count"])
            if not page["entries"]:
                break
            cursor = page["next_cursor"] if turn % 2 else page["entries"][-1]["id"]  # central's id leads on as well
            oldest, unseen = before["entries"][-1 - turn], before["entries"][-10 - turn]
            _, _, (status, _), _ = await asyncio.gather(
                passes(gateway, NOON + HOUR + turn, credential=f"new {turn}"),
                passes(gateway, NOON + HOUR + turn, "exit", credential=oldest["credential"]),
                gateway.call(ONE, {"id": unseen["site_id"], "note": "seen"}, method="PATCH"),
                sender.send_due(),
            )
            assert status == 200
            turn += 1
        ids = [entry["site_id"] for entry in walked]
        assert ids == sorted(set(ids), reverse=True)
        assert ids == [entry["site_id"] for entry in before["entries"]]
        assert numbers == [40 + number for number in range(turn + 1)]
        _, after = await gateway.call(LIST, {"page_limit": 500, "status": "closed"})
        assert {entry["credential"] for entry in after["entries"]} == {f"{number:04}" for number in range(turn)}


async def test_what_passed_by_a_grant_is_no_card(gateway):
    await passes(gateway, NOON, card_id=-3, credential="grant 3")
    _, answer = await gateway.call(LIST, {})
    (entry,) = answer["entries"]
    assert (entry["access_id"], entry["credential"]) == (None, "grant 3")
