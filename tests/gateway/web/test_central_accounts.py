"""Central's accounts at the site: through central, its second factor, and for some days without it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

import pytest
from aiohttp import FormData, web
from at_work import serving_central
from waiting import until

from gateway.central.client.accounts import AccountsAtCentral, RoleMap
from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.runtime.clock import SystemClock
from gateway.web.register.changes import AddAccount
from simulation.far_ends.central import CentralAccount, Faults, RoleForm
from simulation.far_ends.central.accounts import totp
from simulation.far_ends.http_device import on_loopback
from tests.gateway.web.setups.local import ask

EVIDENCE = "/v1/camera/event/evidence"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
LOOK = frozenset({"can_view_devices"})
GUARD = CentralAccount("porter", "porter's", permissions=LOOK, role_name="Porter", role_form=RoleForm.FLAGS)
MANAGER = CentralAccount("manager", "manager's", role_name="Manager", mfa_secret=SECRET)
CLERK = CentralAccount("clerk", "clerk's", permissions=frozenset({"can_view_camera_events"}), role_name="Clerk")
DAY = 86_400


@pytest.fixture
async def central():
    async with serving_central(CentralAccount("gateway", "gateway"), GUARD, MANAGER, CLERK) as service:
        yield service


@pytest.fixture
async def gateway(open_gateway, central):
    client = CentralClient(
        url=central.url, account=GatewayAccount("gateway", "gateway"), clock=SystemClock(), timeout_seconds=2.0
    )
    async with open_gateway(people=AccountsAtCentral(client=client, roles=RoleMap())) as opened:
        yield opened
    await client.close()


async def login(gateway, username="porter", password="porter's"):
    body = {"username": username, "password": password}
    async with gateway.client.post(f"{gateway.url}/v1/auth/login", json=body) as answer:
        gateway.client.cookie_jar.clear()
        return answer.status, await answer.json()


async def signed_in(gateway, **account):
    status, answer = await login(gateway, **account)
    assert status == 200, answer
    return {"SessionID": answer["session"]}


async def sent(gateway, headers, path, body=None, *, method="POST"):
    async with gateway.client.request(method, gateway.url + path, json=body or {}, headers=headers) as answer:
        return answer.status, await answer.json()


async def manager_in(gateway):
    headers = await signed_in(gateway, username="manager", password="manager's")
    code = totp(SECRET, SystemClock().wall().micros // 1_000_000)
    assert (await sent(gateway, headers, "/v1/auth/mfa", {"token": "000000"}))[0] == 400
    assert (await sent(gateway, headers, "/v1/device/list"))[0] == 500
    assert await sent(gateway, headers, "/v1/auth/mfa", {"token": code}) == (
        200,
        {"success": True, "mfa_enabled": True},
    )
    return headers


async def test_an_account_of_central_signs_in_with_its_role(gateway, central):
    status, answer = await login(gateway)
    assert status == 200
    assert (answer["user"]["name"], answer["role"]["name"], answer["user"]["mfa_enabled"]) == (
        "Porter",
        "Porter",
        False,
    )
    assert answer["servers"][0]["name"] == "central"
    headers = {"SessionID": answer["session"]}
    assert (await sent(gateway, headers, "/v1/device/list"))[0] == 200
    status, refused = await sent(gateway, headers, "/v1/device/open", {"id": 101})
    assert (status, refused["error"]) == (500, "permission denied: this needs can_control_devices")
    assert central.open_sessions == 1
    assert (await sent(gateway, headers, "/v1/auth/logout"))[0] == 200
    assert central.open_sessions == 0


async def test_no_token_and_no_password_of_central_is_on_disk(gateway, central, tmp_path):
    await signed_in(gateway)
    tokens = [token.encode() for token in central.sessions.open]
    assert tokens
    for path in tmp_path.glob("*.db*"):
        content = path.read_bytes()
        assert not any(secret in content for secret in (b"porter's", *tokens))


async def test_the_second_factor_is_proven_at_central(gateway, central):
    headers = await manager_in(gateway)
    assert (await sent(gateway, headers, "/v1/device/list"))[0] == 200
    assert central.open_sessions == 1


async def test_a_code_that_is_sent_again_after_success_is_answered_alike(gateway, central):
    headers = await signed_in(gateway, username="manager", password="manager's")
    code = totp(SECRET, SystemClock().wall().micros // 1_000_000)
    for _ in range(2):
        assert await sent(gateway, headers, "/v1/auth/mfa", {"code": code}) == (
            200, {"success": True, "mfa_enabled": True}
        )  # fmt: skip
    assert (await sent(gateway, headers, "/v1/auth/mfa", {"code": "000000"}))[0] == 400


async def test_it_signs_in_for_some_days_without_central(gateway, central):
    await signed_in(gateway)
    await central.stop()
    status, answer = await login(gateway)
    assert (status, answer["role"]) == (200, {"name": "Porter", "permissions": ["can_view_devices"]})
    assert answer["user"] == {"username": "porter", "mfa_enabled": False}
    assert (await sent(gateway, {"SessionID": answer["session"]}, "/v1/device/list"))[0] == 200
    assert (await login(gateway, password="porter"))[0] == 404
    gateway.clock.pushed += 6.9 * DAY
    await signed_in(gateway)
    gateway.clock.pushed += 0.2 * DAY
    assert (await login(gateway))[0] == 404
    await central.start()
    await signed_in(gateway)


async def test_all_refused_names_get_one_answer_while_central_is_away_and_are_counted(gateway, central):
    """Otherwise the answer would tell strangers who has an account here."""
    await signed_in(gateway)
    await central.stop()
    answers = [
        (await login(gateway, name, "wrong"))
        for name in ("porter", "chief", "nobody-knows")  # central's and remembered, the site's, unknown
    ]
    assert {status for status, _ in answers} == {404}
    assert len({answer["error"] for _, answer in answers}) == 1
    statuses = [(await login(gateway, "nobody-knows", "wrong"))[0] for _ in range(8)]
    assert statuses[-1] == 429


async def test_a_second_factor_is_not_given_up_while_central_is_away(gateway, central):
    central.put_account(replace(MANAGER, mfa_secret=""))
    await signed_in(gateway, username="manager", password="manager's")
    central.put_account(MANAGER)
    await manager_in(gateway)
    await central.stop()
    for _ in range(8):  # more than may be wrong
        status, answer = await login(gateway, "manager", "manager's")
        assert (status, answer["session"]) == (503, None)
        assert "second factor" in answer["error"]
    assert (await login(gateway, "manager", "a guess"))[0] == 404
    assert (await login(gateway, "manager", "manager's"))[0] == 503
    await central.start()
    assert (await login(gateway, "manager", "manager's"))[0] == 200


async def test_guesses_are_throttled_of_an_account_with_a_second_factor_too(gateway, central):
    await manager_in(gateway)
    await central.stop()
    wrong = [(await login(gateway, "manager", f"guess {number}"))[0] for number in range(8)]
    assert wrong[0] == 404
    assert wrong[-1] == 429
    assert (await login(gateway, "manager", "manager's"))[0] == 429


async def test_an_account_whose_second_factor_was_given_up_is_let_in_again(gateway, central):
    await manager_in(gateway)
    central.put_account(replace(MANAGER, mfa_secret=""))
    await signed_in(gateway, username="manager", password="manager's")
    await central.stop()
    await signed_in(gateway, username="manager", password="manager's")


async def test_a_code_cannot_be_judged_while_central_is_away(gateway, central):
    headers = await signed_in(gateway, username="manager", password="manager's")
    await central.stop()
    for _ in range(12):
        status, refused = await sent(gateway, headers, "/v1/auth/mfa", {"token": "123456"})
        assert (status, refused["error"]) == (503, "central does not answer, and only it can judge the code")
    await central.start()
    code = totp(SECRET, SystemClock().wall().micros // 1_000_000)

    async def is_judged():
        return (await sent(gateway, headers, "/v1/auth/mfa", {"token": code}))[0] == 200

    await until(is_judged)


async def test_a_password_that_central_refuses_is_forgotten_at_once(gateway, central):
    headers = await signed_in(gateway)
    central.put_account(replace(GUARD, enabled=False))
    assert (await login(gateway))[0] == 404
    assert (await sent(gateway, headers, "/v1/device/list"))[0] == 500
    await central.stop()
    assert (await login(gateway))[0] == 404


@contextlib.asynccontextmanager
async def answering(central, status, error):
    """Have another far end answer everything at central's address."""

    async def refuse(_):
        return web.json_response({"success": False, "error": error}, status=status)

    await central.stop()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    async with on_loopback(app, port=central.port):
        yield


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "username: too long"),
        (403, "forbidden by the firewall"),
        (405, "method not allowed"),
        (500, "authentication required"),
        (500, "permission denied"),
        (200, "the service is closed"),
    ],
)
async def test_a_refusal_that_does_not_judge_the_password_forgets_and_counts_nothing(gateway, central, status, error):
    headers = await signed_in(gateway)
    async with answering(central, status, error):
        for _ in range(7):
            answered, answer = await login(gateway)
            assert answered == 502
            assert "without saying that the password is wrong" in answer["error"]
    assert (await sent(gateway, headers, "/v1/device/list"))[0] == 200
    await signed_in(gateway)


