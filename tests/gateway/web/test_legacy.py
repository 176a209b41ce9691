"""The legacy family over real sockets: keys, grants, unlocking, devices, video, webhooks."""

from __future__ import annotations

from datetime import datetime

import pytest

from gateway.domain.commands import GateAction
from gateway.web.catalogue import LEGACY as OPERATIONS

BODIES = {
    "/api/v1/access/grant": {"user_id": "17", "device_id": "101"},
    "/api/v1/access/revoke": {"access_id": "123456789012"},
    "/api/v1/access/unlock": {"device_id": "101"},
    "/api/v1/devices": {"name": "Kiosk", "type": "kiosk"},
    "/api/v1/webhooks": {"url": "https://example.com/hook", "events": ["access.granted"]},
}


def path_of(operation):
    return operation.path.replace("{id}", "101").replace("{camera_id}", "201")


EACH = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda item: f"{item.method} {item.path}")


@EACH
async def test_without_a_key_every_operation_is_401(gateway, operation):
    status, answer = await gateway.program(operation.method, path_of(operation), BODIES.get(operation.path), key="")
    assert (status, set(answer)) == (401, {"error"})
    async with gateway.client.request(operation.method, gateway.url + path_of(operation)) as bare:
        assert bare.headers["WWW-Authenticate"] == "Bearer"


@EACH
async def test_without_the_permission_every_operation_is_403_and_names_it(gateway, operation):
    status, answer = await gateway.program(operation.method, path_of(operation), BODIES.get(operation.path), key="idle")
    assert (status, set(answer)) == (403, {"error"})
    assert operation.rule.groups[0][0] in answer["error"]


async def test_a_session_is_no_key_and_a_key_no_session(gateway):
    headers = {"Authorization": f"Bearer {(await gateway.sign_in())['SessionID']}"}
    async with gateway.client.get(f"{gateway.url}/api/v1/devices", headers=headers) as answer:
        assert answer.status == 401
    async with gateway.client.get(f"{gateway.url}/api/v1/devices", headers=await gateway.sign_in()) as answer:
        assert answer.status == 401
    for header in ("key-of-till", "Basic key-of-till", "Bearer", "Bearer ", "Bearer wrong"):
        async with gateway.client.get(f"{gateway.url}/api/v1/devices", headers={"Authorization": header}) as answer:
            assert answer.status == 401
    headers = {"Authorization": "Bearer key-of-till"}
    async with gateway.client.post(f"{gateway.url}/v1/device/list", headers=headers, json={}) as answer:
        assert (answer.status, (await answer.json())["error"]) == (500, "authentication required")


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/"])
async def test_an_unknown_path_has_the_family_s_error(gateway, path):
    status, answer = await gateway.program("GET", path)
    assert (status, set(answer)) == (404, {"error"})
    status, answer = await gateway.program("PATCH", "/api/v1/devices", {})
    assert (status, set(answer)) == (405, {"error"})


async def test_a_grant_is_given_listed_and_revoked(gateway):
    status, grant = await gateway.program(
        "POST", "/api/v1/access/grant", {"user_id": "17", "device_id": "102", "duration": "PT8H", "note": "unknown"}
    )
    assert (status, set(grant), grant["status"]) == (200, {"status", "access_id", "expires_at"}, "active")
    left = datetime.fromisoformat(grant["expires_at"]).timestamp() - gateway.clock.wall().micros / 1_000_000
    assert 8 * 3600 - 5 < left <= 8 * 3600
    status, permanent = await gateway.program(
        "POST", "/api/v1/access/grant", {"user_id": "18", "device_id": "101", "duration": "permanent"}
    )
    assert permanent["expires_at"] is None
    status, listed = await gateway.program("GET", "/api/v1/access/permissions")
    assert (status, listed["total"]) == (200, 2)
    newest, oldest = listed["permissions"]
    assert newest["access_id"] == permanent["access_id"]
    assert (oldest["user_id"], oldest["device_id"], oldest["location"], oldest["granted_by"]) == (
        "17", "102", "Main entry", "key:till",
    )  # fmt: skip
    assert gateway.store.grants.of_lane("entry").of_code(grant["access_id"]) is not None
    revoked = await gateway.program("POST", "/api/v1/access/revoke", {"access_id": grant["access_id"]})
    assert revoked == (200, {"status": "revoked", "access_id": grant["access_id"]})
    assert gateway.store.grants.of_lane("entry").of_code(grant["access_id"]) is None
    assert (await gateway.program("GET", "/api/v1/access/permissions"))[1]["total"] == 1
    status, default = await gateway.program("POST", "/api/v1/access/grant", {"user_id": "19", "device_id": "101"})
    left = datetime.fromisoformat(default["expires_at"]).timestamp() - gateway.clock.wall().micros / 1_000_000
    assert 24 * 3600 - 5 < left <= 24 * 3600


