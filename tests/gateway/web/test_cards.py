"""Access cards and devices over real sockets: alone, and through the simulated central."""

from __future__ import annotations

import asyncio
import json
import re
import zipfile
from contextlib import asynccontextmanager
from io import BytesIO

import pytest
from at_work import serving_central
from wired import outbox_sender

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.domain.credentials import Card, CardStatus
from gateway.domain.events import EventKind
from gateway.domain.writes import FIRST_PROVISIONAL_ID
from gateway.runtime.clock import SystemClock
from gateway.store import StoredCard
from gateway.web.http.errors import AUTHENTICATION_REQUIRED
from simulation.far_ends.central import Faults

ONE_FAULT = {
    "number": ("PATCH", "/v1/access", {"id": 4001, "number": 5}),
    "valid_until": ("PATCH", "/v1/access", {"id": 4001, "valid_until": "soon"}),
    "pin": ("PATCH", "/v1/access", {"id": 4001, "pin": "12"}),
    "facility_code": ("PUT", "/v1/access", {"number": "1", "facility_code": -1}),
    "id": ("DELETE", "/v1/access", {"id": "4001"}),
    "status": ("PATCH", "/v1/access/lifecycle", {"id": 4001, "status": "eaten"}),
    "device_id": ("POST", "/v1/access/device", {"id": 4001}),
    "username": ("POST", "/v1/access/username", {"username": ""}),
    "search": ("POST", "/v1/access/excel", {"search": 7}),
    "page_limit": ("POST", "/v1/access/list", {"page_limit": 0}),
    "name": ("PUT", "/v1/device", {"name": ""}),
    "enabled": ("PATCH", "/v1/device/config", {"id": 101, "enabled": "yes"}),
}


@pytest.fixture
async def central():
    async with serving_central(devices={101: "Gate", 109: "Kiosk"}, cards=12) as service:
        yield service


@pytest.fixture
def gateway_below(open_gateway, central):
    """Opens the gateway with a client of that central."""

    @asynccontextmanager
    async def opened():
        client = CentralClient(url=central.url, account=GatewayAccount("gateway", "right horse"), clock=SystemClock())
        try:
            async with open_gateway(client=client) as gateway:
                gateway.up = outbox_sender(client=client, store=gateway.store, clock=SystemClock())
                yield gateway
        finally:
            await client.close()

    return opened


async def card(gateway, card_id):
    status, answer = await gateway.call("/v1/access", {"id": card_id})
    return answer["access_card"] if status == 200 else status


async def test_a_card_is_made_changed_and_deleted_and_lanes_know_at_once(gateway):
    status, made = await gateway.call("/v1/access", {"number": "77123", "holder_name": "Nora"}, method="PUT")
    assert (status, made["warnings"], made["access_card"]["sync"]) == (200, [], "in_step")
    number = made["access_card"]["id"]
    assert [item.card_id for item in gateway.store.cards.at_once(["text:77123"]) or ()] == [number]
    status, changed = await gateway.call("/v1/access", {"id": number, "plate": "AB 12"}, method="PATCH")
    assert changed["access_card"] | {"plate": "AB 12", "holder_name": "Nora"} == changed["access_card"]
    status, lost = await gateway.call("/v1/access/lifecycle", {"id": number, "status": "lost"}, method="PATCH")
    assert (lost["access_card"]["decided_as"], lost["warnings"]) == (
        "lost",
        ["the card counts as lost and opens nothing"],
    )
    assert gateway.store.cards.at_once(["plate:AB12"])[0].status is CardStatus.LOST
    status, gone = await gateway.call("/v1/access", {"id": number}, method="DELETE")
    assert (status, gone["access_card"]["id"]) == (200, number)
    assert gateway.store.cards.at_once(["text:77123"]) == ()
    assert await card(gateway, number) == 404


async def test_who_changed_a_card_is_recorded(gateway):
    await gateway.call("/v1/access/lifecycle", {"id": 4001, "status": "lost"}, method="PATCH")
    await gateway.call("/v1/access", {"id": 4001}, method="DELETE")
    _, answer = await gateway.call("/v1/event/list", {"types": [int(EventKind.CARDS_CHANGED)]})
    told = [item["description"] for item in answer["events"]]
    assert told == ["access card 4001 was deleted by chief", "access card 4001 was set to lost by chief"]


