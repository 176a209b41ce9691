"""Signing in and out, the three carriers, foreign pages, throttling and idle sessions."""

import asyncio
import threading

import pytest
from aiohttp import ClientSession, CookieJar
from argon2.exceptions import VerificationError

from gateway.domain.events import EventKind
from gateway.store import EventFilter, Session
from gateway.web.auth import accounts
from gateway.web.auth import accounts as accounts_module
from gateway.web.auth.accounts import Roster
from tests.gateway.web.setups.site import SITE


@pytest.fixture
def hashed(costly):
    return costly


async def login(gateway, body, **more):
    return await gateway.client.post(f"{gateway.url}/v1/auth/login", json=body, **more)


async def test_login_gives_a_session_and_a_guarded_cookie(gateway):
    answer = await login(gateway, {"username": "guard", "password": "guard", "device": "till"})
    body = await answer.json()
    assert answer.status == 200
    assert body["success"] is True
    assert body["user"] == {"username": "guard", "mfa_enabled": False}
    assert body["role"]["permissions"] == ["can_view_devices", "can_view_events"]
    assert body["servers"] == []
    assert len(body["session"]) == 43
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"session={body['session']};")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


async def test_only_the_hash_of_a_token_is_on_disk(gateway, tmp_path):
    headers = await gateway.sign_in()
    token = headers["SessionID"].encode()
    assert all(token not in path.read_bytes() for path in tmp_path.glob("*.db*"))


async def test_each_carrier_carries(gateway):
    token = (await gateway.sign_in())["SessionID"]
    gateway.client.cookie_jar.clear()
    for headers in (
        {"SessionID": token},
        {"Authorization": f"Bearer {token}"},
        {"Authorization": f"bearer {token}"},
        {"Cookie": f"session={token}"},
        {"Cookie": f"session={token}", "Sec-Fetch-Site": "same-origin"},
        {"Cookie": f"session={token}", "Sec-Fetch-Site": "none"},
        {"Cookie": f"session={token}", "Origin": gateway.url},
    ):
        async with gateway.client.post(f"{gateway.url}/v1/device/list", json={}, headers=headers) as answer:
            assert answer.status == 200, headers


async def test_each_carrier_carries_writes(gateway):
    token = (await gateway.sign_in())["SessionID"]
    gateway.client.cookie_jar.clear()
    for headers in ({"SessionID": token}, {"Authorization": f"Bearer {token}"}, {"Cookie": f"session={token}"}):
        async with gateway.client.post(f"{gateway.url}/v1/device/open", json={"id": 101}, headers=headers) as answer:
            assert answer.status == 200, headers
    assert len(gateway.board.commands) == 3


async def test_a_client_with_a_cookie_jar_signs_in_writes_and_signs_out(gateway):
    gateway.client.cookie_jar.clear()
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        for path, body in (
            ("/v1/auth/login", {"username": "chief", "password": "chief"}),
            ("/v1/device/open", {"id": 101}),
            ("/v1/auth/logout", {}),
        ):
            async with client.post(gateway.url + path, json=body) as answer:
                assert answer.status == 200, path
        async with client.post(f"{gateway.url}/v1/device/open", json={"id": 101}) as answer:
            assert answer.status == 500


async def test_a_foreign_page_cannot_use_the_cookie(gateway):
    token = (await gateway.sign_in())["SessionID"]
    gateway.client.cookie_jar.clear()
    for origin in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": gateway.url},
        {"Sec-Fetch-Site": "cross-site", "X-Requested-With": "page"},
    ):
        async with gateway.client.post(
            f"{gateway.url}/v1/device/open", json={"id": 101}, headers={"Cookie": f"session={token}", **origin}
        ) as answer:
            assert answer.status == 403
            assert (await answer.json())["success"] is False
    assert gateway.board.commands == []
    answer = await login(gateway, {"username": "chief", "password": "chief"}, headers={"Origin": "http://evil.example"})
    assert answer.status == 403


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_logout_ends_the_session_for_good(gateway, method):
    headers = await gateway.sign_in()
    status, answer = await gateway.call("/v1/auth/logout", {} if method == "POST" else None, method=method)
    assert (status, answer) == (200, {"success": True, "user": None, "error": None})
    async with gateway.client.post(f"{gateway.url}/v1/device/list", json={}, headers=headers) as again:
        assert again.status == 500