@pytest.mark.parametrize(
    ("body", "place", "status"),
    [
        ({"device_id": "101"}, "user_id", 400),
        ({"user_id": "17"}, "device_id", 400),
        ({"user_id": 17, "device_id": "101"}, "user_id", 400),
        ({"user_id": "  ", "device_id": "101"}, "user_id", 400),
        ({"user_id": "a\nb", "device_id": "101"}, "user_id", 400),
        ({"user_id": "17", "device_id": "101", "duration": "soon"}, "duration", 400),
        ({"user_id": "17", "device_id": "101", "duration": 8}, "duration", 400),
        ({"user_id": "17", "device_id": "999"}, "device 999", 404),
        ({"user_id": "17", "device_id": "gate"}, "'gate'", 404),
        ([], "JSON object", 400),
    ],
)
async def test_a_bad_grant_is_refused_with_the_field_s_name(gateway, body, place, status):
    refused, answer = await gateway.program("POST", "/api/v1/access/grant", body)
    assert (refused, set(answer)) == (status, {"error"})
    assert place in answer["error"]
    assert gateway.store.grants.current(now=0) == ()


async def test_an_unknown_grant_cannot_be_revoked(gateway):
    status, answer = await gateway.program("POST", "/api/v1/access/revoke", {"access_id": "123"})
    assert (status, set(answer)) == (404, {"error"})


async def test_unlocking_is_one_recorded_command_and_a_refusal_is_told(gateway):
    status, answer = await gateway.program("POST", "/api/v1/access/unlock", {"device_id": "102"})
    assert (status, answer["status"], answer["device_id"], answer["recorded"]) == (200, "accepted", "101", True)
    assert [(one.action, one.source) for one in gateway.board.commands] == [(GateAction.OPEN, "user:key:till")]
    gateway.board.lose("no answer")
    status, answer = await gateway.program("POST", "/api/v1/access/unlock", {"device_id": "101"})
    assert (status, "offline" in answer["error"]) == (409, True)
    status, _ = await gateway.program("POST", "/api/v1/access/unlock", {"device_id": "7"})
    assert status == 404
    status, answer = await gateway.program("POST", "/api/v1/access/unlock", {})
    assert (status, "device_id" in answer["error"]) == (400, True)


