"""Sign-in by an identity provider: without a session at the gateway, and into one of the gateway's own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, CookieJar, FormData, web

from gateway.central.client.accounts import AccountsAtCentral, RoleMap
from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.central.relay import CentralRelay
from gateway.runtime.clock import SystemClock
from simulation.far_ends.http_device import on_loopback

LOOKS = {"name": "Guard", "permissions": ["can_view_devices", "can_view_companies"]}
TOKEN = "of-central-alone"
MFA_TOKEN = "of-central-pending"


class ProviderCentral:
    """A central that signs people in by an identity provider, and knows whom it has let in."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.open = {TOKEN}
        self.url = ""

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_routes(
            [
                web.get("/", self._alive),
                web.get("/.well-known/{what}", self._alive),
                web.get("/v1/sso/saml/metadata", self._metadata),
                web.get("/v1/sso/saml/login", self._page),
                web.post("/v1/sso/authorize", self._authorize),
                web.post("/v1/sso/callback", self._callback),
                web.post("/v1/auth/oauth2", self._callback),
                web.post("/v1/sso/saml/exchange", self._callback),
                web.post("/v1/sso/saml/acs", self._acs),
                web.post("/v1/auth/mfa", self._mfa),
                web.post("/v1/auth/logout", self._logout),
                web.post("/v1/companies/list", self._companies),
            ]
        )
        return app

    async def _alive(self, request):
        return web.json_response({"success": True, "issuer": "https://central.example"})

    async def _metadata(self, request):
        return web.Response(text="<EntityDescriptor/>", content_type="application/samlmetadata+xml")

    async def _page(self, request):
        return web.Response(text="<form method=post></form>", content_type="text/html")

    async def _authorize(self, request):
        answer = web.Response(status=302, headers={"Location": "https://idp.example/authorize?state=7"})
        answer.set_cookie("sso_state", "7", domain="central.example", httponly=True)
        return answer

    async def _callback(self, request):
        self.heard.append(request.headers.get("Cookie", ""))
        body = await request.json()
        if body.get("code") == "half":
            return web.json_response(
                {"success": True, "session": MFA_TOKEN, "user": {"mfa_enabled": True}, "role": LOOKS}
            )
        if body.get("code") != "right":
            return web.json_response({"success": False, "session": None, "error": "the code is not known"}, status=400)
        user = {"username": body.get("as", "ada@idp.example"), "mfa_enabled": False}
        return web.json_response(
            {"success": True, "session": TOKEN, "user": user, "role": LOOKS, "servers": [], "next": "/x"}
        )

    async def _acs(self, request):
        assert (await request.post())["SAMLResponse"] == "signed"
        answer = web.Response(status=302, headers={"Location": "/status/"})
        answer.set_cookie("session", TOKEN, httponly=True)
        return answer

    async def _mfa(self, request):
        right = request.headers["SessionID"] == MFA_TOKEN and (await request.json())["token"] == "123456"
        return web.json_response({"success": right, "mfa_enabled": True}, status=200 if right else 400)

    async def _logout(self, request):
        self.open.discard(request.headers["SessionID"])
        return web.json_response({"success": True})

    async def _companies(self, request):
        known = request.headers.get("SessionID") in self.open
        return web.json_response({"success": known, "companies": []}, status=200 if known else 500)


@pytest.fixture
async def central():
    far = ProviderCentral()
    async with on_loopback(far.app()) as port:
        far.url = f"http://127.0.0.1:{port}"
        yield far


@pytest.fixture
async def gateway(open_gateway, central):
    client = CentralClient(url=central.url, account=GatewayAccount("gateway", "gateway"), clock=SystemClock())
    relay = CentralRelay(client=client, url=central.url)
    running = asyncio.get_running_loop().create_task(relay.run())
    async with open_gateway(relay=relay, people=AccountsAtCentral(client=client, roles=RoleMap())) as opened:
        yield opened
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await client.close()


@asynccontextmanager
async def browser():
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        yield client


async def sent(client, gateway, path, body=None, *, method="POST", **more):
    async with client.request(method, gateway.url + path, json=body, allow_redirects=False, **more) as answer:
        return answer.status, answer.headers, await answer.read()


@pytest.mark.parametrize("path", ["/v1/sso/callback", "/v1/auth/oauth2", "/v1/sso/saml/exchange"])
async def test_it_ends_in_a_session_of_the_gateway(gateway, central, path):
    async with browser() as client:
        async with client.post(gateway.url + path, json={"code": "right"}) as answer:
            told = await answer.json()
            assert (answer.status, told["next"], told["role"]) == (200, "/x", LOOKS)
        token = told["session"]
        assert token != TOKEN
        assert TOKEN not in str(told)
        for headers in ({"SessionID": token}, {}):  # the second by the cookie
            assert (await sent(client, gateway, "/v1/device/list", {}, headers=headers))[0] == 200
            assert (await sent(client, gateway, "/v1/companies/list", {}, headers=headers))[0] == 200
            assert (await sent(client, gateway, "/v1/device/open", {"id": 101}, headers=headers))[0] == 500
        async with client.get(f"{gateway.url}/status/session") as answer:
            assert "ada@idp.example" in await answer.text()
        assert (await sent(client, gateway, "/v1/auth/logout", {}))[0] == 200
        assert central.open == set()
        assert (await sent(client, gateway, "/v1/device/list", {}, headers={"SessionID": token}))[0] == 500