@pytest.mark.parametrize(
    "body", [{}, {"username": "chief"}, {"username": 7, "password": "x"}, {"username": "chief", "password": ["x"]}, []]
)
async def test_a_login_that_is_no_login(gateway, body):
    answer = await login(gateway, body)
    assert answer.status == 400
    assert (await answer.json())["success"] is False


async def test_refused_logins_look_alike_and_are_recorded(gateway):
    answers = []
    for body in ({"username": "chief", "password": "hunter2"}, {"username": "hunter3", "password": "chief"}):
        answer = await login(gateway, body)
        answers.append((answer.status, await answer.json()))
        assert "Set-Cookie" not in answer.headers
    refused = (404, {"success": False, "session": None, "error": "username or password not accepted"})
    assert answers == [refused, refused]
    _, listed = await gateway.call("/v1/event/list", {"types": [EventKind.SIGN_IN_REFUSED]})
    assert listed["count"] == 2
    assert "hunter" not in str(listed)
    assert "chief" in listed["events"][1]["description"]


async def test_refused_logins_are_slowed_down(gateway):
    statuses = [(await login(gateway, {"username": "chief", "password": f"{number}"})).status for number in range(7)]
    assert statuses == [404] * 6 + [429]
    right = await login(gateway, {"username": "chief", "password": "chief"})
    assert right.status == 429
    assert 1 <= int(right.headers["Retry-After"]) <= 60
    assert (await login(gateway, {"username": "guard", "password": "guard"})).status == 200
    gateway.clock.pushed += 3
    assert (await login(gateway, {"username": "chief", "password": "chief"})).status == 200


async def test_tries_side_by_side_are_slowed_down_like_those_in_turn(gateway):
    tries = (login(gateway, {"username": "chief", "password": f"{number}"}) for number in range(16))
    statuses = sorted(answer.status for answer in await asyncio.gather(*tries))
    assert statuses == [404] * 6 + [429] * 10


async def test_right_passwords_side_by_side_are_all_let_in(gateway):
    tries = (login(gateway, {"username": "chief", "password": "chief"}) for _ in range(16))
    assert {answer.status for answer in await asyncio.gather(*tries)} == {200}


async def test_an_idle_session_ends_and_a_used_one_does_not(gateway):
    headers = await gateway.sign_in()
    for _ in range(3):
        gateway.clock.pushed += 50 * 60
        status, _ = await gateway.call("/v1/device/list", {})
        assert status == 200
    gateway.clock.pushed += 61 * 60
    async with gateway.client.post(f"{gateway.url}/v1/device/list", json={}, headers=headers) as answer:
        assert (answer.status, (await answer.json())["error"]) == (500, "authentication required")


async def test_an_idle_session_ends_by_its_last_use_and_not_by_what_the_disk_last_heard(open_gateway):
    api = SITE.api.model_copy(update={"session_idle_minutes": 1})
    async with open_gateway(site=SITE.model_copy(update={"api": api})) as gateway:
        headers = await gateway.sign_in()
        for pushed, status in ((59, 200), (59, 200), (30, 200), (59, 200), (61, 500)):
            gateway.clock.pushed += pushed
            async with gateway.client.post(f"{gateway.url}/v1/device/list", json={}, headers=headers) as answer:
                assert answer.status == status, pushed


@pytest.mark.parametrize("step", [400 * 86_400, -400 * 86_400])
async def test_setting_the_clock_ends_no_session_and_keeps_none_alive(gateway, step):
    headers = await gateway.sign_in()
    gateway.clock.stepped = step
    gateway.clock.pushed += 50 * 60
    assert (await gateway.call("/v1/device/list", {}))[0] == 200
    gateway.clock.pushed += 61 * 60
    async with gateway.client.post(f"{gateway.url}/v1/device/list", json={}, headers=headers) as answer:
        assert (answer.status, (await answer.json())["error"]) == (500, "authentication required")