async def test_devices_are_listed_registered_and_those_of_the_site_stay(gateway):
    status, listed = await gateway.program("GET", "/api/v1/devices", key="counter")
    assert (status, listed["total"]) == (200, 2)
    gate = next(one for one in listed["devices"] if one["id"] == "101")
    assert {name: gate[name] for name in ("name", "type", "location", "status")} == {
        "name": "Entry barrier", "type": "modbus-gate", "location": "Main entry", "status": "online",
    }  # fmt: skip
    assert (await gateway.program("GET", "/api/v1/devices/101"))[1] == gate
    status, made = await gateway.program(
        "POST", "/api/v1/devices", {"name": "Kiosk", "type": "kiosk", "location": "Hall", "serial_number": "K-7"}
    )
    assert (status, made["name"], made["type"], made["location"], made["serial_number"]) == (
        201, "Kiosk", "kiosk", "Hall", "K-7",
    )  # fmt: skip
    assert (await gateway.program("GET", f"/api/v1/devices/{made['id']}"))[1]["name"] == "Kiosk"
    status, answer = await gateway.program("DELETE", "/api/v1/devices/101")
    assert (status, "site file" in answer["error"]) == (409, True)
    assert (await gateway.program("DELETE", f"/api/v1/devices/{made['id']}"))[0] == 200
    assert (await gateway.program("GET", f"/api/v1/devices/{made['id']}"))[0] == 404
    for path in ("/api/v1/devices/999", "/api/v1/devices/gate", "/api/v1/devices/99999999999999999999"):
        assert (await gateway.program("GET", path))[0] == 404
    for body in ({"type": "kiosk"}, {"name": "", "type": "kiosk"}, {"name": "Kiosk", "type": 4}):
        status, answer = await gateway.program("POST", "/api/v1/devices", body)
        assert (status, set(answer)) == (400, {"error"})


async def test_a_stream_s_token_opens_the_camera_s_whep_and_no_other(gateway):
    status, stream = await gateway.program("GET", "/api/v1/video/stream/201")
    assert (status, stream["protocol"]) == (200, "webrtc")
    assert stream["stream_url"].startswith(f"{gateway.url}/v1/camera/whep/201?token=")
    headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {stream['token']}"}
    async with gateway.client.post(f"{gateway.url}/v1/camera/whep/201", data="v=0", headers=headers) as answer:
        assert answer.status == 409  # let in; the camera sends nothing now
    async with gateway.client.post(f"{gateway.url}/v1/camera/whep/202", data="v=0", headers=headers) as answer:
        assert answer.status == 401
    for camera in ("202", "entry"):
        assert (await gateway.program("GET", f"/api/v1/video/stream/{camera}"))[0] == 404


async def test_cameras_tell_their_status(gateway):
    status, listed = await gateway.program("GET", "/api/v1/video/cameras")
    assert (status, listed["total"]) == (200, 1)
    assert listed["cameras"][0] == {
        "id": "201", "name": "Entry overview", "status": "online", "location": "Main entry", "detail": "",
    }  # fmt: skip


async def test_recordings_are_found_by_date_and_camera_and_fetched_with_the_key(gateway):
    today = gateway.clock.wall().as_datetime().isoformat()
    for query in ("", "?camera=201", "?camera_id=201", f"?start_date={today[:10]}T00:00:00Z", "?page_limit=1"):
        status, found = await gateway.program("GET", f"/api/v1/video/recordings{query}")
        assert (status, found["total"], len(found["recordings"])) == (200, 1, 1), query
    recording = found["recordings"][0]
    assert recording["camera_id"] == "201"
    headers = {"Authorization": "Bearer key-of-till"}
    async with gateway.client.get(recording["clip_url"], headers=headers) as clip:
        assert (clip.status, clip.content_type) == (200, "video/mp4")
        assert await clip.read() == gateway.recording.files.clip.read_bytes()
    for query in ("?camera=202", "?date=2001-01-01", "?end_date=2001-01-01", "?page=2"):
        status, found = await gateway.program("GET", f"/api/v1/video/recordings{query}")
        assert (status, found["recordings"]) == (200, []), query
    for query, place in (("?date=yesterday", "date"), ("?camera=front", "camera"), ("?end_date=x", "end_date"),
                         ("?page=0", "page"), ("?start_date=99999", "start_date")):  # fmt: skip
        status, answer = await gateway.program("GET", f"/api/v1/video/recordings{query}")
        assert (status, answer["error"].startswith(place)) == (400, True), query
    assert (await gateway.program("GET", "/api/v1/video/recordings/1/clip"))[0] == 404


