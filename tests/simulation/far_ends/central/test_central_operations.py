"""Lists, records and writes of the simulated central."""

from __future__ import annotations

import pytest

from gateway.runtime.clock import SystemClock
from simulation.far_ends.central import Central

CAMERA_EVENT = {
    "camera_id": 201,
    "device_id": 101,
    "type": 4,
    "category": 1,
    "subcategory": 0,
    "name": "Vehicle passed",
    "date_at": "2026-01-31T12:00:00.000Z",
    "data": '{"passage": 7}',
}


async def test_card_life(ask, central):
    status, body = await ask("PUT", "/v1/access", {"number": "777", "holder_name": "Ada"})
    assert status == 200
    card = body["access_card"]
    assert (await ask("PUT", "/v1/access", {"number": "777"}))[0] == 409
    other = (await ask("PUT", "/v1/access", {"number": "778"}))[1]["access_card"]["id"]
    assert (await ask("PATCH", "/v1/access", {"id": other, "number": "777"}))[0] == 409
    status, body = await ask("PATCH", "/v1/access", {"id": card["id"], "status": "suspended"})
    assert body["access_card"]["status"] == "suspended"
    assert body["access_card"]["holder_name"] == "Ada"
    assert (await ask("POST", "/v1/access", {"id": card["id"]}))[1]["access_card"]["status"] == "suspended"
    assert (await ask("DELETE", "/v1/access", {"id": card["id"]}))[0] == 200
    assert (await ask("POST", "/v1/access", {"id": card["id"]}))[0] == 404
    assert card["id"] not in central.cards


async def test_a_camera_event_gets_an_id_and_a_second_one_is_visible(ask, central):
    first = await ask("PUT", "/v1/camera/event", CAMERA_EVENT)
    second = await ask("PUT", "/v1/camera/event", CAMERA_EVENT)
    ids = [body["event"]["id"] for _, body in (first, second)]
    assert ids[0] < ids[1]
    assert [event["id"] for event in central.camera_events] == ids
    _, body = await ask("POST", "/v1/camera/event/list", {"page_limit": 900})
    assert [event["id"] for event in body["events"]] == ids[::-1]
    assert (await ask("POST", "/v1/camera/event", {"id": ids[0]}))[1]["event"]["data"] == '{"passage": 7}'


@pytest.mark.parametrize(
    "change",
    [
        {"camera_id": "201"},
        {"date_at": "yesterday"},
        {"data": {"passage": 7}},
        {"surprise": 1},
        {"name": ""},
    ],
)
async def test_a_wrong_camera_event_is_refused_loudly(ask, central, change):
    status, body = await ask("PUT", "/v1/camera/event", CAMERA_EVENT | change)
    assert (status, body["success"], body["event"]) == (400, False, None)
    assert next(iter(change)) in body["error"]
    assert not central.camera_events


async def test_entries(ask, central):
    entry = {"device_id": 101, "access_id": 4001, "type": "entry", "date_at": "2026-01-31T12:00:00Z"}
    assert (await ask("PUT", "/v1/entry", entry))[0] == 200
    assert (await ask("PUT", "/v1/entry", entry | {"type": "through"}))[0] == 400
    _, body = await ask("POST", "/v1/entry/list", {})
    assert [each["access_id"] for each in body["entries"]] == [4001]
    assert len(central.entries) == 1
    (known,) = body["entries"]
    change = {"id": known["id"], "exit_at": "2026-01-31T13:00:00Z", "exit_device_id": 103, "status": "closed"}
    _, body = await ask("PATCH", "/v1/entry", change)
    assert (body["entry"]["exit_at"], body["entry"]["access_id"]) == ("2026-01-31T13:00:00Z", 4001)
    for wrong, status in (
        ({"id": 9}, 404),
        ({"exit_at": "2026-01-31T11:00:00Z"}, 400),
        ({"exit_at": "soon"}, 400),
        ({"exit_device_id": 9}, 404),
        ({"surprise": 1}, 400),
        ({"plate": 5}, 400),
    ):
        assert (await ask("PATCH", "/v1/entry", {"id": known["id"]} | wrong))[0] == status, wrong


async def test_event_filters(ask, central):
    for minute in range(4):
        central.tables.events.add(
            {"device_id": 101 + minute % 2, "type": minute, "name": "", "date_at": f"2026-01-31T12:0{minute}:00Z"}
        )

    async def ids(**asked):
        _, body = await ask("POST", "/v1/event/list", asked)
        return [event["id"] for event in body["events"]]

    assert await ids() == [1003, 1002, 1001, 1000]
    assert await ids(device_ids=[101]) == [1002, 1000]
    assert await ids(types=[1], event_types=[3]) == []
    assert await ids(types=[1, 3], event_types=[3, 5]) == await ids(types=[3])
    assert await ids(start_date="2026-01-31T12:01:00Z", end_date="2026-01-31T12:02:00Z") == [1002, 1001]
    assert (await ask("POST", "/v1/event", {"id": 1000}))[0] == 200
    assert (await ask("POST", "/v1/event/list", {"start_date": "soon"}))[0] == 400


async def test_records_survive_a_restart_in_the_data_file(tmp_path, ask, central):
    file = tmp_path / "central.json"
    first = Central(clock=SystemClock(), accounts=(), data=file)
    await first.start()
    first.tables.cards.put({"id": 4, "number": "4"})
    await first.stop()
    second = Central(clock=SystemClock(), accounts=(), data=file)
    await second.start()
    try:
        assert second.cards == {4: {"id": 4, "number": "4"}}
    finally:
        await second.stop()


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data", "multipart/form-data; boundary=x", "multipart/form-database; boundary=x", "text/plain"],
)
async def test_a_document_that_is_no_form_is_refused(ask, http, central, content_type):
    async with http.post(
        central.url + "/v1/auth/login", json={"username": "gateway", "password": "right horse"}
    ) as answer:
        session = (await answer.json())["session"]
    headers = {"SessionID": session, "Content-Type": content_type}
    status, body = await ask("PUT", "/v1/document/upload", headers=headers, raw=b"no form")
    assert (status, body["success"]) == (400, False)
    assert body["error"].startswith("file: ")