async def test_a_session_of_a_clock_that_stood_in_the_future_ends_with_the_next_start(gateway):
    longest = 24 * 3_600_000_000
    now = gateway.clock.wall().micros
    for token, ahead, status in (("soon", longest // 2, 200), ("far", 2 * longest, 500)):
        await gateway.store.sessions.add(token, Session("chief", now + ahead, now + ahead, now + ahead))
        async with gateway.client.post(
            f"{gateway.url}/v1/device/list", json={}, headers={"SessionID": token}
        ) as answer:
            assert answer.status == status


async def test_mfa_of_an_account_without_it(gateway):
    for body, sentence in (
        ({"token": "123456"}, "this account has no second factor"),
        ({"code": "123456"}, "this account has no second factor"),
        ({}, "token: is missing"),
    ):
        status, answer = await gateway.call("/v1/auth/mfa", body)
        assert (status, answer) == (400, {"success": False, "mfa_enabled": None, "error": sentence})


async def test_a_name_that_is_none_costs_as_much_as_a_wrong_password(gateway, monkeypatch):
    judged = []
    verify = accounts_module.verify_password

    def counted(password_hash, password):
        judged.append(password_hash)
        return verify(password_hash, password)

    monkeypatch.setattr(accounts_module, "verify_password", counted)
    for name in ("chief", "nobody-here"):
        assert (await login(gateway, {"username": name, "password": "wrong"})).status == 404
    assert len(judged) == 2
    costs = {hashed.partition("$m=")[2].partition("$")[0] for hashed in judged}
    assert costs == {"19456,t=2,p=1"}


async def test_a_storm_of_sign_ins_leaves_the_loop_free(gateway, monkeypatch):
    """Lanes share the loop with whoever guesses passwords: each hash takes a processor for long."""
    statuses, threads = [], set()
    verify = accounts_module.verify_password

    def judged(password_hash, password):
        threads.add(threading.current_thread())
        return verify(password_hash, password)

    monkeypatch.setattr(accounts_module, "verify_password", judged)

    async def guess(number):
        statuses.append((await login(gateway, {"username": f"guess-{number}", "password": "x"})).status)

    async with asyncio.TaskGroup() as group:
        for number in range(60):
            group.create_task(guess(number))
    assert set(statuses) <= {404, 429, 503}
    assert threads
    assert threading.main_thread() not in threads


def test_the_hash_of_a_name_that_is_none_has_todays_cost():
    assert not accounts.HASHER.check_needs_rehash(accounts.NOBODYS_HASH)


async def test_a_password_that_is_guessed_first_is_known_from_a_sign_in(gateway, cheap_hash):
    accounts = gateway.store.accounts
    hashes = {"tech": cheap_hash("tech2024"), "ada": cheap_hash("seven grey herons")}
    for name, password_hash in hashes.items():
        await accounts.add(name, password_hash=password_hash, role="viewer", now=1)
    guessable = {}
    roster = Roster(accounts=accounts, guessable=guessable)
    assert await roster.verified("tech", "tech2023") is None
    assert guessable == {}
    assert await roster.verified("ada", "seven grey herons")
    assert await roster.verified("tech", "tech2024")
    assert guessable == {"tech": hashes["tech"]}


class ShortOfMemory:
    """A hasher of a machine that has no memory left."""

    def verify(self, password_hash, password):
        raise VerificationError("Memory allocation error")


async def test_a_password_that_cannot_be_checked_is_no_wrong_one(gateway, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(accounts, "HASHER", ShortOfMemory())
        for _ in range(8):  # more than are free
            async with await login(gateway, {"username": "chief", "password": "chief"}) as answer:
                assert answer.status == 503
                assert "cannot check passwords now" in (await answer.json())["error"]
                assert answer.headers["Retry-After"] == "5"
    async with await login(gateway, {"username": "chief", "password": "chief"}) as answer:
        assert answer.status == 200
    refused = EventFilter(types=(int(EventKind.SIGN_IN_REFUSED),))
    assert (await gateway.store.events.page(refused)).events == ()
