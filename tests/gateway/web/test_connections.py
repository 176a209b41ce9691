"""Connections that ask nothing, or slowly, keep nobody else out, and whoever has no place is told so."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from aiohttp import ClientSession, TCPConnector

from drivers.listening import places

HALF_A_HEAD = b"POST /v1/auth/login HTTP/1.1\r\nHost: localhost\r\n"
HALF_A_BODY = b"POST /v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n{"
MANY = tuple(f"127.0.1.{number}" for number in range(1, 9))
"""Addresses of which none holds so many connections that it loses one to another at once."""


@pytest.fixture(autouse=True)
def strangers(monkeypatch):
    """The gateway takes 127.0.0.1 alone for this machine: the other addresses of the loopback are strangers'."""
    monkeypatch.setattr("gateway.web.app.is_this_machine", lambda host: host == "127.0.0.1")


class Stranger:
    """A client with an address of its own, that takes a new connection for each request."""

    def __init__(self, url: str, address: str) -> None:
        self._url = url
        self._address = address

    async def status(self) -> tuple[int, str | None]:
        """The status of a request, and when to try again."""
        connector = TCPConnector(local_addr=(self._address, 0), force_close=True)
        async with ClientSession(connector=connector) as client, client.get(f"{self._url}/health/live") as answer:
            await answer.read()
            return answer.status, answer.headers.get("Retry-After")


class Attack:
    """Addresses that hold as many connections as they get, each with the beginning of a request."""

    def __init__(self, url: str, addresses: tuple[str, ...], sent: bytes) -> None:
        self.port = int(url.rpartition(":")[2])
        self._addresses = addresses
        self._sent = sent
        self._lines: list[asyncio.StreamWriter] = []

    async def hold(self, each: int = 128) -> None:
        """Take so many connections for each address."""
        for address in self._addresses:
            for _ in range(each):
                await self._take(address)

    async def again(self) -> None:
        """Take anew whatever was closed, until cancelled."""
        while True:
            for address in self._addresses:
                with contextlib.suppress(ConnectionError):
                    await self._take(address)
            await asyncio.sleep(0.005)  # the pace of the attack

    def end(self) -> None:
        for writer in self._lines:
            writer.transport.abort()

    async def _take(self, address: str) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        writer.write(self._sent)
        self._lines.append(writer)


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["silent", "half a head", "half a body"])
async def test_two_addresses_with_half_open_requests_keep_nobody_out(gateway, sent, monkeypatch):
    monkeypatch.setattr(places, "SLOW_SECONDS", 600)
    attack = Attack(gateway.url, ("127.0.0.2", "127.0.0.3"), sent)
    await attack.hold()
    storm = asyncio.get_running_loop().create_task(attack.again())
    try:
        assert (await Stranger(gateway.url, "127.0.0.1").status())[0] == 200
        monkeypatch.setattr(places, "SLOW_SECONDS", 1.0)
        await asyncio.sleep(places.SLOW_SECONDS)  # the half-open requests count as slow from then on
        for _ in range(20):
            status, again = await Stranger(gateway.url, "127.0.0.4").status()
            assert status == 200 or (status == 503 and int(again) > 0)
            assert (await Stranger(gateway.url, "127.0.0.1").status())[0] == 200
    finally:
        storm.cancel()
        await asyncio.gather(storm, return_exceptions=True)
        attack.end()


async def test_an_address_from_which_somebody_signed_in_keeps_its_places(gateway, monkeypatch):
    monkeypatch.setattr(places, "SLOW_SECONDS", 60)
    headers = await gateway.sign_in()
    connector = TCPConnector(local_addr=("127.0.0.5", 0))
    listing = f"{gateway.url}/v1/device/list"
    async with (
        ClientSession(connector=connector) as client,
        client.post(listing, json={}, headers=headers) as answer,
    ):
        assert answer.status == 200
    attack = Attack(gateway.url, MANY, HALF_A_HEAD)
    await attack.hold(24)
    try:
        assert await Stranger(gateway.url, "127.0.0.4").status() == (503, "2")
        assert (await Stranger(gateway.url, "127.0.0.5").status())[0] == 200
    finally:
        attack.end()


async def test_who_has_no_place_is_told_so_and_not_cut_off(gateway, monkeypatch):
    monkeypatch.setattr(places, "SLOW_SECONDS", 60)
    attack = Attack(gateway.url, MANY, HALF_A_HEAD)
    await attack.hold(24)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", attack.port, local_addr=("127.0.0.4", 0))
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
    finally:
        attack.end()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 2\r\n" in answer
    assert answer.endswith(b'{"success": false, "error": "too many connections; try again"}')


async def test_the_slowest_head_goes_first_and_hears_why(gateway):
    port = int(gateway.url.rpartition(":")[2])
    reader, first = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
    first.write(HALF_A_HEAD)
    await asyncio.sleep(places.SLOW_SECONDS)  # the first counts as slow from then on
    attack = Attack(gateway.url, ("127.0.0.2", "127.0.0.3"), HALF_A_HEAD)
    await attack.hold(100)
    try:
        assert (await asyncio.wait_for(reader.read(), 30)).startswith(b"HTTP/1.1 503 ")
    finally:
        first.close()
        attack.end()


async def test_a_head_that_does_not_come_in_time_is_told(gateway, monkeypatch):
    monkeypatch.setattr(places, "HEAD_SECONDS", 0.5)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
    writer.write(HALF_A_HEAD)
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_kept_connection_lives_as_long_as_its_header_says(gateway, monkeypatch):
    monkeypatch.setattr(places, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(places, "LOOK_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
    for pause in (1.5, 0):
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert b"\r\nKeep-Alive: timeout=75\r\n" in head
        length = next(line for line in head.splitlines() if line.lower().startswith(b"content-length"))
        await reader.readexactly(int(length.split(b":")[1]))
        await asyncio.sleep(pause)  # longer than a head may take
    gateway.clock.pushed += 76
    writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    await reader.read(1000)
    gateway.clock.pushed += 78
    assert await asyncio.wait_for(reader.read(), 30) == b""
    writer.close()


async def test_half_a_head_on_a_kept_connection_has_no_more_time_than_a_first_one(gateway, monkeypatch):
    monkeypatch.setattr(places, "HEAD_SECONDS", 0.5)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
    writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    writer.write(HALF_A_HEAD)
    assert b"HTTP/1.1 408 " in await asyncio.wait_for(reader.read(), 30)
    writer.close()


async def test_an_answer_that_closes_says_nothing_of_keeping(gateway):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
    writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert b"Keep-Alive" not in await asyncio.wait_for(reader.read(), 30)
    writer.close()


async def test_every_503_says_when_to_try_again(gateway):
    gateway.recording.show(condition="unreachable")
    headers = await gateway.sign_in()
    async with gateway.client.get(f"{gateway.url}/v1/camera/thumbnail/201", headers=headers) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
