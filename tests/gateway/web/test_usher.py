"""Connections that ask nothing do not keep others out."""

from __future__ import annotations

import asyncio

import pytest

from gateway.web import usher


@pytest.fixture
def short_patience(monkeypatch):
    monkeypatch.setattr(usher, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(usher, "_LOOK_SECONDS", 0.1)


async def test_idle_connections_are_shown_out_and_others_are_served(short_patience, house):
    host, port = house.url.removeprefix("http://").split(":")
    lines = [await asyncio.open_connection(host, int(port)) for _ in range(usher.MOST_PER_ADDRESS + 20)]
    for _, writer in lines:
        writer.write(b"POST /v1/device/list HTTP/1.1\r\nHost: x\r\n")
    async with asyncio.timeout(30):
        for reader, _ in lines:
            try:
                while await reader.read(100):
                    pass
            except ConnectionError:
                pass
    for _, writer in lines:
        writer.close()
    status, answer = await house.call("/v1/device/list", {})
    assert status == 200
    assert answer["success"] is True


async def test_a_connection_that_asks_again_and_again_is_kept(short_patience, house):
    host, port = house.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for _ in range(6):
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        length = next(
            int(line.split(b":")[1]) for line in head.splitlines() if line.lower().startswith(b"content-length")
        )
        await reader.readexactly(length)
        await asyncio.sleep(0.2)
    writer.close()