async def test_every_state_may_follow_every_other(gateway):
    for status in ("suspended", "lost", "blocked", "expired", "active", "blocked", "active"):
        _, answer = await gateway.call("/v1/access/lifecycle", {"id": 4001, "status": status}, method="PATCH")
        assert answer["access_card"]["decided_as"] == status


async def test_null_takes_a_bound_away_and_never_a_state(gateway):
    await gateway.call("/v1/access", {"id": 4001, "status": "lost", "valid_until": "2020-01-31"}, method="PATCH")
    body = {"id": 4001, "status": None, "enabled": None, "valid_until": None}
    _, answer = await gateway.call("/v1/access", body, method="PATCH")
    assert (answer["access_card"]["decided_as"], answer["access_card"]["valid_until"]) == ("lost", None)
    assert (await gateway.store.cards.get(4001)).card.valid_until is None


async def test_two_spellings_of_one_number_are_told(gateway):
    await gateway.call("/v1/access", {"number": "077,30211"}, method="PUT")
    _, answer = await gateway.call("/v1/access", {"number": "0005076483"}, method="PUT")
    assert any("one reading means this card and card" in told for told in answer["warnings"])


@pytest.mark.parametrize("search", ["77:30211", "077 30211", "0005076483", "077,30211"])
async def test_a_card_is_found_by_its_number_in_any_spelling(gateway, search):
    _, made = await gateway.call("/v1/access", {"number": "077,30211"}, method="PUT")
    _, found = await gateway.call("/v1/access/list", {"search": search})
    assert [card["id"] for card in found["access_cards"]] == [made["access_card"]["id"]]


async def test_a_card_that_nothing_can_read_is_taken_with_a_warning(gateway):
    status, answer = await gateway.call("/v1/access", {"holder_name": "Nora"}, method="PUT")
    assert status == 200
    assert "no reader can match" in answer["warnings"][0]
    status, answer = await gateway.call("/v1/access", {}, method="PUT")
    assert (status, answer["error"]) == (400, "body: an access card needs at least one field")


@pytest.mark.parametrize("raw", [b'{"number":"5","x":NaN}', b'{"number":"5","x":-Infinity}', b'{"number":"\\ud800"}'])
async def test_what_is_no_json_elsewhere_is_none_here(gateway, raw):
    headers = await gateway.sign_in()
    async with gateway.client.put(f"{gateway.url}/v1/access", data=raw, headers=headers) as answer:
        assert (answer.status, (await answer.json())["error"]) == (400, "the body is not JSON")


async def test_a_record_that_is_no_json_keeps_no_other_from_being_found(gateway):
    await gateway.store.cards.apply(put=[StoredCard(Card(9, "9"), '{"x":NaN}')], now=1)
    assert (await gateway.call("/v1/access/list", {"search": "ada"}))[1]["count"] == 1


async def test_a_pin_is_shown_nowhere(gateway):
    shown = [await card(gateway, 4001)]
    shown.append((await gateway.call("/v1/access/list", {}))[1])
    shown.append((await gateway.call("/v1/access/username", {"username": "ADA"}))[1])
    shown.append((await gateway.call("/v1/access", {"id": 4001, "pin": "4712"}, method="PATCH"))[1])
    shown.append((await gateway.call("/v1/access", {"id": 4001}, method="DELETE"))[1])
    assert not re.search(r"471[12]|pin_code", json.dumps(shown))
    assert all('"has_pin": true' in json.dumps(item) for item in shown)


@pytest.mark.parametrize("field", ONE_FAULT)
async def test_a_bad_field_is_named(gateway, field):
    method, path, body = ONE_FAULT[field]
    status, answer = await gateway.call(path, body, method=method)
    assert status == 400
    assert answer["error"].startswith(f"{field}: ")
    assert answer["success"] is False


@pytest.mark.parametrize(
    ("method", "path", "permission"),
    [
        ("PUT", "/v1/access", "can_add_access_cards or can_add_guests"),
        ("PATCH", "/v1/access", "can_edit_access_cards or can_edit_guests"),
        ("PATCH", "/v1/access/lifecycle", "can_edit_access_cards"),
        ("DELETE", "/v1/access", "can_delete_access_cards or can_delete_guests"),
        ("POST", "/v1/access/excel", "can_view_access_cards or can_view_guests"),
        ("PUT", "/v1/device", "can_add_devices"),
        ("PATCH", "/v1/device/config", "can_edit_devices"),
    ],
)
async def test_writing_needs_its_permission_and_a_session(gateway, method, path, permission):
    status, answer = await gateway.call(path, {"id": 4001}, method=method, user="guard")
    assert (status, answer["error"]) == (500, f"permission denied: this needs {permission}")
    status, answer = await gateway.call(path, {"id": 4001}, method=method, user="")
    assert (status, answer["error"]) == (500, AUTHENTICATION_REQUIRED)
    assert (await gateway.store.cards.get(4001)).card.status is CardStatus.ACTIVE


