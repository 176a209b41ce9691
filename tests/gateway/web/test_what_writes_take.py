"""Bodies of writes: a wrong type is refused at once, an unknown field passed over, wherever central is."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from datetime import UTC

import pytest
from at_work import serving_central
from wired import down_sync, outbox_sender

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.central.field_map import CardFieldMap, map_card
from gateway.domain.events import EventKind
from gateway.runtime.clock import SystemClock, iso_utc
from gateway.store import StoredCard
from gateway.web.catalogue import OPERATIONS
from simulation.far_ends.central import Faults

NAMED = {f"{item.method} {item.path}": item for item in OPERATIONS}
WRITES = {
    "card made": (NAMED["PUT /v1/access"], {"number": "5150"}),
    "card changed": (NAMED["PATCH /v1/access"], {"id": 4001}),
    "card's lifecycle": (NAMED["PATCH /v1/access/lifecycle"], {"id": 4001, "status": "active"}),
    "device made": (NAMED["PUT /v1/device"], {"name": "Kiosk at the back"}),
    "device changed": (NAMED["PATCH /v1/device/config"], {"id": 109}),
    "camera made": (NAMED["PUT /v1/camera"], {"name": "Yard"}),
    "camera changed": (NAMED["PATCH /v1/camera"], {"id": 202}),
    "camera event made": (NAMED["PUT /v1/camera/event"], {"camera_id": 201}),
    "camera event changed": (NAMED["PATCH /v1/camera/event"], {"id": None}),
    "entry made": (NAMED["PUT /v1/entry"], {"device_id": 101}),
    "entry changed": (NAMED["PATCH /v1/entry"], {"id": None}),
}
"""By what each does: the operation, and the least that it takes; None for the id of what the gateway has."""
GOOD = {
    "number": ["", "0042", "x" * 120],
    "facility_code": [0, 255, "12", None],
    "card_number": [7, "00007", None],
    "card_format": ["H10301", None],
    "uid": ["04A1B2C3", None],
    "plate": ["AB 12", "", None],
    "type": [3, "kiosk"],
    "status": ["active", "blocked", None],
    "enabled": [True, False, None],
    "username": ["nora", None],
    "holder_name": ["Nora \N{LATIN SMALL LETTER E WITH ACUTE}", None],
    "customer_id": [17, None],
    "company_id": [18, None],
    "valid_from": ["2026-01-31", "2026-01-31T12:00:00-05:00", 1_769_860_800, 1_769_860_800_000, 0, "", None],
    "valid_until": ["2036-01-31", 2_085_000_000, "", None],
    "pin": ["1234", "", None],
    "zones": [[], [1, "north"], None],
    "schedules": [[2], None],
    "first_person": [True, None],
    "duress": [False, None],
    "note": ["by the oak", "two\nlines", "", None],
    "reason": ["found again", None],
    "name": ["Another name", None],
    "location": ["North", "", None],
    "description": ["At the oak.", "", None],
    "serial_number": ["S-1", None],
    "incident": [True, False, None],
    "camera_id": [201],
    "date_at": ["2026-01-31T12:00:00Z", "2026-01-31 12:00", ""],
    "start_date": ["", None],
    "end_date": ["", None],
    "access_id": [4001, None],
    "credential": ["0042", None],
    "lane": ["entry", None],
    "exit_lane": ["entry", None],
    "area": ["garage", None],
    "exit_at": [None, ""],
    "exit_device_id": [101, None],
    "device_id": [101],
    "data": ["{}", None],
    "clock_trusted": [True, False],
    "card changed: number": ["", "0043", "y" * 120, None],
    "entry made: status": ["open", "timed_out", None],
    "entry changed: status": ["closed", None],
    "entry made: type": ["entry", "exit"],
}
"""What each field takes, wherever it stands. A field that is not here has no test, and that fails."""
BESIDE = {"clock_trusted": {"date_at": "2026-01-31T12:00:00Z"}}
OF_ALL_KINDS = {"string": "x", "integer": 7, "number": 1.5, "boolean": True, "array": ["x"], "object": {"x": 1}}


@pytest.fixture
async def central():
    devices, cameras = {101: "Gate", 109: "Kiosk"}, {201: "Entry", 202: "Exit"}
    async with serving_central(devices=devices, cameras=cameras, cards=1) as service:
        service.tables.cards.put({"id": 4001, "number": "00111572", "username": "ada", "plate": "DM 001", "note": ""})
        yield service


@pytest.fixture
def gateway_at(open_gateway, central):
    """Opens the gateway: with a central that answers, with one that is away, or with none."""

    @asynccontextmanager
    async def opened(where):
        client = CentralClient(
            url=central.url, account=GatewayAccount("gateway", "right horse"), clock=SystemClock(), timeout_seconds=5
        )
        try:
            async with open_gateway(client=None if where == "none" else client) as gateway:
                down = down_sync(client=client, store=gateway.store, clock=gateway.clock)
                await down.pull()
                gateway.up = outbox_sender(client=client, store=gateway.store, clock=gateway.clock)
                await sent_up(gateway)
                _, made = await gateway.call("/v1/entry", {"device_id": 101, "plate": "ZZ 9"}, method="PUT")
                gateway.ids = {"entry": made["entry"]["site_id"], "camera event": gateway.camera_event_id}
                if where == "away":
                    central.faults = Faults(down=True)
                    await gateway.call("/v1/device/config", {"id": 109, "description": "away now"}, method="PATCH")
                yield gateway
        finally:
            await client.close()

    return opened


async def sent_up(gateway):
    for _ in range(20):
        await gateway.up.send_due()
        await gateway.store.outbox.retry_now()
        if not (await gateway.store.outbox.books()).waiting:
            return


def least(what, gateway):
    operation, body = WRITES[what]
    kind = what.partition(" ")[0] if "camera event" not in what else "camera event"
    return operation, {name: gateway.ids[kind] if value is None else value for name, value in body.items()}


async def write(gateway, what, **more):
    operation, body = least(what, gateway)
    return await gateway.call(operation.path, {**body, **more}, method=operation.method)


def kinds_of(schema):
    """The JSON kinds that a schema of a field admits."""
    if "anyOf" in schema:
        return {kind for one in schema["anyOf"] for kind in kinds_of(one)}
    if "$ref" in schema or "enum" in schema or "const" in schema:
        return {"string"}
    return {schema["type"], *(["integer"] if schema["type"] == "number" else [])}


def fields_of(what):
    schema = WRITES[what][0].body.model_json_schema()
    return {name: kinds_of(field) for name, field in schema["properties"].items()}


@pytest.mark.parametrize("where", ["up", "away", "none"])
async def test_a_wrong_type_is_refused_at_once_and_named(gateway_at, central, where):
    async with gateway_at(where) as gateway:
        books = await gateway.store.outbox.books()
        before = central.tables.snapshot()
        for what in WRITES:
            for name, kinds in fields_of(what).items():
                for kind, value in OF_ALL_KINDS.items():
                    if kind in kinds:
                        continue
                    status, answer = await write(gateway, what, **{name: value})
                    assert status == 400, (what, name, value, answer)
                    assert answer["error"].startswith(f"{name}: must be "), (what, name, value, answer)
                    assert "\n" not in answer["error"]
        assert await gateway.store.outbox.books() == books
        assert central.tables.snapshot() == before


@pytest.mark.parametrize("where", ["up", "away", "none"])
async def test_an_unknown_field_is_passed_over(gateway_at, central, where):
    strange = {"surprise": 1, "decided_as": 7, "has_pin": "x", "sync": {}, "sync_error": 3, "created_at": [],
               "updated_at": "soon", "uuid": 5, "idempotency_key": {}, "central_id": "x"}  # fmt: skip
    async with gateway_at(where) as gateway:
        for what in WRITES:
            more = {"note": "seen"} if what == "entry changed" else {}
            status, answer = await write(gateway, what, **strange, **more)
            assert (status, answer["success"]) == (200, True), (what, answer)
            (shown,) = [value for value in answer.values() if isinstance(value, dict) and "id" in value]
            assert "surprise" not in shown, what
        central.faults = Faults()
        await sent_up(gateway)
        books = await gateway.store.outbox.books()
        assert (books.waiting, books.parked) == (0, 0) if where != "none" else True
        assert "surprise" not in central.tables.snapshot().decode()


async def test_central_takes_what_is_taken_here(gateway_at, central):
    """One by one, so that nothing is accepted while central is away that central refuses later."""
    async with gateway_at("up") as gateway:
        for what in WRITES:
            for name in fields_of(what):
                if name == "id":
                    continue
                samples = GOOD.get(f"{what}: {name}", GOOD.get(name))
                assert samples, f"{name} of {what} has no sample"
                for value in samples:
                    if value is None and name in WRITES[what][0].body.model_json_schema().get("required", ()):
                        continue
                    beside = {"number": "", "holder_name": "Nora"} if what == "card made" else {}
                    more = {**beside, **BESIDE.get(name, {}), name: value}
                    if what == "card made" and name == "holder_name":
                        more["username"] = "nora"
                    status, answer = await write(gateway, what, **more)
                    assert status == 200, (what, name, value, answer)
        await sent_up(gateway)
        books = await gateway.store.outbox.books()
        assert (books.waiting, books.parked) == (0, 0)


OWN_WORDS = {"id": 4001, "number": "00111572", "zones": [{"id": 3, "name": "North"}], "status": "eaten",
             "valid_until": 1_900_000_000.5, "enabled": 1, "customer_id": "C-17", "photo": "x" * 1000}  # fmt: skip


WHOLE = (
    ("/v1/access", "/v1/access", "access_card", 4001, {"holder_name": "Ada L."}),
    ("/v1/device", "/v1/device/config", "device", 109, {"description": "by the elm"}),
    ("/v1/device", "/v1/device/config", "device", 101, {"description": "by the elm"}),
    ("/v1/camera", "/v1/camera", "camera", 202, {"location": "South"}),
    ("/v1/camera", "/v1/camera", "camera", 201, {"location": "South"}),
    ("/v1/camera/event", "/v1/camera/event", "event", None, {"name": "Dent"}),
)


@pytest.mark.parametrize("where", ["up", "away"])
async def test_a_whole_record_comes_back_with_one_field_changed(gateway_at, central, where):
    async with gateway_at(where) as gateway:
        devices = {number: dict(central.tables.devices[number]) for number in (101, 109)}
        for path, patch, resource, number, change in WHOLE:
            known = number or gateway.camera_event_id
            _, answer = await gateway.call(path, {"id": known})
            status, answer = await gateway.call(patch, {**answer[resource], **change}, method="PATCH")
            assert status == 200, answer
            assert {name: answer[resource][name] for name in change} == change
        central.faults = Faults()
        await sent_up(gateway)
        books = await gateway.store.outbox.books()
        assert (books.waiting, books.parked) == (0, 0)
        for path, _, resource, number, _ in WHOLE:
            _, answer = await gateway.call(path, {"id": number or gateway.camera_event_id})
            assert answer[resource]["sync"] == "in_step"
        for number, before in devices.items():
            now = central.tables.devices[number]
            assert {name for name in now if now[name] != before.get(name)} == {"description", "updated_at"}


@pytest.mark.parametrize("where", ["up", "away"])
async def test_a_whole_entry_comes_back_with_one_field_changed(gateway_at, central, where):
    async with gateway_at(where) as gateway:
        _, listed = await gateway.call("/v1/entry/list", {})
        (shown,) = listed["entries"]
        status, answer = await gateway.call("/v1/entry", {**shown, "note": "seen"}, method="PATCH")
        assert (status, answer["entry"] | shown) == (200, answer["entry"] | shown), answer
        status, answer = await gateway.call(
            "/v1/entry", {**answer["entry"], "exit_at": shown["entry_at"], "exit_device_id": 101}, method="PATCH"
        )
        assert (status, answer["entry"]["status"], answer["entry"]["note"]) == (200, "closed", "seen")
        central.faults = Faults()
        await sent_up(gateway)
        books = await gateway.store.outbox.books()
        assert (books.waiting, books.parked) == (0, 0)
        (theirs,) = central.entries
        assert (theirs["note"], theirs["exit_at"]) == ("seen", shown["entry_at"])


async def test_what_stands_in_a_record_is_not_judged_when_it_comes_back(gateway):
    """Central's words are central's, whatever the gateway would take from a person."""
    card = map_card(4001, OWN_WORDS, CardFieldMap(), UTC)
    await gateway.store.cards.apply(put=[StoredCard(card, json.dumps(OWN_WORDS))], now=1)
    _, answer = await gateway.call("/v1/access", {"id": 4001})
    assert answer["warnings"] == ["status: cannot be understood, so the card counts as suspended"]
    status, answer = await gateway.call("/v1/access", {**answer["access_card"], "note": "x"}, method="PATCH")
    assert status == 200, answer
    kept = json.loads((await gateway.store.cards.get(4001)).record)
    assert kept == {**OWN_WORDS, "note": "x"}
    for name, value in (("zones", [{"id": 4}]), ("status", "gone"), ("enabled", 0), ("customer_id", "C-18")):
        status, answer = await gateway.call("/v1/access", {"id": 4001, name: value}, method="PATCH")
        assert status == 400, name
        assert answer["error"].startswith(name), answer


async def test_true_is_not_one(gateway):
    await gateway.call("/v1/access", {"id": 4001, "customer_id": 1}, method="PATCH")
    status, answer = await gateway.call("/v1/access", {"id": 4001, "customer_id": True}, method="PATCH")
    assert (status, answer["error"]) == (400, "customer_id: must be a valid integer")


async def test_a_record_has_a_largest_size(gateway):
    for path, body in (
        ("/v1/access", {"number": "5", "zones": ["\N{ELEPHANT}" * 120] * 200}),
        ("/v1/entry", {"device_id": 101, "data": "\N{ELEPHANT}" * 20_000}),
    ):
        status, answer = await gateway.call(path, body, method="PUT")
        assert (status, answer["error"]) == (400, "body: a record has at most 64 KiB")


async def test_a_search_for_what_cannot_be_written_says_so(gateway):
    for family in ("device", "access", "event", "camera/event", "entry"):
        status, answer = await gateway.call(f"/v1/{family}/list", {"search": "a\0b"})
        assert (status, answer["error"]) == (400, "search: must not hold the character U+0000")


NOW = 1_790_000_000_000_000  # 2026-09-21


IMPOSSIBLE = (
    ({"date_at": "2199-01-01"}, "date_at: must be a moment that has been"),
    ({"date_at": "1969-01-01"}, "date_at: must be a moment that has been"),
    ({"date_at": "2026-09-20", "exit_at": "2199-01-01"}, "exit_at: must be a moment that has been"),
    ({"date_at": "2026-09-20", "exit_at": "2026-09-19"}, "exit_at: is before the entry"),
    ({"exit_at": "2026-09-19"}, "exit_at: is before the entry"),
    ({"clock_trusted": False}, "clock_trusted: is said of a date_at that is sent along"),
    ({"clock_trusted": False, "date_at": " "}, "clock_trusted: is said of a date_at that is sent along"),
)


async def test_an_entry_is_of_a_moment_that_has_been(gateway):
    gateway.clock.pushed += (NOW - gateway.clock.wall().micros) / 1e6
    for body, error in IMPOSSIBLE:
        status, answer = await gateway.call("/v1/entry", {"device_id": 101, **body}, method="PUT")
        assert (status, answer["error"]) == (400, error)
        _, made = await gateway.call("/v1/entry", {"device_id": 101, "date_at": "2026-09-20"}, method="PUT")
        status, answer = await gateway.call("/v1/entry", {"id": made["entry"]["id"], **body}, method="PATCH")
        assert (status, answer["error"]) == (400, error)


async def test_a_clock_that_nobody_set_is_told_by_central_what_is_to_come(gateway):
    gateway.clock.trusted = False
    for ahead in (0.0, 3 * 365 * 86_400.0, -3 * 365 * 86_400.0):  # of the same true present
        gateway.clock.stepped = -ahead
        gateway.central.show(clock_ahead=ahead)
        present = gateway.clock.wall().micros + int(ahead * 1e6)
        for name in ("date_at", "exit_at"):
            for path, method in (("/v1/entry", "PUT"), ("/v1/entry", "PATCH")):
                body = {"device_id": 101, "date_at": iso_utc(present - 120_000_000)}
                status, made = await gateway.call("/v1/entry", body, method="PUT")
                assert (status, made["entry"]["clock_trusted"]) == (200, True)
                body |= {"id": made["entry"]["id"], name: iso_utc(present + 90_000_000)}
                refused = (400, f"{name}: must be a moment that has been")
                status, answer = await gateway.call(path, body, method=method)
                assert (status, answer["error"]) == refused, (ahead, name, method)
                status, answer = await gateway.call(path, {**body, name: iso_utc(present - 60_000_000)}, method=method)
                assert (status, answer["entry"]["clock_trusted"]) == (200, True), (ahead, name, method)


async def test_what_no_clock_can_tell_is_taken_and_not_trusted(gateway):
    gateway.clock.trusted = False
    _, answer = await gateway.call("/v1/entry", {"device_id": 101}, method="PUT")
    assert answer["entry"]["clock_trusted"] is False
    gateway.clock.stepped = -3 * 365 * 86_400
    now = gateway.clock.wall().micros
    for when, more, trusted, changed in (
        (-60, {}, True, True),
        (3600, {}, False, False),
        (2 * 365 * 86_400, {}, False, False),
        (3600, {"clock_trusted": True}, True, False),  # in a change it may only be what the record showed before
        (-60, {"clock_trusted": False}, False, False),
    ):
        said = {"date_at": iso_utc(now + when * 1_000_000), **more}
        status, made = await gateway.call("/v1/entry", {"device_id": 101, **said}, method="PUT")
        assert (status, made["entry"]["clock_trusted"]) == (200, trusted), said
        for whole in (True, False):
            _, known = await gateway.call("/v1/entry", {"device_id": 101, "date_at": "2020-01-01"}, method="PUT")
            body = {**(known["entry"] if whole else {"id": known["entry"]["id"]}), **said}
            status, answer = await gateway.call("/v1/entry", body, method="PATCH")
            assert (status, answer["entry"]["clock_trusted"]) == (200, changed), body
    _, known = await gateway.call("/v1/entry", {"device_id": 101, "date_at": "2020-01-01"}, method="PUT")
    left = {"id": known["entry"]["id"], "exit_at": iso_utc(now + 3_600_000_000)}
    status, answer = await gateway.call("/v1/entry", left, method="PATCH")
    assert (status, answer["entry"]["status"], answer["entry"]["clock_trusted"]) == (200, "closed", False)
    far = {"device_id": 101, "date_at": iso_utc(now + 11 * 365 * 86_400_000_000)}
    status, answer = await gateway.call("/v1/entry", far, method="PUT")
    assert (status, answer["error"]) == (400, "date_at: must be a moment that has been")


async def test_a_moment_that_only_a_wrong_clock_can_name_is_not_trusted(gateway):
    """Footage goes by this machine's clock, so whoever looks at footage names its moments by that clock too."""
    gateway.clock.trusted = False
    when = iso_utc(gateway.clock.wall().micros - 60_000_000)
    for ahead, trusted in ((None, True), (0.0, True), (-86_400.0, False)):
        gateway.central.show(clock_ahead=ahead)
        status, answer = await gateway.call("/v1/camera/event", {"camera_id": 201, "date_at": when}, method="PUT")
        assert (status, answer["event"]["clock_trusted"]) == (200, trusted), ahead
    first = {"camera_id": 201, "date_at": "1970-01-01T00:00:00Z"}
    status, answer = await gateway.call("/v1/camera/event", first, method="PUT")
    assert (status, answer["event"]["date_at"]) == (200, "1970-01-01T00:00:00.000Z")
    later = {"camera_id": 201, "date_at": iso_utc(gateway.clock.wall().micros + 90_000_000)}
    status, answer = await gateway.call("/v1/camera/event", later, method="PUT")
    assert (status, answer["error"]) == (400, "date_at: must be a moment that has been")


