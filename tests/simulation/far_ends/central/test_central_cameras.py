"""Cameras, camera events and evidence at the simulated central: taken as asked, and refused loudly otherwise."""

from __future__ import annotations

import hashlib
from io import BytesIO

from aiohttp import FormData

EVENT = {"camera_id": 201, "name": "Dent", "date_at": "2026-01-31T12:00:00Z"}
PICTURE = b"\xff\xd8\xff" + b"x" * 2_000_000


async def test_cameras_are_made_changed_and_removed(ask):
    status, body = await ask("PUT", "/v1/camera", {"name": "Yard"})
    assert status == 200
    number = body["camera"]["id"]
    assert (await ask("PATCH", "/v1/camera", {"id": number, "location": "North"}))[1]["camera"]["name"] == "Yard"
    assert (await ask("PATCH", "/v1/camera", {"id": number, "name": ""}))[0] == 400
    assert (await ask("PATCH", "/v1/camera", {"id": number, "colour": "red"}))[0] == 400
    assert (await ask("PUT", "/v1/camera", {}))[0] == 400
    assert (await ask("DELETE", "/v1/camera", {"id": number}))[0] == 200
    assert (await ask("DELETE", "/v1/camera", {"id": number}))[0] == 404


async def test_camera_events_are_changed_and_removed(ask):
    number = (await ask("PUT", "/v1/camera/event", EVENT))[1]["event"]["id"]
    status, body = await ask("PATCH", "/v1/camera/event", {"id": number, "incident": True})
    assert (status, body["event"]["name"], body["event"]["incident"]) == (200, "Dent", True)
    assert (await ask("PATCH", "/v1/camera/event", {"id": number, "incident": "yes"}))[0] == 400
    assert (await ask("DELETE", "/v1/camera/event", {"id": number}))[0] == 200
    assert (await ask("PATCH", "/v1/camera/event", {"id": number, "name": "x"}))[0] == 404


async def test_evidence_is_taken_whole_and_refused_otherwise(central, http, ask):
    number = (await ask("PUT", "/v1/camera/event", EVENT))[1]["event"]["id"]
    async with http.post(
        central.url + "/v1/auth/login", json={"username": "gateway", "password": "right horse"}
    ) as answer:
        held = {"SessionID": (await answer.json())["session"]}
    async with http.post(central.url + "/v1/auth/login", json={"username": "viewer", "password": "view"}) as answer:
        viewer = {"SessionID": (await answer.json())["session"]}
    good = {
        "id": str(number),
        "name": "scene.jpg",
        "date_at": "2026-01-31T12:00:00Z",
        "sha256": hashlib.sha256(PICTURE).hexdigest(),
    }

    async def send(fields, headers=held, *, file=True):
        form = FormData(fields)
        form.add_field("note" if not file else "file", BytesIO(PICTURE), filename="scene.jpg")
        async with http.post(central.url + "/v1/camera/event/evidence", data=form, headers=headers) as answer:
            return answer.status, await answer.json()

    status, body = await send(good)
    assert (status, body["evidence"]["size"], body["evidence"]["camera_event_id"]) == (200, len(PICTURE), number)
    assert (await ask("POST", "/v1/camera/event", {"id": number}))[1]["event"]["evidence"] == [body["evidence"]]
    for fields, expected in (
        ({**good, "sha256": "0" * 64}, 400),
        ({**good, "id": "999999"}, 404),
        ({**good, "id": "x"}, 400),
        ({**good, "colour": "red"}, 400),
        ({"id": str(number)}, 400),
    ):
        status, body = await send(fields)
        assert (status, body["evidence"]) == (expected, None), fields
    assert (await send(good, file=False))[0] == 400
    assert (await send(good, {}))[1]["error"] == "authentication required"
    assert "can_add_camera_events" in (await send(good, viewer))[1]["error"]
    assert (await ask("POST", "/v1/camera/event/evidence", {"id": number}))[0] == 400
