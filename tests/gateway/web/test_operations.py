"""Every operation of the catalogue: without a session, without its permission, with bad input, and as it should be."""

from io import BytesIO

import pytest

from gateway.web.catalogue import OPERATIONS as ALL
from gateway.web.operation import Operation

OPERATIONS = [item for item in ALL if not (item.by_key or item.path.startswith("/api/v1/"))]
"""The others are entered by keys; see test_legacy and test_metrics."""
BODIES = {
    "/v1/device": {"id": 101},
    "PUT /v1/device": {"name": "Gate at the back"},
    "/v1/device/config": {"id": 101, "description": "by the oak"},
    "/v1/device/open": {"id": 101},
    "/v1/device/close": {"id": 101},
    "/v1/access": {"id": 4001},
    "/v1/access/username": {"username": "ada"},
    "PUT /v1/access": {"number": "77123"},
    "PATCH /v1/access": {"id": 4001, "note": "by the oak"},
    "/v1/access/lifecycle": {"id": 4001, "status": "lost"},
    "/v1/access/device": {"id": 4001, "device_id": 101},
    "/v1/event": {"id": 1},
    "PUT /v1/entry": {"device_id": 101},
    "PATCH /v1/entry": {"id": 2_000_000_000, "note": "seen"},  # the one that was just made
    "/status/lane/order": {"lane_id": "entry", "order": "lock_down"},
    "/status/lane/stop": {"lane_id": "entry"},
    "/status/lane/try": {"lane_id": "entry", "card": "00111572"},
    "/status/area/count": {"area_id": "garage", "count": 1},
    "/status/incident/save": {"lane_id": "entry"},
    "/status/commissioning/begin": {"lane_id": "entry"},
    "/status/commissioning/judge": {"lane_id": "entry", "step": "open", "passed": True},
    "/status/line/scan": {"line": "yard"},
    "/status/line/scan/stop": {"line": "yard"},
    "/status/outbox/retry": {"id": 1},
    "/status/outbox/settle": {"id": 1, "not_there": True},
    "/status/outbox/drop": {"id": 1},
    "/status/passback/forgive": {"everybody": True},
    "/v1/camera": {"id": 201},
    "PUT /v1/camera": {"name": "Yard"},
    "PUT /v1/camera/event": {"camera_id": 201},
    "/v1/camera/event": {"id": 2_000_000_000},
}
OF_THEIR_OWN = {
    ("GET", "/status/fleet"),
    ("DELETE", "/v1/camera"),
    ("DELETE", "/v1/camera/event"),
}
"""Tested where what they need is."""
READS_BODY = [
    item
    for item in OPERATIONS
    if item.method == "POST" and item.resource and item.path != "/v1/auth/logout" and "{" not in item.path
]
BY_ID = [item for item in READS_BODY if set(BODIES.get(item.path, {})) == {"id"}]
HELD = [item for item in OPERATIONS if item.rule.session]
SHUT = [item for item in OPERATIONS if item.rule.groups]
BY_OTHERS = (
    "/status/commissioning/f",
    "/status/event/one/",
    "/status/incident/file/",
    "/status/line/frames",
    "/status/line/scan",
    "/status/line/values",
    "/status/problem/",
    "/status/settings/",
    "/v1/auth/mfa",
    "/status/live",
    "/status/webhook/",
    "/status/outbox/",
    "/v1/camera/event/evidence",
    "/v1/access/device",
)
PLAIN = [item for item in HELD if not item.path.startswith(BY_OTHERS) and (item.method, item.path) not in OF_THEIR_OWN]