async def test_the_first_moment_of_all_is_a_moment(gateway):
    first = "1970-01-01T00:00:00.000Z"
    for method in ("PUT", "PATCH"):
        _, made = await gateway.call("/v1/entry", {"device_id": 101, "date_at": "2020-01-01"}, method="PUT")
        body = {"id": made["entry"]["id"], "device_id": 101, "date_at": first, "exit_at": first}
        status, answer = await gateway.call("/v1/entry", body, method=method)
        shown = answer["entry"]
        assert (status, shown["entry_at"], shown["exit_at"], shown["status"]) == (200, first, first, "closed")
        assert (shown["date_at"], shown["duration_minutes"]) == (first, 0)
    _, left = await gateway.call("/v1/entry", {"device_id": 101, "type": "exit", "date_at": first}, method="PUT")
    assert (left["entry"]["exit_at"], left["entry"]["status"]) == (first, "exit_only")


async def test_too_much_that_waits_is_refused_in_one_sentence_and_told_once(gateway_at, monkeypatch):
    async with gateway_at("away") as gateway:
        waiting = (await gateway.store.backlog.usage()).bytes
        monkeypatch.setattr(gateway.store.backlog, "most", waiting + 2_000)
        while (await write(gateway, "device changed", description="x"))[0] == 200:
            pass
        gateway.clock.pushed += 3601
        gateway.tokens.clear()
        moments = (await gateway.call("/v1/camera/event/list", {}))[1]["count"]
        for what in WRITES:
            if what in ("card changed", "card's lifecycle"):
                continue
            status, answer = await write(gateway, what, **({"name": "x"} if what == "camera event changed" else {}))
            assert (status, answer["success"]) == (503, False), what
            assert answer["error"].endswith("bring central back, or raise backlog_gigabytes in the site file"), answer
        assert (await gateway.call("/v1/camera/event/list", {}))[1]["count"] == moments
        status, answer = await write(gateway, "card's lifecycle", status="lost")
        assert (status, answer["access_card"]["decided_as"]) == (200, "lost")
        _, told = await gateway.call("/v1/event/list", {"types": [int(EventKind.WRITES_REFUSED)]})
        assert told["count"] == 2
        assert json.loads(told["events"][0]["data"]) == {"refused_since_last_told": 1}
        gateway.clock.pushed += 3601
        gateway.tokens.clear()
        await write(gateway, "device changed")
        _, told = await gateway.call("/v1/event/list", {"types": [int(EventKind.WRITES_REFUSED)]})
        assert json.loads(told["events"][0]["data"]) == {"refused_since_last_told": 9}


