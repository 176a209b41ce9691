"""Every answer is what `/openapi.json` says it is: nothing missing, nothing of another kind, nothing untold."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from io import BytesIO

import jsonschema_rs
import pytest
from aiohttp import FormData
from at_work import serving_central
from wired import down_sync

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.domain.events import EventKind
from gateway.runtime.clock import SystemClock
from gateway.web.auth.accounts import hash_password
from gateway.web.catalogue import PUBLIC
from gateway.web.register.changes import AddAccount, SetSecondFactor
from simulation.far_ends.central.accounts import totp
from tests.gateway.web.setups.local import ask

ANSWERED = [item for item in PUBLIC if item.answered_by == "gateway" and item.method != "OPTIONS"]
ELSEWHERE = {"/v1/access/device", "/v1/camera/whep/{id}", "/v1/camera/whep/{id}/{view}"}
"""One always refuses; of the others no answer is JSON, and they need a viewer: `test_whep`."""
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
CARD, DEVICE, CAMERA, EVENT, ENTRY = "/v1/access", "/v1/device", "/v1/camera", "/v1/camera/event", "/v1/entry"


@pytest.fixture
async def central():
    devices, cameras = {101: "Gate", 109: "Kiosk"}, {201: "Entry", 202: "Exit"}
    async with serving_central(devices=devices, cameras=cameras, cards=3) as service:
        service.tables.cards.put(
            {"id": 4001, "number": "00111572", "username": "ada", "zones": [1], "photo": {"a": []}}
        )
        yield service


@pytest.fixture
def gateway_at(open_gateway, central, tmp_path):
    """Opens a gateway of which much is to be told: alone, or with a central that went away after a while."""

    @asynccontextmanager
    async def opened(where):
        client = CentralClient(
            url=central.url, account=GatewayAccount("gateway", "right horse"), clock=SystemClock(), timeout_seconds=5
        )
        try:
            async with open_gateway(client=client if where == "away" else None) as gateway:
                await down_sync(client=client, store=gateway.store, clock=gateway.clock).pull()
                if where == "away":
                    await central.stop()
                account = AddAccount(username="eve", password_hash=hash_password("eve"), role="operator")
                for change in (account, SetSecondFactor(username="eve", secret=SECRET, step=0, codes=())):
                    assert not (await ask(change, run_folder=tmp_path / "run")).error
                await gateway.happened("A gate opened.", kind=EventKind.GATE_OPENED, device_id=101)
                yield gateway
        finally:
            await client.close()

    return opened


class Described:
    """The served description of answers, and the operations that were compared with it."""

    def __init__(self, gateway, description) -> None:
        self._gateway = gateway
        self._paths = description["paths"]
        self.schemas = {name: closed(schema) for name, schema in description["components"]["schemas"].items()}
        self.compared = set()

    async def asked(self, operation, path, *, user="chief", body=None, data=None, headers=None):
        """Ask, compare, and return the answer's JSON, or None for what is none."""
        method, template = operation.split(" ")
        if template.startswith("/api/"):
            carried = {"Authorization": "Bearer key-of-till"}
        else:
            carried = headers if headers is not None else (await self._gateway.sign_in(user) if user else {})
        sent = {"data": data} if data is not None else {} if body is None else {"json": body}
        async with self._gateway.client.request(method, self._gateway.url + path, headers=carried, **sent) as answer:
            self._gateway.client.cookie_jar.clear()
            raw, status, kind = await answer.read(), str(answer.status), answer.content_type
        declared = self._paths.get(template, {}).get(method.lower())
        assert declared is not None, f"{operation} is not in /openapi.json: call an operation as it is declared"
        there = declared["responses"]
        assert status in there, (operation, status, raw[:300])
        assert status in ("200", "201"), (operation, status, raw[:300])
        content = there[status].get("content", {})
        self.compared.add(operation)
        if kind != "application/json":
            assert kind in {name.lower() for name in content} or "application/octet-stream" in content, (
                operation,
                kind,
            )
            return None
        told = json.loads(raw)
        schema = {"components": {"schemas": self.schemas}, **content["application/json"]["schema"]}
        faults = [
            f"{'.'.join(str(part) for part in fault.instance_path)}: {fault.message}"
            for fault in jsonschema_rs.Draft202012Validator(schema).iter_errors(told)
        ]
        assert not faults, (operation, faults, told)
        return told


