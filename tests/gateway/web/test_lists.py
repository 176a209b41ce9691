"""Lists, records and commands of `/v1`."""

import json
import sqlite3
from contextlib import closing

from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind

FIELDS = {"id", "device_id", "type", "category", "subcategory", "name", "description", "date_at", "data"}


async def test_an_event_has_every_field_of_the_document(gateway):
    event_id = await gateway.happened(
        "Möbel & Söhne passed.", device_id=101, date_at=1_768_305_600_123_456, data={"card": "0042", "ok": True}
    )
    status, answer = await gateway.call("/v1/event", {"id": event_id})
    event = answer["event"]
    assert status == 200
    assert set(event) >= FIELDS
    assert event["date_at"] == "2026-01-13T12:00:00.123Z"
    assert event["type"] == EventKind.VEHICLE_PASSED
    assert isinstance(event["data"], str)
    assert json.loads(event["data"]) == {"card": "0042", "ok": True}


async def test_cursors_walk_every_event_once_newest_first(gateway):
    ids = [await gateway.happened(f"Number {number}.") for number in range(12)]
    for number in range(3):
        await gateway.happened(f"Else {number}.")
    seen, cursor = [], 0
    for _ in range(10):
        _, answer = await gateway.call("/v1/event/list", {"cursor_id": cursor, "page_limit": 5, "search": "number"})
        if not answer["events"]:
            break
        await gateway.happened("Number new.")  # newer ones do not disturb the walk
        seen += [event["id"] for event in answer["events"]]
        cursor = answer["next_cursor"]
    assert seen == ids[::-1]
    assert "next_cursor" not in answer


async def test_pages_and_limits_of_events(gateway):
    ids = [await gateway.happened(f"Number {number}.") for number in range(30)]
    _, first = await gateway.call("/v1/event/list", {})
    assert len(first["events"]) == 25
    assert first["count"] == 31
    _, second = await gateway.call("/v1/event/list", {"page": 2, "page_limit": 10, "cursor_id": None})
    assert [event["id"] for event in second["events"]] == ids[::-1][10:20]
    _, capped = await gateway.call("/v1/event/list", {"page_limit": 10**6})
    assert len(capped["events"]) == 31


async def test_filters_of_events(gateway):
    noon = 1_768_323_600_000_000  # 2026-01-13 12:00 at Toronto
    early = await gateway.happened(
        "Early.", kind=EventKind.GATE_OPENED, device_id=101, date_at=noon - 12 * 3_600_000_000
    )
    late = await gateway.happened("Late.", kind=EventKind.DEVICE_LOST, device_id=102, date_at=noon + 43_199_999_999)

    async def found(**body):
        status, answer = await gateway.call("/v1/event/list", body)
        assert status == 200
        return [event["id"] for event in answer["events"]]

    day = {"start_date": "2026-01-13", "end_date": "2026-01-13"}
    assert await found(**day) == [late, early]
    assert await found(start_date="2026-01-14", end_date="2026-01-20") == []
    assert await found(start_date="2026-01-13T17:00:00Z", end_date="2026-01-14") == [late]
    assert await found(**day, device_ids=[101]) == [early]
    assert await found(**day, types=[EventKind.DEVICE_LOST]) == [late]
    assert await found(**day, event_types=[EventKind.DEVICE_LOST]) == [late]
    assert await found(**day, types=[EventKind.DEVICE_LOST, 1], event_types=[EventKind.DEVICE_LOST, 2]) == [late]
    assert await found(**day, types=[EventKind.DEVICE_LOST], event_types=[EventKind.VEHICLE_PASSED]) == []
    assert await found(**day, search="EARL") == [early]
    assert await found(**day, search="%") == []
    assert await found(**day, search="", start_date_typo=1) == [late, early]


async def test_a_search_that_ended_early_says_so_and_goes_on(gateway, monkeypatch):
    monkeypatch.setattr("gateway.store.events.pages.EXACT_SEARCH", 0)
    monkeypatch.setattr("gateway.store.events.pages.SEARCH_SECONDS", 0.0)
    wanted = await gateway.happened("Plate AB1.")
    await gateway.store.database.write(
        lambda connection: connection.execute("UPDATE sqlite_sequence SET seq = seq + 200000 WHERE name = 'event'")
    )
    later = await gateway.happened("Something else.")
    _, answer = await gateway.call("/v1/event/list", {"search": "ab1"})
    assert (answer["events"], answer["count"], answer["complete"]) == ([], 0, False)
    assert wanted < answer["next_cursor"] <= later
    _, answer = await gateway.call("/v1/event/list", {"search": "ab1", "cursor_id": answer["next_cursor"]})
    assert [event["id"] for event in answer["events"]] == [wanted]
    _, answer = await gateway.call("/v1/event/list", {"types": [EventKind.VEHICLE_PASSED]})
    assert "complete" not in answer