async def test_what_is_not_there_is_not_found(gateway):
    for method, path in (("POST", ""), ("PATCH", ""), ("DELETE", ""), ("PATCH", "/lifecycle"), ("POST", "/device")):
        body = {"id": 9, "status": "lost", "device_id": 101}
        status, answer = await gateway.call(f"/v1/access{path}", body, method=method)
        assert (status, answer["error"]) == (404, "there is no access card 9"), path
    assert (await gateway.call("/v1/access/username", {"username": "nobody"}))[0] == 404
    assert (await gateway.call("/v1/device/config", {"id": 9}, method="PATCH"))[0] == 404
    assert (await gateway.call("/v1/access", {"id": 2**63 - 1}))[0] == 404


async def test_a_card_is_not_sent_to_what_keeps_none(gateway):
    status, answer = await gateway.call("/v1/access/device", {"id": 4001, "device_id": 102})
    assert (status, answer["access_card"]) == (409, None)
    assert "the driver serial-reader of device 102 keeps no cards" in answer["error"]
    status, answer = await gateway.call("/v1/access/device", {"id": 4001, "device_id": 7})
    assert (status, answer["error"]) == (404, "device_id: there is no device 7")


async def test_the_list_has_pages_and_a_search(gateway):
    for number in range(30):
        body = {"number": f"88{number:03d}", "holder_name": f"Vera {number}", "plate": f"V{number:03d}"}
        await gateway.call("/v1/access", body, method="PUT")
    _, answer = await gateway.call("/v1/access/list", {})
    assert (answer["count"], len(answer["access_cards"])) == (31, 25)
    ids = [item["id"] for item in answer["access_cards"]]
    assert ids == sorted(ids, reverse=True)
    _, second = await gateway.call("/v1/access/list", {"page": 2})
    assert [item["id"] for item in second["access_cards"]][-1] == 4001
    for search, found in (
        ("vera 7", 1),
        ("88 ", 0),
        ("88", 30),
        ("v-012", 1),
        ("ADA", 1),
        ("%", 0),
        ("a_a", 0),
    ):
        _, answer = await gateway.call("/v1/access/list", {"search": search})
        assert answer["count"] == found, search


async def test_a_site_files_device_keeps_what_the_file_says(gateway):
    status, answer = await gateway.call("/v1/device/config", {"id": 101, "name": "Another"}, method="PATCH")
    assert (status, answer["error"]) == (409, "name: the site file says what it is for device 101")
    body = {"id": 101, "name": "Entry barrier", "description": "by the oak"}
    status, answer = await gateway.call("/v1/device/config", body, method="PATCH")
    assert (answer["device"]["name"], answer["device"]["description"]) == ("Entry barrier", "by the oak")
    status, made = await gateway.call("/v1/device", {"name": "Kiosk", "id": 5, "location": "Hall"}, method="PUT")
    assert (made["device"]["id"], made["device"]["location"]) == (FIRST_PROVISIONAL_ID, "Hall")
    assert made["device"]["at_site"] is False
    status, answer = await gateway.call(
        "/v1/device/config", {"id": FIRST_PROVISIONAL_ID, "name": "K 2"}, method="PATCH"
    )
    assert answer["device"]["name"] == "K 2"
    status, answer = await gateway.call("/v1/device/list", {"search": "K 2"})
    assert (answer["count"], answer["next_cursor"]) == (1, FIRST_PROVISIONAL_ID)


