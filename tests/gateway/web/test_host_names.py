"""Only requests for the gateway's own names and addresses are answered."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import pytest

from gateway.site.api_section import ApiSection
from tests.gateway.web.setups.site import SITE

MACHINE = socket.gethostname()
OWN = ["127.0.0.1", "[::1]:8480", "192.0.2.7:8480", "localhost:8480", "LOCALHOST.", MACHINE, f"{MACHINE}.local:8480"]
NAMED = ["gate.example.com", "Gate.Example.com.:8443", "till.local"]
FOREIGN = [
    "evil.example",
    "evil.example:8480",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "gate.example.com.evil",
]


@pytest.fixture
async def named(open_gateway):
    api = SITE.api.model_dump() | {"host_names": ["till.local"], "public_url": "https://gate.example.com"}
    async with open_gateway(site=SITE.model_copy(update={"api": ApiSection.model_validate(api)})) as gateway:
        yield gateway


async def said(gateway, path, host):
    async with gateway.client.get(gateway.url + path, headers={"Host": host}) as answer:
        return answer.status, await answer.json(content_type=None)


@pytest.mark.parametrize("host", OWN + NAMED)
async def test_the_gateways_own_names_and_any_address_are_answered(named, host):
    assert (await said(named, "/health/live", host))[0] == 200


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", ["/health/live", "/openapi.json", "/status/", "/api/v1/devices", "/no/such/path"])
async def test_another_name_is_refused_with_the_remedy(named, host, path):
    status, answer = await said(named, path, host)
    assert status == 421
    assert "host_names" in str(answer)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("head", ["", "Host: \r\n", "Host: localhost\r\nHost: evil.example\r\n"])
async def test_a_request_names_one_host(named, head, version):
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(named.url).port)
    writer.write(f"GET /health/live HTTP/{version}\r\n{head}Connection: close\r\n\r\n".encode())
    assert (await reader.readline()).split()[1] == b"400"
    writer.close()
    await writer.wait_closed()


NO_HOSTS = [
    "localhost:8480@evil.example",
    "127.0.0.1:x@evil.example",
    "localhost:port",
    "127.0.0.1:99999",
    "[::1].evil.example",
    "[::1",
    "localhost/evil.example",
]


@pytest.mark.parametrize("host", NO_HOSTS)
async def test_what_is_no_host_and_port_is_refused(named, host):
    status, answer = await said(named, "/health/live", host)
    assert (status, answer["success"]) == (400, False)
    assert "Host" in answer["error"]