async def test_a_password_that_is_answered_with_401_is_forgotten(gateway, central):
    headers = await signed_in(gateway)
    async with answering(central, 401, "wrong password"):
        assert (await login(gateway))[0] == 404
    assert (await sent(gateway, headers, "/v1/device/list"))[0] == 500
    assert (await login(gateway))[0] == 404


async def test_not_found_of_a_proxy_before_central_leaves_the_account_to_memory(gateway, central):
    headers = await signed_in(gateway)
    async with answering(central, 404, "no route matched"):
        await signed_in(gateway)
        assert (await login(gateway, password="a guess"))[0] == 404
    assert (await sent(gateway, headers, "/v1/device/list"))[0] == 200


async def test_somebody_elses_wrong_password_has_nobody_forgotten(gateway, central):
    headers = await signed_in(gateway)
    assert (await login(gateway, password="a guess"))[0] == 404
    assert (await sent(gateway, headers, "/v1/device/list"))[0] == 200
    await central.stop()
    await signed_in(gateway)


async def test_a_changed_password_takes_the_place_of_the_old_one(gateway, central):
    await signed_in(gateway)
    central.put_account(replace(GUARD, password="another"))
    await signed_in(gateway, password="another")
    await central.stop()
    await signed_in(gateway, password="another")
    assert (await login(gateway))[0] == 404