async def test_what_central_says_is_told_as_it_is(gateway_below, central):
    async with gateway_below() as gateway:
        status, made = await gateway.call("/v1/access", {"number": "77123"}, method="PUT")
        assert made["access_card"]["created_at"] == central.cards[made["access_card"]["id"]]["created_at"]
        status, answer = await gateway.call("/v1/access", {"number": "77123"}, method="PUT")
        assert (status, answer) == (
            409,
            {"success": False, "access_card": None, "error": "number: 77123 is already used"},
        )
        central.faults = Faults(deny="can_edit_devices")
        await gateway.call("/v1/device", {"name": "New one"}, method="PUT")
        known = next(number for number, item in central.tables.devices.items() if item["name"] == "New one")
        status, answer = await gateway.call("/v1/device/config", {"id": known, "name": "x"}, method="PATCH")
        assert (status, answer["error"]) == (500, "permission denied: can_edit_devices")


async def test_while_central_is_away_a_number_is_given_once_too(gateway_below, central):
    async with gateway_below() as gateway:
        _, first = await gateway.call("/v1/access", {"number": "77123"}, method="PUT")
        await central.stop()
        taken = (409, {"success": False, "access_card": None, "error": "number: 77123 is already used"})
        assert await gateway.call("/v1/access", {"number": "77123", "holder_name": "Bo"}, method="PUT") == taken
        status, second = await gateway.call("/v1/access", {"number": "77124"}, method="PUT")
        assert status == 200
        changed = {"id": second["access_card"]["id"], "number": "77123"}
        assert await gateway.call("/v1/access", changed, method="PATCH") == taken
        own = {"id": first["access_card"]["id"], "number": "77123", "note": "kept"}
        assert (await gateway.call("/v1/access", own, method="PATCH"))[0] == 200
        assert (await gateway.call("/v1/access", {"id": own["id"]}, method="DELETE"))[0] == 200
        assert (await gateway.call("/v1/access", changed, method="PATCH"))[0] == 200


async def test_while_central_is_away_all_goes_on_and_the_old_id_leads_to_the_new(gateway_below, central):
    async with gateway_below() as gateway:
        await central.stop()
        status, made = await gateway.call("/v1/access", {"number": "77123", "username": "Nora"}, method="PUT")
        old = made["access_card"]["id"]
        assert (status, old, made["access_card"]["sync"]) == (200, FIRST_PROVISIONAL_ID, "waiting")
        await gateway.call("/v1/access", {"id": old, "note": "by hand"}, method="PATCH")
        assert (await gateway.call("/v1/access/list", {}))[1]["access_cards"][0]["sync"] == "waiting"
        await central.start()
        async with asyncio.timeout(30):
            while (await gateway.store.outbox.books()).waiting:
                await gateway.store.outbox.retry_now()
                await gateway.up.send_due()
        shown = await card(gateway, old)
        assert shown["id"] < FIRST_PROVISIONAL_ID
        assert (shown["note"], shown["sync"]) == ("by hand", "in_step")
        assert central.cards[shown["id"]]["note"] == "by hand"
        await gateway.call("/v1/access/lifecycle", {"id": old, "status": "lost"}, method="PATCH")
        assert central.cards[shown["id"]]["status"] == "lost"
        _, found = await gateway.call("/v1/access/username", {"username": "nora"})
        assert found["access_card"]["id"] == shown["id"]


async def test_the_answer_to_a_deletion_says_what_becomes_of_it(gateway_below, central):
    async with gateway_below() as gateway:
        _, known = await gateway.call("/v1/access", {"number": "77124"}, method="PUT")
        await central.stop()
        await gateway.call("/v1/access", {"number": "77125"}, method="PUT")  # from here on central is known to be away
        _, made = await gateway.call("/v1/access", {"number": "77123"}, method="PUT")
        _, gone = await gateway.call("/v1/access", {"id": made["access_card"]["id"]}, method="DELETE")
        assert gone["access_card"]["sync"] == "taken_back"
        _, gone = await gateway.call("/v1/access", {"id": known["access_card"]["id"]}, method="DELETE")
        assert gone["access_card"]["sync"] == "waiting"
        books = await gateway.store.outbox.books()
        assert (books.balance(), books.replaced) == (True, 1)