async def test_the_way_there_and_back_keeps_the_state_of_central(gateway, central):
    async with browser() as client:
        status, headers, _ = await sent(client, gateway, "/v1/sso/authorize", {"provider": "idp"})
        assert (status, headers["Location"]) == (302, "https://idp.example/authorize?state=7")
        assert "sso_state=7" in headers["Set-Cookie"]
        assert "central.example" not in headers["Set-Cookie"]
        assert (await sent(client, gateway, "/v1/sso/callback", {"code": "right"}))[0] == 200
        assert (await sent(client, gateway, "/v1/sso/callback", {"code": "right"}))[0] == 200
    assert central.heard == ["sso_state=7", "sso_state=7"]  # and never a session of the gateway's


async def test_an_assertion_that_a_browser_hands_over_signs_in_by_cookie(gateway):
    async with browser() as client:
        form = FormData({"SAMLResponse": "signed"})
        foreign = {"Origin": "https://idp.example", "Sec-Fetch-Site": "cross-site"}
        async with client.post(
            f"{gateway.url}/v1/sso/saml/acs", data=form, headers=foreign, allow_redirects=False
        ) as answer:
            assert (answer.status, answer.headers["Location"]) == (302, "/status/")
            assert TOKEN not in answer.headers["Set-Cookie"]
            assert "SameSite=Strict" in answer.headers["Set-Cookie"]
        assert (await sent(client, gateway, "/v1/auth/logout", {}))[0] == 200


FOREIGN = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}


@pytest.mark.parametrize("more", [{}, {"Sec-Fetch-Mode": "navigate"}], ids=["fetch", "form"])
@pytest.mark.parametrize(
    "path", ["/v1/sso/callback", "/v1/auth/oauth2", "/v1/sso/saml/exchange", "/v1/sso/authorize", "/v1/sso/saml/login"]
)
async def test_a_foreign_page_signs_nobody_in(gateway, central, path, more):
    async with browser() as client:
        status, headers, _ = await sent(client, gateway, path, {"code": "right"}, headers=FOREIGN | more)
        assert (status, "Set-Cookie" in headers) == (403, False)
    assert central.heard == []


@pytest.mark.parametrize(
    "more", [{}, {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}], ids=["fetch", "in a frame"]
)
async def test_an_assertion_of_a_foreign_page_counts_only_where_the_window_goes_there(gateway, more):
    async with browser() as client:
        form = FormData({"SAMLResponse": "signed"})
        async with client.post(f"{gateway.url}/v1/sso/saml/acs", data=form, headers=FOREIGN | more) as answer:
            assert (answer.status, "Set-Cookie" in answer.headers) == (403, False)
        status, _, _ = await sent(client, gateway, "/v1/sso/saml/login", None, method="GET", headers=FOREIGN | more)
        assert status == 403
        visit = FOREIGN | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        status, _, _ = await sent(client, gateway, "/v1/sso/saml/login", None, method="GET", headers=visit)
        assert status == 200


@pytest.mark.parametrize("name", ["chief", " Chief", "CHIEF\u200b", "\uff43hief", "key:till", "Local:root"])
async def test_an_account_of_central_with_the_name_of_one_of_the_site_is_refused(gateway, name):
    async with browser() as client:
        status, headers, body = await sent(client, gateway, "/v1/auth/oauth2", {"code": "right", "as": name})
        assert (status, "Set-Cookie" in headers) == (403, False)
        assert b"an account of its own by that name" in body


async def test_a_second_factor_is_proven_after_it(gateway):
    async with browser() as client:
        assert (await sent(client, gateway, "/v1/auth/oauth2", {"code": "half"}))[0] == 200
        assert (await sent(client, gateway, "/v1/device/list", {}))[0] == 500
        assert (await sent(client, gateway, "/v1/auth/mfa", {"token": "123456"}))[0] == 200
        assert (await sent(client, gateway, "/v1/device/list", {}))[0] == 200


async def test_what_central_refuses_signs_nobody_in(gateway):
    async with browser() as client:
        status, headers, body = await sent(client, gateway, "/v1/auth/oauth2", {"code": "wrong"})
        assert (status, "Set-Cookie" in headers) == (400, False)
        assert b"the code is not known" in body
        assert (await sent(client, gateway, "/v1/device/list", {}))[0] == 500


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("/.well-known/oauth-authorization-server", b"issuer"),
        ("/.well-known/oauth-protected-resource", b"issuer"),
        ("/v1/sso/saml/metadata", b"EntityDescriptor"),
        ("/v1/sso/saml/login", b"<form"),
    ],
)
async def test_discovery_needs_no_session(gateway, path, holds):
    async with browser() as client:
        status, _, body = await sent(client, gateway, path, method="GET")
    assert status == 200
    assert holds in body


async def test_providers_are_administered_with_a_session_alone(gateway):
    async with browser() as client:
        assert (await sent(client, gateway, "/v1/sso/admin/providers", {}))[0] == 500


async def test_a_slow_body_takes_no_place_on_the_way_to_central(gateway):
    port = int(gateway.url.rpartition(":")[2])
    slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
    for _, writer in slow:
        writer.write(b"POST /v1/auth/oauth2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    async with browser() as client:
        assert (await sent(client, gateway, "/v1/auth/oauth2", {"code": "right"}))[0] == 200
    for _, writer in slow:
        writer.close()
