"""The meaning of central's answers."""

from __future__ import annotations

import json

import pytest

from gateway.central.client.answers import CentralBusy, CentralDenied, CentralFailed, NeedsSignIn, judge
from gateway.domain.errors import CentralRefused, CentralUnavailable


def verdict(status, body, operation="POST /v1/x"):
    return judge(operation, status, body if isinstance(body, bytes) else json.dumps(body).encode())


def test_a_success_is_its_object():
    assert verdict(200, {"success": True, "devices": []}) == {"success": True, "devices": []}


@pytest.mark.parametrize("operation", ["POST /v1/access", "POST /v1/event"])
def test_a_bare_record_is_the_answer_where_the_interface_says_so(operation):
    assert verdict(200, {"id": 4}, operation) == {"id": 4}
    assert verdict(200, {"success": True, "access": {"id": 4}}, operation)["access"] == {"id": 4}
    assert isinstance(verdict(200, {"success": False, "error": "no such card"}, operation), CentralRefused)


@pytest.mark.parametrize(
    "operation", ["POST /v1/device/list", "PATCH /v1/access", "PUT /v1/entry", "POST /v1/auth/login"]
)
@pytest.mark.parametrize("said", [{}, {"success": None}, {"success": "true"}, {"success": 1}, {"success": "false"}])
def test_what_does_not_say_success_is_not_known_to_be_done(operation, said):
    found = verdict(200, {"id": 4, "devices": [], **said}, operation)
    assert type(found) is CentralFailed
    assert found.sent, "central may have carried it out"
    assert "success" in str(found)


@pytest.mark.parametrize("operation", ["POST /v1/access", "POST /v1/event"])
def test_a_bare_record_without_an_id_is_none(operation):
    assert type(verdict(200, {}, operation)) is CentralFailed
    assert type(verdict(200, {"id": 4, "success": "yes"}, operation)) is CentralFailed


def test_a_portal_that_speaks_json_is_not_central():
    assert type(verdict(200, {"message": "please sign in"}, "GET /")) is CentralUnavailable


@pytest.mark.parametrize("status", [200, 401, 403, 500])
def test_the_authentication_message_asks_for_a_sign_in_whatever_the_status(status):
    body = {"success": False, "devices": None, "error": "Authentication required"}
    assert isinstance(verdict(status, body), NeedsSignIn)


@pytest.mark.parametrize(
    ("status", "body", "meant"),
    [
        (200, {"success": False, "error": "no such camera"}, CentralRefused),
        (200, {"success": True, "error": "half done"}, CentralRefused),
        (400, {"success": False, "error": "date_at: bad"}, CentralRefused),
        (404, {"success": False, "error": "device 5 not found"}, CentralRefused),
        (403, {"success": False, "error": "no"}, CentralDenied),
        (500, {"success": False, "error": "permission denied: can_view_devices"}, CentralDenied),
        (500, {"success": False, "error": "database is unavailable"}, CentralFailed),
        (429, {"success": False, "error": "slow down"}, CentralBusy),
        (503, {"success": False, "error": "starting"}, CentralUnavailable),
        (302, {}, CentralUnavailable),
        (500, b"Internal Server Error", CentralUnavailable),
        (200, b"<html>", CentralUnavailable),
        (200, b"[1]", CentralUnavailable),
        (200, b"", CentralUnavailable),
        (404, b"not here", CentralUnavailable),
        (200, b"\xff\xfe", CentralUnavailable),
        (200, b"[" * 100_000, CentralUnavailable),
    ],
)
def test_failures_by_reaction(status, body, meant):
    assert type(verdict(status, body)) is meant


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 400 + ".5"])
@pytest.mark.parametrize("length", [0, 60_000])
def test_what_is_no_number_is_the_text_that_it_is(number, length):
    body = f'{{"success": true, "access_cards": [{{"id": 1, "credit": {number}}}], "x": "{"x" * length}"}}'.encode()
    assert verdict(200, body)["access_cards"] == [{"id": 1, "credit": number[:40]}]


@pytest.mark.parametrize("error", [["no such card"], {"message": "no such card"}, 7])
def test_an_error_that_is_no_text_is_shown_as_it_is(error):
    found = verdict(400, {"success": False, "error": error})
    assert str(error) in str(found)


def test_an_error_is_one_line_of_bounded_length_and_names_the_operation():
    text = str(verdict(400, {"success": False, "error": "a\nb" * 1000}))
    assert text.startswith("POST /v1/x: a ba b")
    assert "\n" not in text
    assert len(text) < 400