@pytest.mark.parametrize("name", ["chief", "Chief", " CHIEF "])
async def test_a_password_of_the_site_never_goes_to_central(gateway, central, name):
    before = len(central.requests)
    status, _ = await login(gateway, name, "chief" if name == "chief" else "chief's")
    assert status == (200 if name == "chief" else 404)
    assert len(central.requests) == before


async def test_a_central_that_fails_is_as_good_as_away(gateway, central):
    await signed_in(gateway)
    central.faults = Faults(error="json", paths="/v1/auth/login")
    await signed_in(gateway)
    central.faults = Faults(error="portal", paths="/v1/auth/login")
    await signed_in(gateway)


async def test_a_slow_central_keeps_no_account_of_the_site_out(gateway, central):
    central.faults = Faults(latency_seconds=600)
    async with asyncio.TaskGroup() as group:
        storm = [group.create_task(login(gateway, f"nobody-{number}", "x")) for number in range(30)]
        await until(lambda: any(task.done() for task in storm))  # those beyond what is asked for at once are refused
        assert (await login(gateway, "chief", "chief"))[0] == 200
        assert not all(task.done() for task in storm)
        await central.stop()  # whoever still waits for it learns that it is away
    assert {task.result()[0] for task in storm} == {404, 503}


async def test_what_has_ended_here_ends_at_central(gateway, central):
    headers = await signed_in(gateway)
    assert (await sent(gateway, headers, "/v1/device/list"))[0] == 200
    assert central.open_sessions == 1
    gateway.stop()
    await until(lambda: not central.open_sessions)