def closed(schema):
    """The schema, where an object has no fields but those that are told unless it says that it may have more."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict):
        made["properties"] = {name: closed(value) for name, value in schema["properties"].items()}
        made.setdefault("additionalProperties", False)
    return made


async def described(gateway):
    async with gateway.client.get(f"{gateway.url}/openapi.json") as answer:
        return Described(gateway, await answer.json())


async def of_sessions(gateway, asked):
    await asked("GET /", "/", user="")
    await asked("GET /", "/")
    for user in ("", "chief"):
        await asked("GET /health/live", "/health/live", user=user)
        await asked("GET /health/ready", "/health/ready", user=user)
    for method in ("POST", "GET"):
        told = await asked(
            "POST /v1/auth/login", "/v1/auth/login", user="", body={"username": "eve", "password": "eve"}
        )
        carried = {"SessionID": told["session"]}
        if method == "POST":
            code = totp(SECRET, gateway.clock.wall().micros // 1_000_000)
            await asked("POST /v1/auth/mfa", "/v1/auth/mfa", headers=carried, body={"code": code})
        body = {} if method == "POST" else None
        await asked(f"{method} /v1/auth/logout", "/v1/auth/logout", headers=carried, body=body)


async def of_devices(_, asked):
    await asked(f"PUT {DEVICE}", DEVICE, body={"name": "Kiosk", "type": 3})
    await asked(f"PATCH {DEVICE}/config", f"{DEVICE}/config", body={"id": 109, "description": "by the oak"})
    for number in (101, 102, 109):
        await asked(f"POST {DEVICE}", DEVICE, body={"id": number})
    await asked(f"POST {DEVICE}/list", f"{DEVICE}/list", body={})
    await asked(f"POST {DEVICE}/list", f"{DEVICE}/list", body={"search": "nowhere"})
    for word in ("open", "close"):
        await asked(f"POST {DEVICE}/{word}", f"{DEVICE}/{word}", body={"id": 101})


async def of_cards(_, asked):
    told = await asked(f"PUT {CARD}", CARD, body={"number": "5", "pin": "4711", "zones": [1, "north"]})
    await asked(f"PATCH {CARD}", CARD, body={"id": 4001, "valid_until": "2020-01-31"})
    await asked(f"PATCH {CARD}/lifecycle", f"{CARD}/lifecycle", body={"id": 4001, "status": "lost", "reason": "x"})
    await asked(f"POST {CARD}", CARD, body={"id": 4001})
    await asked(f"POST {CARD}/username", f"{CARD}/username", body={"username": "ada"})
    await asked(f"POST {CARD}/list", f"{CARD}/list", body={})
    await asked(f"POST {CARD}/list", f"{CARD}/list", body={"search": "nowhere"})
    await asked(f"POST {CARD}/excel", f"{CARD}/excel", body={})
    await asked(f"DELETE {CARD}", CARD, body={"id": told["access_card"]["id"]})


async def of_events(gateway, asked):
    await asked("POST /v1/event/list", "/v1/event/list", body={})
    await asked("POST /v1/event/list", "/v1/event/list", body={"search": "nowhere"})
    told = await asked("POST /v1/event/list", "/v1/event/list", body={"page_limit": 1})
    await asked("POST /v1/event", "/v1/event", body={"id": told["events"][0]["id"]})


async def of_entries(_, asked):
    told = await asked(f"PUT {ENTRY}", ENTRY, body={"device_id": 101, "plate": "AB 12", "note": "x"})
    await asked(f"PUT {ENTRY}", ENTRY, body={"device_id": 101, "type": "exit"})
    number, came = told["entry"]["id"], told["entry"]["entry_at"]
    await asked(f"PATCH {ENTRY}", ENTRY, body={"id": number, "exit_at": came, "exit_device_id": 101})
    for path in (f"{ENTRY}/list", f"{ENTRY}/report"):
        await asked(f"POST {path}", path, body={})
        await asked(f"POST {path}", path, body={"search": "nowhere"})
    for path in (f"{ENTRY}/excel", f"{ENTRY}/reportExcel"):
        await asked(f"POST {path}", path, body={})


async def of_cameras(_, asked):
    told = await asked(f"PUT {CAMERA}", CAMERA, body={"name": "Yard", "enabled": True})
    await asked(f"PATCH {CAMERA}", CAMERA, body={"id": 202, "location": "South"})
    for number in (201, 202):
        await asked(f"POST {CAMERA}", CAMERA, body={"id": number})
    await asked(f"POST {CAMERA}/list", f"{CAMERA}/list", body={})
    await asked(f"DELETE {CAMERA}", CAMERA, body={"id": told["camera"]["id"]})
    await asked(f"GET {CAMERA}/status/{{id}}", f"{CAMERA}/status/201")
    await asked(f"GET {CAMERA}/thumbnail/{{id}}", f"{CAMERA}/thumbnail/201")
    for file in ("master.m3u8", "index.m3u8", "7.ts"):
        await asked(f"GET {CAMERA}/live/{{id}}/{{file}}", f"{CAMERA}/live/201/{file}")


async def of_camera_events(gateway, asked):
    number = gateway.camera_event_id
    form = FormData(quote_fields=False)
    form.add_field("id", str(number))
    form.add_field("file", BytesIO(b"\xff\xd8\xff a picture"), filename="dent.jpg")
    told = await asked(f"POST {EVENT}/evidence", f"{EVENT}/evidence", data=form)
    path, body = f"{EVENT}/evidence/{told['evidence']['id']}/access", {"minutes": 5}
    link = await asked(f"POST {EVENT}/evidence/{{id}}/access", path, body=body)
    token = link["access"]["token"]
    await asked(f"GET {EVENT}/evidence/file/{{token}}", f"{EVENT}/evidence/file/{token}", user="")
    await asked(f"POST {EVENT}/evidence/{{id}}/access", path, body={"revoke": True})
    marked = await asked(f"PUT {EVENT}", EVENT, body={"camera_id": 201, "incident": True})
    await asked(f"PATCH {EVENT}", EVENT, body={"id": number, "name": "Dent"})
    await asked(f"POST {EVENT}", EVENT, body={"id": number})
    await asked(f"POST {EVENT}/list", f"{EVENT}/list", body={})
    await asked(f"POST {EVENT}/list", f"{EVENT}/list", body={"search": "nowhere"})
    for what in ("thumbnail", "clip"):
        await asked(f"GET {EVENT}/{what}/{{id}}", f"{EVENT}/{what}/{number}")
    for file in ("master.m3u8", "index.m3u8", "7.ts"):
        await asked(f"GET {EVENT}/vod/{{id}}/{{file}}", f"{EVENT}/vod/{number}/{file}")
    await asked(f"DELETE {EVENT}", EVENT, body={"id": marked["event"]["id"]})


async def of_programs(gateway, asked):
    prefix = "/api/v1"
    for duration in ("8", "permanent"):
        body = {"user_id": "17", "device_id": "101", "duration": duration}
        grant = await asked(f"POST {prefix}/access/grant", f"{prefix}/access/grant", body=body)
    await asked(f"GET {prefix}/access/permissions", f"{prefix}/access/permissions")
    body = {"access_id": grant["access_id"]}
    await asked(f"POST {prefix}/access/revoke", f"{prefix}/access/revoke", body=body)
    await asked(f"POST {prefix}/access/unlock", f"{prefix}/access/unlock", body={"device_id": "101"})
    for path in ("devices", "video/cameras", "video/recordings", "webhooks"):
        await asked(f"GET {prefix}/{path}", f"{prefix}/{path}")
    for number in ("101", "109"):
        await asked(f"GET {prefix}/devices/{{id}}", f"{prefix}/devices/{number}")
    await asked(f"GET {prefix}/video/stream/{{camera_id}}", f"{prefix}/video/stream/201")
    number = gateway.camera_event_id
    await asked(f"GET {prefix}/video/recordings/{{id}}/clip", f"{prefix}/video/recordings/{number}/clip")
    body = {"url": "https://example.com/hook", "events": ["access.granted"]}
    hook = await asked(f"POST {prefix}/webhooks", f"{prefix}/webhooks", body=body)
    await asked(f"GET {prefix}/webhooks", f"{prefix}/webhooks")
    await asked(f"DELETE {prefix}/webhooks/{{id}}", f"{prefix}/webhooks/{hook['id']}")


FAMILIES = (of_sessions, of_devices, of_cards, of_events, of_entries, of_cameras, of_camera_events, of_programs)
ONLY_THROUGH_CENTRAL = {"POST /api/v1/devices", "DELETE /api/v1/devices/{id}"}


@pytest.mark.parametrize("where", ["alone", "away"])
async def test_every_answer_is_as_it_is_described(gateway_at, where):
    async with gateway_at(where) as gateway:
        description = await described(gateway)
        for family in FAMILIES:
            await family(gateway, description.asked)
        every = {f"{item.method} {item.path}" for item in ANSWERED if item.path not in ELSEWHERE}
        assert description.compared == every - ONLY_THROUGH_CENTRAL, "call each in the function of its family"


async def test_a_comparison_finds_what_is_missing_wrong_or_not_told(gateway):
    """The comparison itself: it must be able to fail."""
    description = await described(gateway)
    for change in (
        {"required": ["success", "device", "more"]},
        {"properties": {"success": {"const": True}, "device": {"type": "string"}}},
        {"properties": {"success": {"const": True}}},
    ):
        description.schemas["DeviceAnswer"] |= change
        with pytest.raises(AssertionError):
            await description.asked("POST /v1/device", DEVICE, body={"id": 101})
