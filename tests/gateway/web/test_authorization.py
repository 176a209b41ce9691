"""Permissions: every operation of the catalogue by no session, a wrong one, a pending one, and the right one.

Made from the catalogue, so that an operation cannot be added without being tried. Sessions are real ones, of accounts
at central that have just what the operation needs, or everything but that.
"""

from __future__ import annotations

import re
from itertools import product

import pytest
from aiohttp import ClientResponse

from gateway.web.catalogue import OPERATIONS
from gateway.web.operation import Operation, Rule
from gateway.web.relayed import OPERATIONS as RELAYED
from simulation.far_ends.central import CentralAccount

LEGACY = "/api/"  # its keys, statuses and rules are of another kind, and have tests of their own
CATALOGUE = tuple(item for item in (*OPERATIONS, *RELAYED) if not (item.by_key or item.path.startswith(LEGACY)))
HELD = tuple(item for item in CATALOGUE if item.rule.session)
SHUT = tuple(item for item in CATALOGUE if item.rule.groups)
EVERY_PERMISSION = frozenset(name for item in CATALOGUE for group in item.rule.groups for name in group)
GROUPS = sorted({group for item in SHUT for group in item.rule.groups})
OF_SETTINGS = (
    "/status/webhook/list",
    "/status/outbox/list",
    "/status/outbox/books",
    "/status/sync",
    "/v1/sso/admin/providers",
)
"""Reads that need a right to edit."""
ENOUGH = sorted({names for item in CATALOGUE for names in product(*item.rule.groups)})


def username(names: tuple[str, ...]) -> str:
    return f"has {' '.join(names)}"


def lacking(group: tuple[str, ...]) -> str:
    return f"lacks {' '.join(group)}"


@pytest.fixture
def central_accounts() -> tuple[CentralAccount, ...]:
    """One for each way to have enough, and one for each group that may be lacking. Each has its name for a password."""
    wanted = {username(names): frozenset(names) for names in ENOUGH}
    wanted |= {lacking(group): EVERY_PERMISSION - set(group) for group in GROUPS}
    wanted |= {"nothing at all": frozenset({"can_do_nothing_here"})}
    return (
        CentralAccount("gateway", "gateway"),
        CentralAccount("boss", "boss"),
        CentralAccount("careful", "careful", mfa_secret="JBSWY3DPEHPK3PXP"),
        *(CentralAccount(name, name, permissions) for name, permissions in wanted.items()),
    )


def address(item: Operation) -> str:
    return re.sub(r"\{[^}]*\}", "1", item.path)


async def told(answer: ClientResponse) -> dict[str, object]:
    """The body, if it is JSON; a stream is not waited for."""
    return await answer.json() if answer.content_type == "application/json" else {}


async def ask(gateway, item: Operation, headers: dict[str, str]) -> tuple[int, dict[str, object]]:
    sent = {} if item.method == "GET" else {"json": {}}
    async with gateway.client.request(item.method, gateway.url + address(item), headers=headers, **sent) as answer:
        return answer.status, await told(answer)


def refused(item: Operation, answer: dict[str, object], *, because: str) -> bool:
    envelope = {"success": False, "error": answer.get("error")} | ({item.resource: None} if item.resource else {})
    return answer == envelope and str(answer["error"]).startswith(because)


def shown(item: Operation) -> str:
    return f"{item.method} {item.path}"


async def test_without_a_session_nothing_that_needs_one_is_done(relayed, far_central):
    async with relayed() as gateway:
        for carrier in ({}, {"SessionID": "x" * 43}, {"Authorization": "Bearer y"}, {"Cookie": "session=z"}):
            for item in HELD:
                status, answer = await ask(gateway, item, carrier)
                assert status == 500, shown(item)
                assert refused(item, answer, because="authentication required"), (shown(item), answer)
        assert far_central.requests == far_central.requests.__class__()


async def test_a_pending_second_factor_is_as_good_as_no_session(relayed, far_central):
    async with relayed() as gateway:
        for item in HELD:
            headers = await gateway.sign_in("careful")
            status, answer = await ask(gateway, item, headers)
            if item.rule.whole:
                assert status == 500, shown(item)
                assert refused(item, answer, because="authentication required"), (shown(item), answer)
            else:
                assert not str(answer.get("error")).startswith("authentication required"), shown(item)
                gateway.tokens.clear()  # it may have been signed out
        assert not far_central.requests