async def test_a_bad_filter_is_named(gateway):
    for body, sentence in (
        ({"start_date": "yesterday"}, "start_date: must be a date like"),
        ({"end_date": "2026-13-01"}, "end_date: must be a date like"),
        ({"start_date": 5}, "start_date: must be a valid string"),
        ({"device_ids": [1, "2"]}, "device_ids.1: must be a valid integer"),
        ({"device_ids": 5}, "device_ids: must be an array"),
        ({"types": [1] * 1001}, "types: "),
    ):
        status, answer = await gateway.call("/v1/event/list", body)
        assert status == 400, body
        assert answer["error"].startswith(sentence), answer
        assert answer["events"] is None


async def test_a_device_shows_the_site_over_central(gateway):
    record = {"id": 101, "name": "CENTRAL", "status": "offline", "location": "Yard", "zone": {"deep": [1, None]}}
    other = {"id": 900, "name": "Far kiosk", "status": "online", "location": "South"}
    await gateway.store.devices.pulled({101: record, 900: {**other, "type": "kiosk"}}, removed=(), now=1)
    _, answer = await gateway.call("/v1/device", {"id": 101})
    device = answer["device"]
    assert device["zone"] == {"deep": [1, None]}
    assert (device["name"], device["type"], device["location"]) == ("Entry barrier", "modbus-gate", "Main entry")
    assert (device["status"], device["position"]) == ("online", "closed")
    _, answer = await gateway.call("/v1/device", {"id": 900})
    far = answer["device"]
    assert (far["status"], far["location"], far["position"], far["at_site"]) == ("online", "South", None, False)
    gateway.board.lose("no answer from 127.0.0.1:502")
    _, answer = await gateway.call("/v1/device/list", {"page_limit": 2})
    assert [device["id"] for device in answer["devices"]] == [900, 102]
    assert (answer["count"], answer["next_cursor"]) == (3, 102)
    _, answer = await gateway.call("/v1/device/list", {"cursor_id": 102})
    assert [(device["id"], device["status"]) for device in answer["devices"]] == [(101, "offline")]
    _, answer = await gateway.call("/v1/device/list", {"search": "reader"})
    assert [device["status"] for device in answer["devices"]] == ["unknown"]


async def test_a_command_is_recorded_under_who_wanted_it(gateway):
    for path, action in (("/v1/device/open", GateAction.OPEN), ("/v1/device/close", GateAction.CLOSE)):
        status, answer = await gateway.call(path, {"id": 101})
        assert status == 200
        assert answer["command"]["action"] == action.value
        assert (await gateway.store.commands.get(answer["command"]["id"])).source == "user:chief"
    assert [command.action for command in gateway.board.commands] == [GateAction.OPEN, GateAction.CLOSE]


async def test_a_command_that_cannot_be_carried_out_is_refused(gateway):
    gateway.board.lose("no answer from 127.0.0.1:502")
    status, answer = await gateway.call("/v1/device/open", {"id": 101})
    assert status == 409
    assert answer == {"success": False, "device": None, "error": "the gate is offline: no answer from 127.0.0.1:502"}
    status, answer = await gateway.call("/v1/device/open", {"id": 102})
    assert status == 404


async def test_a_store_that_cannot_be_read_is_told(gateway, tmp_path):
    with closing(sqlite3.connect(tmp_path / "site.db")) as connection:
        connection.execute("PRAGMA legacy_alter_table = ON")
        connection.execute("ALTER TABLE event RENAME TO lost")
    status, answer = await gateway.call("/v1/event/list", {})
    assert (status, answer["success"], answer["events"]) == (503, False, None)
    assert "cannot be read" in answer["error"]


async def test_camera_records_and_state(gateway):
    await gateway.store.cameras.pulled({201: {"stream": "wss://elsewhere", "model": "M1"}}, removed=(), now=1)
    status, answer = await gateway.call("/v1/camera/list", {})
    assert (status, answer["count"]) == (200, 1)
    camera = answer["cameras"][0]
    assert (camera["name"], camera["model"], camera["status"]) == ("Entry overview", "M1", "online")
    assert camera["stream"].startswith(f"{gateway.url}/v1/camera/whep/201?token=")
    gateway.recording.show(condition="unreachable", detail="connection refused")
    _, answer = await gateway.call("/v1/camera/status/201", method="GET")
    assert (answer["status"]["status"], answer["status"]["condition"]) == ("offline", "unreachable")


async def test_camera_events_are_listed_newest_first(gateway):
    newest = [await gateway.passed(f"Vehicle {number}.") for number in range(4)][::-1]
    _, answer = await gateway.call("/v1/camera/event/list", {"page_limit": 3})
    assert [event["id"] for event in answer["events"]] == newest[:3]
    assert answer["count"] == 5
    event = answer["events"][0]
    assert event["clip"] == f"/v1/camera/event/clip/{event['id']}"
    assert event["ready"] is True
    _, answer = await gateway.call("/v1/camera/event", {"id": event["id"]})
    assert answer["event"] == event