async def test_after_a_restart_a_session_goes_on_without_central(open_gateway, central):
    client = CentralClient(url=central.url, account=GatewayAccount("gateway", "gateway"), clock=SystemClock())
    people = AccountsAtCentral(client=client, roles=RoleMap())
    async with open_gateway(people=people) as gateway:
        whole = await signed_in(gateway)
        half = await signed_in(gateway, username="manager", password="manager's")
    async with open_gateway(people=people) as gateway:
        assert (await sent(gateway, whole, "/v1/device/list"))[0] == 200
        status, refused = await sent(gateway, half, "/v1/auth/mfa", {"token": "123456"})
        assert (status, refused["error"]) == (400, "the gateway was started anew; sign in again")
        assert (await sent(gateway, half, "/v1/auth/mfa", {"token": "123456"}))[0] == 500
    assert central.open_sessions == 0
    await client.close()


@pytest.fixture
async def links(gateway):
    """Make a link to evidence as an account of central, and fetch it."""
    sample = FormData()
    sample.add_field("id", str(gateway.camera_event_id))
    sample.add_field("file", b"a dent", filename="dent.txt")
    headers = await gateway.sign_in()
    async with gateway.client.post(f"{gateway.url}{EVIDENCE}", data=sample, headers=headers) as answer:
        evidence_id = (await answer.json())["evidence"]["id"]

    async def make(headers):
        status, answer = await sent(gateway, headers, f"{EVIDENCE}/{evidence_id}/access")
        assert status == 200, answer
        return answer["access"]["url"]

    async def status_of(url):
        async with gateway.client.get(url) as answer:
            return answer.status

    return make, status_of


async def test_a_link_of_centrals_account_lasts_as_long_as_the_account_is_remembered(gateway, links):
    make, status_of = links
    headers = await signed_in(gateway, username="clerk", password="clerk's")
    url = await make(headers)
    assert (await sent(gateway, headers, "/v1/auth/logout"))[0] == 200
    assert await status_of(url) == 200
    await gateway.store.remembered_accounts.forget("porter", sessions=True)
    assert await status_of(url) == 200
    await gateway.store.remembered_accounts.forget("clerk", sessions=True)
    assert await status_of(url) == 404
    await signed_in(gateway, username="clerk", password="clerk's")
    assert await status_of(url) == 404, "a link that ended stays so"


async def test_a_link_of_centrals_account_ends_when_nobody_by_that_name_signs_in_for_long(gateway, links):
    make, status_of = links
    headers = await signed_in(gateway, username="clerk", password="clerk's")
    url = await make(headers)
    assert (await sent(gateway, headers, "/v1/auth/logout"))[0] == 200
    gateway.clock.pushed += 20 * DAY
    assert await status_of(url) == 404


async def test_a_link_of_centrals_account_is_not_kept_alive_by_an_account_of_the_site(
    gateway, links, cheap_hash, tmp_path
):
    make, status_of = links
    url = await make(await signed_in(gateway, username="clerk", password="clerk's"))
    added = AddAccount(username="clerk", password_hash=cheap_hash("x"), role="administrator")
    assert not (await ask(added, run_folder=tmp_path / "run")).error
    assert await status_of(url) == 404