async def test_everything_but_one_permission_is_not_enough(relayed, far_central):
    async with relayed() as gateway:
        for item in SHUT:
            for group in item.rule.groups:
                headers = await gateway.sign_in(lacking(group))
                status, answer = await ask(gateway, item, headers)
                assert status == 500, shown(item)
                assert refused(item, answer, because="permission denied"), (shown(item), answer)
                assert all(name in answer["error"] for name in group), (shown(item), answer)
        assert not far_central.requests


async def test_just_the_right_permission_is_enough(relayed):
    async with relayed() as gateway:
        for item in HELD:
            for names in product(*item.rule.groups):
                user = "boss" if item.rule.everything else username(names) if names else "nothing at all"
                status, answer = await ask(gateway, item, await gateway.sign_in(user))
                error = str(answer.get("error"))
                assert not error.startswith(("authentication required", "permission denied")), (shown(item), answer)
                assert status != 403, (shown(item), answer)
                if not item.rule.whole:
                    gateway.tokens.clear()


async def test_what_needs_every_permission_refuses_whoever_lacks_one(relayed):
    wanted = [item for item in HELD if item.rule.everything]
    assert wanted
    async with relayed() as gateway:
        for group in GROUPS:
            headers = await gateway.sign_in(lacking(group))
            for item in wanted:
                _, answer = await ask(gateway, item, headers)
                assert answer["error"] == "permission denied: this needs every permission", shown(item)


async def test_what_needs_no_session_asks_for_none(relayed):
    async with relayed() as gateway:
        for item in CATALOGUE:
            if item.rule.session or "/whep/" in item.path:  # a viewer without session has a token, or is refused
                continue
            status, answer = await ask(gateway, item, {})
            assert not str(answer.get("error")).startswith("authentication required"), shown(item)
            assert status in (200, 400, 404), (shown(item), status)


async def test_a_foreign_page_can_write_nothing_with_the_cookie(relayed, far_central):
    async with relayed() as gateway:
        token = (await gateway.sign_in("boss"))["SessionID"]
        cookie = {"Cookie": f"session={token}"}
        foreign = (
            {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"{gateway.url}1"},
            {"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}, {"Sec-Fetch-Site": "same-site"},
        )  # fmt: skip
        for item in CATALOGUE:
            if not item.writes:
                continue
            for sign in foreign if item.rule.session else ():
                async with gateway.client.request(
                    item.method, gateway.url + address(item), data=b"{}", headers={**cookie, **sign}
                ) as answer:
                    assert answer.status == 403, (shown(item), sign)
                    assert refused(item, await told(answer), because="another site's page")
        assert not far_central.requests
        for sign in ({}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": gateway.url}):
            async with gateway.client.post(
                f"{gateway.url}/v1/companies/list", json={}, headers={**cookie, **sign}
            ) as answer:
                assert answer.status == 200


async def test_the_cookie_alone_is_enough_to_read(relayed):
    async with relayed() as gateway:
        token = (await gateway.sign_in("boss"))["SessionID"]
        for item in CATALOGUE:
            if not item.reads:
                continue
            status, answer = await ask(gateway, item, {"Cookie": f"session={token}"})
            assert status not in (403, 500), (shown(item), answer)
            status, answer = await ask(
                gateway,
                item,
                {"Cookie": f"session={token}", "Sec-Fetch-Site": "cross-site", "Origin": "http://evil.ex"},
            )
            assert status == 403, shown(item)
            assert refused(item, answer, because="another site's page"), (shown(item), answer)


def test_nothing_counts_as_a_read_that_needs_more_than_to_view():
    reads = [item for item in CATALOGUE if item.reads]
    assert {item.method for item in reads} == {"POST"}
    for item in reads:
        for name in (name for group in item.rule.groups for name in group):
            viewed = name.startswith("can_view_") or item.path in OF_SETTINGS
            assert viewed, (shown(item), name)
    listed = [item for item in CATALOGUE if item.method == "POST" and item.path.endswith(("/list", "/excel"))]
    assert all(item.reads for item in listed)


def test_every_rule_was_tried():
    assert len(HELD) + sum(not item.rule.session for item in CATALOGUE) == len(CATALOGUE)
    assert {item.rule for item in HELD if not item.rule.groups and item.rule.confirmed} <= {
        Rule(), Rule(whole=False), Rule(everything=True)
    }  # fmt: skip