def shown(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def body_of(operation: Operation) -> dict:
    return BODIES.get(shown(operation), BODIES.get(operation.path, {}))


def address(operation: Operation, number: str = "") -> str:
    number = number or ("2000000000" if "/event/" in operation.path else "1" if "/proof/" in operation.path else "201")
    asked = "?after=1&before=3" if "/chain/" in operation.path else ""
    return operation.path.replace("{id}", number).replace("{file}", "master.m3u8").replace("{lane}", "entry") + asked


async def test_an_operation_without_a_session_says_so(gateway):
    for operation in HELD:
        status, answer = await gateway.call(address(operation), {}, method=operation.method, user="")
        expected = {"success": False, operation.resource: None, "error": "authentication required"}
        assert (status, answer) == (500, expected), shown(operation)


async def test_an_unknown_session_is_no_session(gateway):
    for carrier in (
        {"SessionID": "x" * 43},
        {"Authorization": "Bearer nonsense"},
        {"Cookie": "session=x"},
        {"SessionID": ""},
        {"SessionID": "y" * 4000},
    ):
        async with gateway.client.post(f"{gateway.url}/v1/device/list", json={}, headers=carrier) as answer:
            assert answer.status == 500
            assert (await answer.json())["error"] == "authentication required"


async def test_an_operation_without_its_permission_names_it(gateway):
    for operation in SHUT:
        status, answer = await gateway.call(address(operation), {}, method=operation.method, user="nobody")
        assert status == 500, shown(operation)
        assert answer["success"] is False
        assert answer[operation.resource] is None
        assert operation.rule.groups[0][0] in answer["error"]
    assert gateway.board.commands == []


async def test_every_operation_answers_whom_it_should(gateway):
    for operation in PLAIN:
        if "logout" in operation.path:
            continue
        headers = await gateway.sign_in()
        async with gateway.client.request(
            operation.method, gateway.url + address(operation), headers=headers, json=body_of(operation)
        ) as answer:
            assert answer.status == 200, (shown(operation), await answer.text())
            if answer.content_type == "application/json":
                body = await answer.json()
                assert body["success"] is True
                assert body[operation.resource] is not None


@pytest.mark.parametrize("raw", [b"{", b"\xff\xfe", b"[1]", b"7", b'"x"', b"{} {}", b"[" * 5000])
async def test_a_malformed_body_is_one_clear_error(gateway, raw):
    headers = await gateway.sign_in()
    for operation in READS_BODY:
        async with gateway.client.post(gateway.url + operation.path, data=raw, headers=headers) as answer:
            body = await answer.json()
            assert answer.status == 400, shown(operation)
            assert body["success"] is False
            assert body[operation.resource] is None
            assert "body" in body["error"]


@pytest.mark.parametrize("value", ["101", 1.5, True, [], {}, -1, 2**63, 10**30])
async def test_a_wrong_id_is_named(gateway, value):
    for operation in BY_ID:
        status, answer = await gateway.call(operation.path, {"id": value})
        assert status == 400, shown(operation)
        assert answer["error"].startswith("id: must be"), answer
    assert gateway.board.commands == []


async def test_a_missing_id_is_named(gateway):
    for operation in BY_ID:
        for body in ({}, {"id": None}):
            status, answer = await gateway.call(operation.path, body)
            assert (status, answer["error"]) == (400, "id: is missing"), shown(operation)


async def test_an_unknown_id_is_not_found(gateway):
    for operation in BY_ID:
        status, answer = await gateway.call(operation.path, {"id": 999_999})
        assert status == 404, shown(operation)
        assert answer["error"]
    for operation in OPERATIONS:
        if "{id}" in operation.path:
            for number in ("999999", "nonsense", "9" * 30, "-1", "\u0661"):
                path = address(operation, number)
                if (
                    "whep" in path or "/event/evidence" in path
                ):  # a viewer's requests are of other types; its own tests ask for what is not there
                    continue
                status, answer = await gateway.call(path, method="GET")
                assert (status, answer["success"]) == (404, False), path


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("page", 0),
        ("page", "1"),
        ("page_limit", 0),
        ("page_limit", -5),
        ("cursor_id", -1),
        ("search", 7),
        ("page", 10**12),
    ],
)
async def test_a_wrong_field_of_a_list_is_named(gateway, field, value):
    for path in ("/v1/device/list", "/v1/event/list"):
        status, answer = await gateway.call(path, {field: value})
        assert status == 400
        assert answer["error"].startswith(f"{field}: must be"), answer


async def test_a_huge_body_is_refused(gateway):
    headers = await gateway.sign_in()
    async with gateway.client.post(
        f"{gateway.url}/v1/device/list", data=BytesIO(b'{"search": "' + b"x" * 1_100_000 + b'"}'), headers=headers
    ) as answer:
        assert answer.status == 413
        assert (await answer.json()) == {"success": False, "devices": None, "error": "the body is larger than 1 MiB"}


@pytest.mark.parametrize("values", ["[]," * 340_000 + "[]", "7," * 9_998 + "7"])
async def test_a_body_of_very_many_values_is_refused_before_it_is_read(gateway, values):
    """Also to those who have not signed in: reading it would hold up every lane."""
    many = values.count("[") > 1
    async with gateway.client.post(f"{gateway.url}/v1/auth/login", data=f'{{"username": [{values}]}}') as answer:
        said = (await answer.json())["error"]
        assert answer.status == 400
        assert said == ("the body holds more than 10000 values" if many else "username: must be a valid string")


async def test_paths_and_methods_that_are_not_there(gateway):
    status, answer = await gateway.call("/v1/nothing", {})
    assert (status, answer) == (404, {"success": False, "error": "no such operation"})
    status, answer = await gateway.call("/v1/device/list", method="GET")
    assert (status, answer["success"]) == (405, False)
    status, answer = await gateway.call("/status/static/../../../pyproject.toml", method="GET")
    assert status == 404
    status, answer = await gateway.call("/status/static/%2e%2e/page.py", method="GET")
    assert status in (403, 404)


async def test_an_unexpected_error_shows_a_reference_and_nothing_else(gateway, monkeypatch):
    def broken():
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(gateway.board, "devices", broken)
    status, answer = await gateway.call("/v1/device", {"id": 101})
    assert status == 500
    assert "secret" not in answer["error"]
    assert answer["error"].startswith("unexpected error; the gateway's log has it under ")


async def test_answers_carry_security_headers(gateway):
    for path in ("/", "/status/", "/v1/nothing", "/status/static/page.css"):
        async with gateway.client.get(gateway.url + path) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert "aiohttp" not in answer.headers["Server"]


def test_what_is_open_to_everyone_is_known():
    assert {item.path for item in OPERATIONS if not item.rule.session} == {
        "/",
        "/health/live",
        "/health/ready",
        "/openapi.json",
        "/v1/auth/login",
        "/status/",
        "/status/session",
        "/fleet/",
        "/v1/camera/event/evidence/file/{token}",
        "/v1/camera/whep/{id}",
        "/v1/camera/whep/{id}/{view}",
    }