async def test_webhooks_are_registered_listed_without_their_secret_and_deleted(gateway):
    body = {
        "url": "https://example.com/hook?x=1",
        "events": ["access.granted", "access.granted"],
        "secret": "s3cret-s3cret",
    }
    status, made = await gateway.program("POST", "/api/v1/webhooks", body)
    assert (status, made["url"], made["events"], made["secret"]) == (
        201,
        body["url"],
        ["access.granted"],
        body["secret"],
    )
    status, drawn = await gateway.program("POST", "/api/v1/webhooks", {**body, "secret": None})
    assert drawn["secret"].startswith("whsec_")
    status, listed = await gateway.program("GET", "/api/v1/webhooks")
    assert (status, listed["total"]) == (200, 2)
    assert {one["secret"] for one in listed["webhooks"]} == {"********"}
    assert (await gateway.program("DELETE", f"/api/v1/webhooks/{made['id']}"))[0] == 200
    assert (await gateway.program("DELETE", f"/api/v1/webhooks/{made['id']}"))[0] == 404
    assert (await gateway.program("GET", "/api/v1/webhooks"))[1]["total"] == 1


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"url": "http://8.8.8.8/hook"}, "url"),
        ({"url": "https://10.0.0.1/hook"}, "url"),
        ({"url": "https://169.254.169.254/latest"}, "url"),
        ({"url": "https://user:hush-hush@example.com/"}, "url"),
        ({"url": ""}, "url"),
        ({"secret": "whsec_no base64 at all"}, "secret"),
        ({"secret": "whsec_c2hvcnQ="}, "secret"),
        ({"url": 7}, "url"),
        ({"events": []}, "events"),
        ({"events": ["access.opened"]}, "events"),
        ({"events": "access.granted"}, "events"),
        ({"secret": "short"}, "secret"),
        ({"secret": 12345678}, "secret"),
    ],
)
async def test_a_bad_webhook_is_refused_with_the_field_s_name(gateway, change, place):
    body = {"url": "https://example.com/hook", "events": ["access.granted"], "secret": "s3cret-s3cret", **change}
    status, answer = await gateway.program("POST", "/api/v1/webhooks", body)
    assert (status, set(answer)) == (400, {"error"})
    assert answer["error"].startswith(place)
    assert "hush" not in answer["error"]


async def test_people_see_enable_replay_and_try_webhooks_at_the_page(gateway):
    body = {"url": f"{gateway.url}/v1/nowhere", "events": ["alert.triggered"], "secret": "s3cret-s3cret"}
    _, made = await gateway.program("POST", "/api/v1/webhooks", body)
    status, listed = await gateway.call("/status/webhook/list", {})
    assert (status, listed["count"], listed["webhooks"][0]["secret"]) == (200, 1, "********")
    status, tried = await gateway.call("/status/webhook/test", {"id": made["id"]})
    assert (status, tried["taken"], tried["fault"]) == (200, False, "the receiver answered 404")
    assert (await gateway.call("/status/webhook/replay", {"id": made["id"]}))[1]["count"] == 0
    status, answer = await gateway.call("/status/webhook/replay", {"id": made["id"], "since": "2026-01-31"})
    assert (status, answer["count"]) == (200, 0)
    status, answer = await gateway.call("/status/webhook/enable", {"id": made["id"]})
    assert (status, answer["webhook"]["status"]) == (200, "enabled")
    for path in ("enable", "replay", "test"):
        assert (await gateway.call(f"/status/webhook/{path}", {"id": "wh_0"}))[0] == 404
        assert (await gateway.call(f"/status/webhook/{path}", {"id": 4}))[0] == 400
        assert (await gateway.call(f"/status/webhook/{path}", {"id": "wh_0"}, user="guard"))[0] == 500
    status, answer = await gateway.call("/status/webhook/replay", {"id": made["id"], "since": "soon"})
    assert (status, answer["error"].startswith("since")) == (400, True)