def cells(data):
    """The cells of the first sheet by their place: kind and text."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in sheet
    assert "hyperlink" not in sheet
    found = {}
    for place, kind, body in re.findall(r'<c r="([A-Z]+\d+)"(?: s="\d+")?(?: t="(\w+)")?>(.*?)</c>', sheet):
        found[place] = (kind, re.sub(r"<[^>]*>", "", body))
    return found


async def test_the_sheet_has_texts_that_are_no_formulas_and_moments_of_the_sites_zone(gateway):
    body = {
        "number": "=cmd|' /C calc'!A0",
        "holder_name": "@SUM(1)<&\x01\ufeff",
        "note": "https://a.example/",
        "valid_from": "2026-07-01T12:00:00Z",
        "customer_id": 12,
    }
    await gateway.call("/v1/access", body, method="PUT")
    headers = await gateway.sign_in()
    async with gateway.client.post(f"{gateway.url}/v1/access/excel", json={}, headers=headers) as answer:
        data = await answer.read()
        assert answer.status == 200
        assert answer.content_type == "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="access-cards.xlsx"'
        assert answer.content_length == len(data)
    found = cells(data)
    assert found["A1"] == ("inlineStr", "Id")
    assert found["B2"] == ("inlineStr", "=cmd|&apos; /C calc&apos;!A0".replace("&apos;", "'"))
    assert found["D2"][0] == "inlineStr"
    assert found["D2"][1].startswith("@SUM(1)&lt;&amp;_x0001_")
    assert found["E2"] == ("", "46204.33333333334")  # 08:00 in Toronto
    assert (found["N2"], found["P2"]) == (("", "12"), ("inlineStr", "https://a.example/"))
    assert found["A3"] == ("", "4001")
    assert "4711" not in {text for _, text in found.values()}
    assert not list((gateway.store.database.path.parent / "spreadsheets").iterdir())


async def test_a_sheet_of_a_search_has_only_what_was_found(gateway):
    await gateway.call("/v1/access", {"number": "77123"}, method="PUT")
    headers = await gateway.sign_in()
    async with gateway.client.post(f"{gateway.url}/v1/access/excel", json={"search": "ada"}, headers=headers) as answer:
        found = cells(await answer.read())
    assert {place for place in found if place.startswith("A")} == {"A1", "A2"}


async def test_only_so_many_sheets_are_made_at_once(gateway):
    headers = await gateway.sign_in()

    async def sheet():
        async with gateway.client.post(f"{gateway.url}/v1/access/excel", json={}, headers=headers) as answer:
            await answer.read()
            return answer.status, answer.headers.get("Retry-After")

    answers = await asyncio.gather(*(sheet() for _ in range(11)))
    assert answers.count((200, None)) == 8
    assert answers.count((503, "10")) == 3


async def test_a_disk_that_takes_no_sheet_says_so(gateway):
    (gateway.store.database.path.parent / "spreadsheets").write_text("in the way")
    headers = await gateway.sign_in()
    async with gateway.client.post(f"{gateway.url}/v1/access/excel", json={}, headers=headers) as answer:
        assert answer.status == 503
        assert (await answer.json())["error"].startswith("the disk takes no sheet")


async def test_a_card_that_somebody_else_has_changed_is_not_overwritten(gateway):
    _, answer = await gateway.call("/v1/access", {"id": 4001})
    seen = f'"{answer["access_card"]["etag"]}"'
    status, answer = await gateway.call("/v1/access", {"id": 4001, "note": "by Ana"}, method="PATCH", If_Match=seen)
    assert status == 200
    changes = {
        ("PATCH", "/v1/access"): {"id": 4001, "note": "by Bo"},
        ("PATCH", "/v1/access/lifecycle"): {"id": 4001, "status": "suspended"},
        ("DELETE", "/v1/access"): {"id": 4001},
    }
    for (method, path), body in changes.items():
        status, refused = await gateway.call(path, body, method=method, If_Match=seen)
        assert (status, "meanwhile" in refused["error"]) == (412, True), path
    _, shown = await gateway.call("/v1/access", {"id": 4001})
    assert shown["access_card"]["note"] == "by Ana"
    fresh = f'"{answer["access_card"]["etag"]}"'
    status, _ = await gateway.call("/v1/access", {"id": 4001, "note": "by Bo"}, method="PATCH", If_Match=fresh)
    assert status == 200


async def test_of_two_changes_at_once_of_a_card_as_it_was_seen_one_is_told(gateway):
    _, answer = await gateway.call("/v1/access", {"id": 4001})
    seen = f'"{answer["access_card"]["etag"]}"'
    changes = [{"id": 4001, "note": name} for name in ("Ana", "Bo")]
    answers = await asyncio.gather(
        *(gateway.call("/v1/access", body, method="PATCH", If_Match=seen) for body in changes)
    )
    assert sorted(status for status, _ in answers) == [200, 412]
