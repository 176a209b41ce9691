"""Links that are given out name the public address where the site has one, whatever the request says."""

from __future__ import annotations

import asyncio

import pytest

from gateway.site.api_section import ApiSection
from tests.gateway.web.setups.site import SITE

PUBLIC = "https://gate.example.com"
LIES = {"Host": "192.0.2.66", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "gopher"}


@pytest.fixture
async def proxied(open_gateway):
    api = SITE.api.model_dump() | {"public_url": f"{PUBLIC}/"}
    async with open_gateway(site=SITE.model_copy(update={"api": ApiSection.model_validate(api)})) as gateway:
        yield gateway


async def asked(gateway, path, body=None, *, key=False, **headers):
    carried = {"Authorization": f"Bearer {gateway.key}"} if key else await gateway.sign_in()
    method = "GET" if body is None else "POST"
    async with gateway.client.request(method, gateway.url + path, json=body, headers={**carried, **headers}) as answer:
        return answer.status, await answer.json()


async def test_a_stream_is_where_the_site_file_says(proxied):
    _, answer = await asked(proxied, "/v1/camera", {"id": 201}, **LIES)
    assert answer["camera"]["stream"].startswith(f"{PUBLIC}/v1/camera/whep/201?token=")
    _, answer = await asked(proxied, "/v1/camera/list", {}, **LIES)
    assert answer["cameras"][0]["stream"].startswith(f"{PUBLIC}/")


async def test_programs_are_told_the_same(proxied):
    status, stream = await proxied.program("GET", "/api/v1/video/stream/201")
    assert (status, stream["stream_url"].split("?")[0]) == (200, f"{PUBLIC}/v1/camera/whep/201")


async def test_without_one_it_is_as_the_request_says(gateway):
    _, answer = await asked(gateway, "/v1/camera", {"id": 201}, Host="192.0.2.7:8480")
    assert answer["camera"]["stream"].startswith("http://192.0.2.7:8480/v1/camera/whep/201")


async def test_a_target_with_a_host_of_its_own_names_no_links(gateway):
    session = (await gateway.sign_in())["SessionID"]
    head = f"Host: localhost\r\nSessionID: {session}\r\nConnection: close\r\nContent-Length: 10\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
    writer.write(b"POST http://evil.example/v1/camera HTTP/1.1\r\n" + head.encode() + b'{"id":201}')
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    assert b'"stream":"http://localhost/v1/camera/whep/201?token=' in answer
    assert b"evil" not in answer


@pytest.mark.parametrize("origin", ["http://[", "null", "://", "http://\\"])
async def test_an_origin_that_is_no_address_is_a_foreign_one(gateway, origin):
    wanted = {"username": "chief", "password": "chief"}
    async with gateway.client.post(f"{gateway.url}/v1/auth/login", json=wanted, headers={"Origin": origin}) as answer:
        assert answer.status == 403


async def test_the_page_at_the_public_address_is_the_gateways_own(proxied):
    token = (await proxied.sign_in())["SessionID"]
    proxied.client.cookie_jar.clear()
    for origin, status in ((PUBLIC, 200), ("https://evil.example", 403), ("http://gate.example.com", 403)):
        headers = {"Cookie": f"session={token}", "Origin": origin}
        async with proxied.client.post(f"{proxied.url}/v1/device/open", json={"id": 101}, headers=headers) as answer:
            assert answer.status == status, origin


@pytest.mark.parametrize(("host", "secure"), [("gate.example.com", True), ("192.0.2.7:8480", False)])
async def test_the_cookie_of_the_public_address_goes_over_tls_alone(proxied, host, secure):
    wanted = {"username": "chief", "password": "chief"}
    async with proxied.client.post(f"{proxied.url}/v1/auth/login", json=wanted, headers={"Host": host}) as answer:
        assert answer.status == 200
        assert ("Secure" in answer.headers["Set-Cookie"]) is secure
