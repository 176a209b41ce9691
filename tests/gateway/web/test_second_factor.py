"""Stored accounts over the wire: the second factor before anything else, recovery codes, and changes at once."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.events import EventKind
from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Problem, SitePart
from gateway.web.auth.api_keys import key_hash, new_key
from gateway.web.auth.second_factor import new_recovery_codes, recovery_hash
from gateway.web.catalogue import OPERATIONS
from gateway.web.register.changes import (
    AddAccount,
    AddKey,
    Look,
    PutRole,
    RemoveAccount,
    RemoveKey,
    SetDisabled,
    SetPassword,
    SetRole,
    SetSecondFactor,
    SignOut,
)
from simulation.far_ends.central.accounts import totp
from tests.gateway.web.setups.local import ask

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
CODES = new_recovery_codes()


@pytest.fixture(scope="module")
def password_hash(cheap_hash):
    return cheap_hash("correct horse")


@pytest.fixture
def change(tmp_path):
    async def make(asked):
        answer = await ask(asked, run_folder=tmp_path / "run")
        assert not answer.error, answer.error
        return answer

    return make


@pytest.fixture
async def ada(gateway, change, password_hash):
    """An operator with a second factor."""
    await change(AddAccount(username="ada", password_hash=password_hash, role="operator"))
    hashes = tuple(recovery_hash(code).hex() for code in CODES)
    await change(SetSecondFactor(username="ada", secret=SECRET, step=0, codes=hashes))


async def login(gateway, username="ada", password="correct horse"):
    async with gateway.client.post(
        f"{gateway.url}/v1/auth/login", json={"username": username, "password": password}
    ) as answer:
        gateway.client.cookie_jar.clear()
        return answer.status, await answer.json()


async def half_in(gateway):
    status, answer = await login(gateway)
    assert status == 200, answer
    return {"SessionID": answer["session"]}, answer


async def sent(gateway, headers, path, body=None, *, method="POST"):
    async with gateway.client.request(method, gateway.url + path, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


def code(gateway, *, steps=0):
    return totp(SECRET, gateway.clock.wall().micros // 1_000_000 + 30 * steps)


async def test_nothing_is_answered_before_the_second_factor(gateway, ada):
    headers, answer = await half_in(gateway)
    assert answer["user"] == {"username": "ada", "mfa_enabled": True}
    expected = "authentication required: the code of the second factor is missing"
    for operation in OPERATIONS:
        if operation.rule.whole and not (
            operation.by_key or operation.path.startswith("/api/")
        ):  # those know no sessions
            path = (
                operation.path.replace("{id}", "1")
                .replace("{file}", "1.ts")
                .replace("{number}", "1")
                .replace("{lane}", "1")
            )
            status, refused = await sent(gateway, headers, path, {}, method=operation.method)
            assert (status, refused["error"]) == (500, expected), operation.path
    status, shown = await sent(gateway, headers, "/status/session", method="GET")
    assert (shown["user"], shown["mfa_pending"]) == (None, True)


@pytest.mark.parametrize("name", ["token", "code"])
async def test_the_current_code_opens_the_session_once(gateway, ada, name):
    headers, _ = await half_in(gateway)
    current = code(gateway)
    assert await sent(gateway, headers, "/v1/auth/mfa", {name: current}) == (
        200,
        {"success": True, "mfa_enabled": True},
    )
    assert (await sent(gateway, headers, "/v1/device/list", {}))[0] == 200
    assert (await sent(gateway, headers, "/v1/auth/mfa", {name: current}))[0] == 200
    again, _ = await half_in(gateway)
    status, refused = await sent(gateway, again, "/v1/auth/mfa", {name: current})
    assert (status, refused["error"]) == (400, "the code is not accepted")
    earlier = await sent(gateway, again, "/v1/auth/mfa", {name: code(gateway, steps=-1)})
    assert earlier[0] == 400
    assert (await sent(gateway, again, "/v1/auth/mfa", {name: code(gateway, steps=1)}))[0] == 200


async def test_a_code_used_twice_at_once_counts_once(gateway, ada):
    sessions = [(await half_in(gateway))[0] for _ in range(3)]
    current = code(gateway)
    answers = await asyncio.gather(*(sent(gateway, one, "/v1/auth/mfa", {"token": current}) for one in sessions))
    assert sorted(status for status, _ in answers) == [200, 400, 400]


@pytest.mark.parametrize("wrong", [{}, {"token": ""}, {"token": 123456}, {"token": "12345x"}, {"code": "1" * 65}, []])
async def test_what_is_no_code(gateway, ada, wrong):
    headers, _ = await half_in(gateway)
    status, refused = await sent(gateway, headers, "/v1/auth/mfa", wrong)
    assert (status, refused["success"], refused["mfa_enabled"]) == (400, False, None)
    assert (await sent(gateway, headers, "/v1/device/list", {}))[0] == 500


async def test_codes_of_other_times_are_refused_and_then_slowed_down(gateway, ada):
    headers, _ = await half_in(gateway)
    statuses = [
        (await sent(gateway, headers, "/v1/auth/mfa", {"token": code(gateway, steps=steps)}))[0]
        for steps in range(3, 10)
    ]
    assert statuses == [400] * 6 + [429]
    other, _ = await half_in(gateway)
    assert (await sent(gateway, other, "/v1/auth/mfa", {"token": code(gateway)}))[0] == 429
    gateway.clock.pushed += 61
    assert (await sent(gateway, other, "/v1/auth/mfa", {"token": code(gateway)}))[0] == 200
    _, listed = await gateway.call("/v1/event/list", {"types": [EventKind.SIGN_IN_REFUSED]})
    assert listed["count"] == 6
    assert "The second factor of ada" in listed["events"][0]["description"]


async def test_a_recovery_code_counts_once_however_it_is_typed(gateway, ada, change):
    headers, _ = await half_in(gateway)
    typed = CODES[0].upper().replace("-", " ")
    assert (await sent(gateway, headers, "/v1/auth/mfa", {"token": typed}))[0] == 200
    again, _ = await half_in(gateway)
    assert (await sent(gateway, again, "/v1/auth/mfa", {"token": CODES[0]}))[0] == 400
    _, listed = await gateway.call("/v1/event/list", {"types": [EventKind.ACCOUNT_CHANGED]})
    assert listed["events"][0]["description"] == "A recovery code of ada was used."
    (shown,) = [account for account in (await change(Look())).accounts if account.username == "ada"]
    assert (shown.mfa, shown.codes_left) == (True, 9)


async def test_an_unset_clock_is_named_as_the_reason(gateway, ada):
    headers, _ = await half_in(gateway)
    gateway.clock.trusted = False
    status, refused = await sent(gateway, headers, "/v1/auth/mfa", {"token": code(gateway, steps=9)})
    assert (status, "clock is not set" in refused["error"]) == (400, True)


async def test_a_session_that_never_proved_itself_ends(gateway, ada):
    headers, _ = await half_in(gateway)
    gateway.clock.pushed += 11 * 60
    status, refused = await sent(gateway, headers, "/v1/auth/mfa", {"token": code(gateway)})
    assert (status, refused["error"]) == (500, "authentication required")


@pytest.mark.parametrize(
    "make",
    [
        lambda hashed: SetPassword(username="ada", password_hash=hashed),
        lambda _: SetRole(username="ada", role="viewer"),
        lambda _: SetDisabled(username="ada", disabled=True),
        lambda _: SetSecondFactor(username="ada", secret="", step=0),
        lambda _: RemoveAccount(username="ada"),
        lambda _: PutRole(name="operator", permissions=frozenset({"can_view_events"})),
        lambda _: SignOut(username="ada"),
    ],
)
async def test_a_change_ends_the_sessions_of_a_running_gateway(gateway, ada, change, password_hash, make):
    headers, _ = await half_in(gateway)
    assert (await sent(gateway, headers, "/v1/auth/mfa", {"token": code(gateway)}))[0] == 200
    await change(make(password_hash))
    assert (await sent(gateway, headers, "/v1/device/list", {}))[0] == 500
    _, listed = await gateway.call("/v1/event/list", {"types": [EventKind.ACCOUNT_CHANGED]})
    assert listed["count"] == 3


async def test_a_disabled_account_and_another_role_count_from_the_next_sign_in(gateway, change, password_hash):
    await change(AddAccount(username="bob", password_hash=password_hash, role="viewer"))
    _, answer = await login(gateway, "bob")
    headers = {"SessionID": answer["session"]}
    assert (await sent(gateway, headers, "/v1/device/list", {}))[0] == 200
    status, refused = await sent(gateway, headers, "/v1/device/open", {"id": 101})
    assert (status, refused["error"]) == (500, "permission denied: this needs can_control_devices")
    await change(SetRole(username="bob", role="operator"))
    _, answer = await login(gateway, "bob")
    assert answer["role"]["name"] == "operator"
    assert (await sent(gateway, {"SessionID": answer["session"]}, "/v1/device/open", {"id": 101}))[0] == 200
    await change(SetDisabled(username="bob", disabled=True))
    assert (await login(gateway, "bob"))[0] == 404


async def test_a_session_ends_a_day_after_its_begin_used_or_not(gateway):
    headers = await gateway.sign_in()
    for _ in range(24):
        assert (await sent(gateway, headers, "/v1/device/list", {}))[0] == 200
        gateway.clock.pushed += 59 * 60
    gateway.clock.pushed += 25 * 60
    assert (await sent(gateway, headers, "/v1/device/list", {}))[0] == 500


async def test_another_page_cannot_sign_anybody_out(gateway):
    token = (await gateway.sign_in())["SessionID"]
    gateway.client.cookie_jar.clear()
    cookie = {"Cookie": f"session={token}"}
    for site in ("cross-site", "same-site"):
        assert (await sent(gateway, {**cookie, "Sec-Fetch-Site": site}, "/v1/auth/logout", method="GET"))[0] == 403
    assert (await sent(gateway, {"SessionID": token}, "/v1/device/list", {}))[0] == 200
    assert (await sent(gateway, {**cookie, "Sec-Fetch-Site": "none"}, "/v1/auth/logout", method="GET"))[0] == 200


async def test_a_key_of_a_program_is_no_session(gateway, change):
    key, own = new_key(), {"Authorization": f"Bearer {new_key()}"}
    carried = {"Authorization": f"Bearer {key}"}
    look = frozenset({"can_view_devices"})
    await change(AddKey(name="app", key_hash=key_hash(key).hex(), permissions=look, days=1))
    assert (await sent(gateway, carried, "/api/v1/devices", method="GET"))[0] == 200
    assert (await sent(gateway, carried, "/api/v1/access/permissions", method="GET"))[0] == 403
    assert (await sent(gateway, own, "/api/v1/devices", method="GET"))[0] == 401
    assert (await sent(gateway, carried, "/v1/device/list", {}))[0] == 500
    assert (await sent(gateway, await gateway.sign_in(), "/api/v1/devices", method="GET"))[0] == 401
    gateway.clock.pushed += 86_400
    assert (await sent(gateway, carried, "/api/v1/devices", method="GET"))[0] == 401
    gateway.clock.pushed -= 86_400
    await change(RemoveKey(name="app"))
    assert (await sent(gateway, carried, "/api/v1/devices", method="GET"))[0] == 401


@pytest.mark.usefixtures("ada")
async def test_before_it_is_proven_the_probes_say_no_more_than_to_anybody(gateway):
    gateway.problems.append(
        Problem(
            kind=ProblemKind.GATE_OFFLINE,
            part=SitePart.DEVICE,
            id="101",
            name="Barrier",
            text="no answer",
            lanes=("Entry",),
        )
    )
    headers, _ = await half_in(gateway)
    assert await sent(gateway, headers, "/health/live", method="GET") == (200, {"success": True})
    assert await sent(gateway, headers, "/health/ready", method="GET") == (
        503,
        {"success": False, "error": "not ready"},
    )