async def test_a_card_that_is_never_valid_is_not_taken_without_a_word(gateway):
    never = {"valid_from": "2026-03-01", "valid_until": "2026-02-01"}
    refused = (400, "valid_until: is before valid_from")
    for body, method in (({"number": "5", **never}, "PUT"), ({"id": 4001, **never}, "PATCH")):
        status, answer = await gateway.call("/v1/access", body, method=method)
        assert (status, answer["error"]) == refused
    same_day = {"valid_from": "2026-03-01T08:00:00", "valid_until": "2026-03-01"}
    status, answer = await gateway.call("/v1/access", {"id": 4001, **same_day}, method="PATCH")
    assert (status, answer["warnings"]) == (200, [])
    status, answer = await gateway.call("/v1/access", {"id": 4001, "valid_until": "2026-02-01"}, method="PATCH")
    never = ["the card is never valid: valid_until is before valid_from"]
    assert (status, answer["warnings"]) == (200, never)
    status, answer = await gateway.call("/v1/access", {**answer["access_card"], "note": "x"}, method="PATCH")
    assert (status, answer["warnings"]) == (200, never)


async def test_what_central_may_have_lost_does_not_count_as_in_step(gateway_at, central):
    async with gateway_at("there") as gateway:
        made = {}
        for path, listed, body in (
            ("/v1/entry", "entries", {"device_id": 101, "plate": "AB 12"}),
            ("/v1/access", "access_cards", {"number": "55501"}),
        ):
            _, answer = await gateway.call(path, body, method="PUT")
            (record,) = (value for value in answer.values() if isinstance(value, dict))
            made[path, listed] = record["id"]

        async def told():
            found = {}
            for (path, listed), number in made.items():
                _, one = await gateway.call(path, {"id": number}) if listed == "access_cards" else (0, {})
                _, answer = await gateway.call(f"{path}/list", {})
                (record,) = [record for record in answer[listed] if record["id"] == number]
                found[listed] = {record["sync"], *(value["sync"] for value in one.values() if isinstance(value, dict))}
            return found

        assert await told() == {"entries": {"in_step"}, "access_cards": {"in_step"}}
        gateway.store.pending_writes.set_back = True  # as the detector of a restored central sets it
        assert await told() == {"entries": {"in_doubt"}, "access_cards": {"in_doubt"}}
        _, answer = await gateway.call("/v1/access", {"id": 4001})
        assert answer["access_card"]["sync"] == "in_step", "central's own card"


