"""Sign-in, sessions, permissions and errors as the interface gives them."""

from __future__ import annotations

import pytest

from gateway.runtime.clock import SystemClock
from simulation.far_ends.central.accounts import totp


async def sign_in(ask, username, password):
    return await ask("POST", "/v1/auth/login", {"username": username, "password": password}, headers={})


async def test_wrong_credentials_are_404_and_bad_json_is_400(ask):
    status, body = await sign_in(ask, "gateway", "wrong")
    assert (status, body["success"]) == (404, False)
    status, body = await ask("POST", "/v1/auth/login", headers={}, raw=b"{")
    assert (status, body["success"]) == (400, False)


@pytest.mark.parametrize("carrier", ["SessionID", "Cookie", "Authorization"])
async def test_each_carrier_of_the_session_works(ask, carrier):
    _, body = await sign_in(ask, "gateway", "right horse")
    token = body["session"]
    value = {"SessionID": token, "Cookie": f"session={token}", "Authorization": f"Bearer {token}"}[carrier]
    status, body = await ask("POST", "/v1/camera/list", {}, headers={carrier: value})
    assert (status, body["success"]) == (200, True)


async def test_a_missing_permission_is_500_and_named(ask):
    _, body = await sign_in(ask, "viewer", "view")
    headers = {"SessionID": body["session"]}
    assert (await ask("POST", "/v1/device/list", {}, headers=headers))[0] == 200
    status, body = await ask("PUT", "/v1/camera/event", {}, headers=headers)
    assert status == 500
    assert "can_add_camera_events" in body["error"]


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_logout_ends_the_session(ask, central, method):
    _, body = await sign_in(ask, "gateway", "right horse")
    headers = {"SessionID": body["session"]}
    status, body = await ask(method, "/v1/auth/logout", {} if method == "POST" else None, headers=headers)
    assert (status, body) == (200, {"success": True, "user": None, "error": None})
    assert (await ask("POST", "/v1/device/list", {}, headers=headers))[0] == 500


@pytest.mark.parametrize("field", ["token", "code"])
async def test_a_second_factor_comes_before_protected_operations(ask, field):
    _, body = await sign_in(ask, "guard", "guard")
    assert body["user"]["mfa_enabled"] is True
    headers = {"SessionID": body["session"]}
    assert (await ask("POST", "/v1/device/list", {}, headers=headers))[0] == 500
    assert (await ask("POST", "/v1/auth/mfa", {field: "000"}, headers=headers))[0] == 400
    code = totp("JBSWY3DPEHPK3PXP", SystemClock().wall().micros // 1_000_000)
    status, body = await ask("POST", "/v1/auth/mfa", {field: code}, headers=headers)
    assert (status, body["mfa_enabled"]) == (200, True)
    assert (await ask("POST", "/v1/device/list", {}, headers=headers))[0] == 200


def test_totp_agrees_with_the_rfc():
    secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # RFC 6238, appendix B
    assert totp(secret, 59) == "287082"
    assert totp(secret, 1111111109) == "081804"


@pytest.mark.parametrize("path", ["/", "/health/live", "/health/ready"])
async def test_liveness_needs_no_session(ask, path):
    status, body = await ask("GET", path, headers={})
    assert (status, body["success"]) == (200, True)


async def test_unknown_routes_answer_json(ask):
    status, body = await ask("POST", "/v1/nothing", {})
    assert (status, body["success"]) == (404, False)
    status, body = await ask("DELETE", "/v1/device/list", {})
    assert (status, body["success"]) == (405, False)
