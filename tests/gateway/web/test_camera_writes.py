"""Cameras and camera events written: at a site alone, through to central, and held while it is away."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from at_work import serving_central
from wired import down_sync, outbox_sender

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.domain.events import EventKind
from gateway.runtime.clock import SystemClock
from gateway.store import EventFilter
from simulation.far_ends.central import Central

EVENT = "/v1/camera/event"


@pytest.fixture
async def central() -> AsyncIterator[Central]:
    async with serving_central(cameras={201: "Entry camera", 202: "Exit"}) as service:
        yield service


@pytest.fixture
async def client(central) -> AsyncIterator[CentralClient]:
    made = CentralClient(
        url=central.url, account=GatewayAccount("gateway", "right horse"), clock=SystemClock(), timeout_seconds=2.0
    )
    yield made
    await made.close()


@pytest.fixture
async def joined(open_gateway, client):
    """The gateway with a central: pulled once, its outbox sent by `send`."""
    async with open_gateway(client=client) as gateway:
        down = down_sync(client=client, store=gateway.store, clock=gateway.clock)
        sender = outbox_sender(client=client, store=gateway.store, clock=gateway.clock)
        gateway.pull, gateway.send = down.pull, sender.send_due
        await down.pull()
        await gateway.send()
        yield gateway


async def of_kind(gateway, kind):
    return (await gateway.store.events.page(EventFilter(types=(int(kind),)))).events


async def done(gateway, path, body, method):
    status, answer = await gateway.call(path, body, method=method)
    assert status == 200, answer
    return answer["camera" if path == "/v1/camera" else "event"]


async def test_a_moment_is_marked_now_and_pins_footage(gateway):
    before = gateway.clock.wall().micros
    made = await done(gateway, EVENT, {"camera_id": 201, "name": "Dent", "description": "Left door"}, "PUT")
    assert made["id"] > gateway.camera_event_id
    assert (made["name"], made["description"], made["incident"], made["ready"]) == ("Dent", "Left door", False, False)
    known = await gateway.store.camera_events.get(made["id"])
    assert before <= known.date_at <= gateway.clock.wall().micros
    assert (known.date_at - known.pinned_from, known.pinned_until - known.date_at) == (5_000_000, 5_000_000)
    (told,) = await of_kind(gateway, EventKind.MOMENT_MARKED)
    assert told.id == made["event_id"]
    assert "chief" in told.description
    rows = await gateway.store.outbox.due(now=2**62)
    assert [(row.kind, row.record_id) for row in rows if row.record_id == made["id"]] == [("camera_event", made["id"])]


async def test_a_moment_that_was_is_marked_with_its_own_span(gateway):
    body = {
        "camera_id": 201,
        "date_at": "2026-01-31T12:00:00Z",
        "start_date": "2026-01-31T11:50:00Z",
        "end_date": "2026-01-31 07:10",
        "incident": True,
    }
    made = await done(gateway, EVENT, body, "PUT")
    assert made["date_at"] == "2026-01-31T12:00:00.000Z"
    assert made["start_date"] == "2026-01-31T11:50:00.000Z"
    assert made["end_date"].startswith("2026-01-31T12:10:00")
    assert (made["incident"], made["clock_trusted"], made["name"]) == (True, True, "Moment marked")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "camera_id: is missing"),
        ({"camera_id": "201"}, 400, "camera_id: must be"),
        ({"camera_id": 999}, 404, "this site records no camera 999"),
        ({"camera_id": 201, "name": ""}, 400, "name:"),
        ({"camera_id": 201, "name": "x" * 201}, 400, "name:"),
        ({"camera_id": 201, "description": 7}, 400, "description: must be"),
        ({"camera_id": 201, "incident": "yes"}, 400, "incident: must be"),
        ({"camera_id": 201, "date_at": "soon"}, 400, "date_at: must be a date"),
        ({"camera_id": 201, "date_at": "9000-01-01T00:00:00Z"}, 400, "date_at: must be a moment that has been"),
        ({"camera_id": 201, "date_at": "1960-01-01"}, 400, "date_at: must be a moment that has been"),
        ({"camera_id": 201, "start_date": "9000-01-01"}, 400, "start_date: must not be after"),
        ({"camera_id": 201, "end_date": "2020-01-01"}, 400, "end_date: must not be before"),
        ({"camera_id": 201, "start_date": "2020-01-01"}, 400, "end_date: must be within an hour"),
    ],
)
async def test_a_moment_that_cannot_be_is_refused(gateway, body, status, words):
    found, answer = await gateway.call(EVENT, body, method="PUT")
    assert (found, answer["event"]) == (status, None)
    assert answer["error"].startswith(words)
    assert await of_kind(gateway, EventKind.MOMENT_MARKED) == ()


async def test_writing_needs_its_permission_and_a_session(gateway):
    for path in ("/v1/camera", EVENT):
        for method, verb in (("PUT", "add"), ("PATCH", "edit"), ("DELETE", "delete")):
            status, answer = await gateway.call(path, {"id": 201}, method=method, user="")
            assert (status, answer["error"]) == (500, "authentication required")
            status, answer = await gateway.call(path, {"id": 201}, method=method, user="guard")
            assert status == 500
            assert f"can_{verb}_camera" in answer["error"]


async def test_what_a_camera_event_says_is_changed_and_told(gateway):
    number = gateway.camera_event_id
    changed = await done(gateway, EVENT, {"id": number, "name": "Tailgate", "incident": True, "ready": False}, "PATCH")
    assert (changed["name"], changed["incident"], changed["ready"]) == ("Tailgate", True, True)
    assert changed["description"] == "A vehicle passed."
    (told,) = await of_kind(gateway, EventKind.CAMERA_EVENT_CHANGED)
    assert '"name_before":"Vehicle passed"' in told.data.replace(": ", ":")
    assert (await done(gateway, EVENT, {"id": number}, "PATCH"))["name"] == "Tailgate"
    assert len(await of_kind(gateway, EventKind.CAMERA_EVENT_CHANGED)) == 1
    for body, status, words in (
        ({"id": 999}, 404, "there is no camera event 999"),
        ({"id": number, "name": ""}, 400, "name"),
        ({"id": number, "incident": 1}, 400, "incident: must be"),
        ({"name": "x"}, 400, "id: is missing"),
    ):
        found, answer = await gateway.call(EVENT, body, method="PATCH")
        assert (found, answer["event"]) == (status, None)
        assert answer["error"].startswith(words)


async def test_a_deleted_camera_event_leaves_its_event_and_lets_go_of_the_rest(gateway):
    known = await gateway.store.camera_events.get(gateway.camera_event_id)
    gone = await done(gateway, EVENT, {"id": known.id}, "DELETE")
    assert gone["id"] == known.id
    assert (await gateway.call(EVENT, {"id": known.id}))[0] == 404
    assert (await gateway.call(f"{EVENT}/clip/{known.id}", method="GET"))[0] == 404
    assert (await gateway.call(EVENT, {"id": known.id}, method="DELETE"))[0] == 404
    assert (await gateway.call("/v1/event", {"id": known.event_id}))[0] == 200
    (told,) = await of_kind(gateway, EventKind.CAMERA_EVENT_DELETED)
    assert f'"proved_event_id":{known.event_id}' in told.data.replace(": ", ":")
    assert gateway.recording.forgotten == [known.id]


async def test_the_list_is_filtered(gateway):
    one = await done(gateway, EVENT, {"camera_id": 201, "name": "Dent 100%", "date_at": "2026-01-31T12:00:00Z"}, "PUT")
    two = await done(gateway, EVENT, {"camera_id": 201, "description": "a dent", "incident": True}, "PUT")
    everything = [two["id"], one["id"], gateway.camera_event_id]
    for body, expected in (
        ({}, everything),
        ({"page_limit": 2}, everything[:2]),
        ({"page_limit": 2, "page": 2}, everything[2:]),
        ({"camera_id": 201}, everything),
        ({"camera_ids": [201, 7]}, everything),
        ({"camera_id": 7}, []),
        ({"event_id": one["event_id"]}, [one["id"]]),
        ({"search": "DENT"}, everything[:2]),
        ({"search": "100%"}, [one["id"]]),
        ({"search": "%"}, [one["id"]]),
        ({"search": "entry"}, [gateway.camera_event_id]),
        ({"start_date": "2026-01-31", "end_date": "2026-01-31"}, [one["id"]]),
        ({"end_date": "2026-01-30"}, []),
        ({"incident": True}, [two["id"]]),
        ({"incident": False}, everything[1:]),
        ({"nonsense": 5}, everything),
    ):
        status, answer = await gateway.call(f"{EVENT}/list", body)
        assert status == 200
        assert [item["id"] for item in answer["events"]] == expected, body
        assert answer["count"] == (3 if "page_limit" in body else len(expected))
    for body, place in (({"start_date": "x"}, "start_date"), ({"camera_id": "x"}, "camera_id"), ({"page": 0}, "page")):
        status, answer = await gateway.call(f"{EVENT}/list", body)
        assert (status, answer["error"].partition(":")[0]) == (400, place)


async def test_a_marked_moment_goes_up_and_what_is_said_of_it_follows(joined, central):
    made = await done(joined, EVENT, {"camera_id": 201, "name": "Dent"}, "PUT")
    assert made["sync"] == "waiting"
    await joined.send()
    shown = (await joined.call(EVENT, {"id": made["id"]}))[1]["event"]
    assert shown["sync"] == "in_step"
    record = central.tables.camera_events[shown["central_id"]]
    assert (record["name"], record["camera_id"]) == ("Dent", 201)
    await done(joined, EVENT, {"id": shown["central_id"], "name": "Scratch"}, "PATCH")
    assert central.tables.camera_events[shown["central_id"]]["name"] == "Scratch"
    await done(joined, EVENT, {"id": made["id"]}, "DELETE")
    assert shown["central_id"] not in central.tables.camera_events


async def test_camera_events_written_while_central_is_away_go_up_later(joined, central):
    made = await done(joined, EVENT, {"camera_id": 201, "name": "Kept"}, "PUT")
    await joined.send()
    kept = (await joined.call(EVENT, {"id": made["id"]}))[1]["event"]
    first = next(iter(central.tables.camera_events))
    await central.stop()
    changed = await done(joined, EVENT, {"id": made["id"], "name": "Changed away"}, "PATCH")
    assert (changed["name"], changed["sync"]) == ("Changed away", "waiting")
    await done(joined, EVENT, {"id": joined.camera_event_id}, "DELETE")
    never = await done(joined, EVENT, {"camera_id": 201, "name": "Never was"}, "PUT")
    await done(joined, EVENT, {"id": never["id"]}, "DELETE")
    await central.start()
    await joined.store.outbox.retry_now()
    for _ in range(4):
        await joined.send()
        await joined.store.outbox.retry_now()
    assert central.tables.camera_events[kept["central_id"]]["name"] == "Changed away"
    assert first not in central.tables.camera_events
    assert all(record["name"] != "Never was" for record in central.tables.camera_events.values())
    books = await joined.store.outbox.books()
    assert (books.waiting, books.parked, books.balance()) == (0, 0, True)


async def test_a_camera_event_that_central_has_no_more_is_deleted_here_and_kept_otherwise(joined, central):
    known = await joined.store.camera_events.get(joined.camera_event_id)
    central.tables.camera_events.remove(known.central_id)
    status, answer = await joined.call(EVENT, {"id": known.id, "name": "x"}, method="PATCH")
    assert (status, answer["event"]) == (404, None)
    assert await joined.store.camera_events.get(known.id) == known
    await done(joined, EVENT, {"id": known.id}, "DELETE")
    assert await joined.store.camera_events.get(known.id) is None


async def test_a_camera_of_the_site_file_keeps_what_the_file_says(joined, central):
    changed = await done(joined, "/v1/camera", {"id": 201, "name": "Front", "location": "North"}, "PATCH")
    assert (changed["name"], changed["location"], changed["at_site"]) == ("Front", "North", True)
    assert central.tables.cameras[201]["name"] == "Front"
    listed = (await joined.call("/v1/camera/list", {}))[1]["cameras"]
    assert [item["name"] for item in listed] == ["Front", "Exit"]
    for field, value in (("url", "rtsp://evil/"), ("password", "x"), ("record", "events")):
        status, answer = await joined.call("/v1/camera", {"id": 201, field: value}, method="PATCH")
        assert (status, answer["camera"]) == (409, None)
        assert answer["error"] == f"{field}: the site file says what it is for camera 201"
    status, answer = await joined.call("/v1/camera", {"id": 201}, method="DELETE")
    assert (status, answer["camera"]) == (409, None)
    assert "site file" in answer["error"]


async def test_a_camera_of_centrals_is_made_changed_and_deleted_through_it(joined, central):
    made = await done(joined, "/v1/camera", {"name": "Yard", "id": 5}, "PUT")
    assert made["id"] in central.tables.cameras
    assert (made["name"], made["stream"], made["at_site"], made["sync"]) == ("Yard", "", False, "in_step")
    await done(joined, "/v1/camera", {"id": made["id"], "name": "Back yard"}, "PATCH")
    assert central.tables.cameras[made["id"]]["name"] == "Back yard"
    gone = await done(joined, "/v1/camera", {"id": made["id"]}, "DELETE")
    assert gone["name"] == "Back yard"
    assert made["id"] not in central.tables.cameras
    assert (await joined.call("/v1/camera", {"id": made["id"]}))[0] == 404


async def test_a_camera_made_while_central_is_away_gets_its_id_later(joined, central):
    await central.stop()
    made = await done(joined, "/v1/camera", {"name": "Yard"}, "PUT")
    assert (made["id"] >= 2_000_000_000, made["sync"]) == (True, "waiting")
    await done(joined, "/v1/camera", {"id": 202, "name": "Far exit"}, "PATCH")
    await central.start()
    await joined.store.outbox.retry_now()
    await joined.pull()
    assert (await joined.call("/v1/camera", {"id": 202}))[1]["camera"]["name"] == "Far exit"
    for _ in range(2):
        await joined.send()
    await joined.pull()
    found = (await joined.call("/v1/camera", {"id": made["id"]}))[1]["camera"]
    assert found["id"] in central.tables.cameras
    assert central.tables.cameras[202]["name"] == "Far exit"
    assert [item["name"] for item in (await joined.call("/v1/camera/list", {}))[1]["cameras"]].count("Yard") == 1


async def test_a_deleted_camera_is_told_as_it_stands_after_that(joined, central):
    kept = await done(joined, "/v1/camera", {"name": "Back"}, "PUT")
    await central.stop()
    await done(joined, "/v1/camera", {"name": "Side"}, "PUT")  # from here on central is known to be away
    made = await done(joined, "/v1/camera", {"name": "Yard"}, "PUT")
    assert (await done(joined, "/v1/camera", {"id": made["id"]}, "DELETE"))["sync"] == "taken_back"
    assert (await done(joined, "/v1/camera", {"id": kept["id"]}, "DELETE"))["sync"] == "waiting"
    assert (await done(joined, EVENT, {"id": joined.camera_event_id}, "DELETE"))["sync"] == "waiting"


async def test_bad_cameras_are_refused(gateway):
    for method, body, status, words in (
        ("PUT", {}, 400, "name: is missing"),
        ("PUT", {"name": ""}, 400, "name:"),
        ("PUT", {"name": 5}, 400, "name: must be"),
        ("PATCH", {"id": 201, "name": 5}, 400, "name: must be"),
        ("PATCH", {"name": "x"}, 400, "id: is missing"),
        ("PATCH", {"id": 999, "name": "x"}, 404, "there is no camera 999"),
        ("DELETE", {"id": 999}, 404, "there is no camera 999"),
        ("DELETE", {}, 400, "id: is missing"),
    ):
        found, answer = await gateway.call("/v1/camera", body, method=method)
        assert (found, answer["camera"]) == (status, None), (method, body)
        assert answer["error"].startswith(words)