async def test_what_central_never_gets_does_not_count_as_in_step(gateway_at, central):
    async with gateway_at("away") as gateway:
        for path, listed, body in (
            ("/v1/entry", "entries", {"device_id": 101, "plate": "AB 12"}),
            ("/v1/camera/event", "events", {"camera_id": 201, "name": "Dent"}),
        ):
            _, answer = await gateway.call(path, body, method="PUT")
            (made,) = (value for value in answer.values() if isinstance(value, dict))
            assert made["sync"] == "waiting"
            (row,) = [row for row in await gateway.store.outbox.due(now=2**62) if row.record_id == made["id"]]
            await gateway.store.outbox.park(row, error="no such lane")

            async def standing(path=path, listed=listed, number=made["id"]):
                _, answer = await gateway.call(f"{path}/list", {})
                (found,) = [record for record in answer[listed] if record["id"] == number]
                return found["sync"]

            assert await standing() == "refused"
            assert (await gateway.call("/status/outbox/drop", {"id": row.id}))[0] == 200
            assert await standing() == "site_only"
            change = {"id": made["id"], "description" if listed == "events" else "note": "seen"}
            _, answer = await gateway.call(path, change, method="PATCH")
            (changed,) = (value for value in answer.values() if isinstance(value, dict))
            assert (changed["sync"], await standing()) == ("site_only", "site_only")
