"""The worker's own HTTP, heard by aiohttp's client and by hand."""

import asyncio
from contextlib import asynccontextmanager
from http import HTTPStatus

import aiohttp
import pytest

from gateway.camera_worker.local_http import Response, serve_connection


@asynccontextmanager
async def served(path, answer):
    async def connected(reader, writer):
        await serve_connection(reader, writer, answer)

    server = await asyncio.start_unix_server(connected, path)
    try:
        yield str(path)
    finally:
        server.close()


async def echo(request):
    return Response(HTTPStatus.OK, b"%r" % ((request.method, request.path, request.body),))


async def said(path, data: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(data)
    writer.write_eof()
    async with asyncio.timeout(10):
        told = await reader.read()
    writer.close()
    return told


async def test_many_requests_on_one_connection_each_with_its_parts(tmp_path):
    async with (
        served(tmp_path / "s", echo) as path,
        aiohttp.ClientSession(base_url="http://w", connector=aiohttp.UnixConnector(path, limit=1)) as client,
    ):
        for method, place, body, parts in (
            ("PUT", "/cameras", b"{}" * 100_000, ("cameras",)),
            ("DELETE", "/views/1-a%2Fb%20c", None, ("views", "1-a/b c")),
            ("GET", "/reports?x=1", None, ("reports",)),
        ):
            async with client.request(method, place, data=body) as answer:
                assert answer.status == 200
                assert await answer.text() == repr((method, parts, body or b""))


async def test_lines_come_as_they_are_told_and_end_the_connection(tmp_path):
    told = asyncio.Event()
    closed = asyncio.Event()

    async def lines():
        try:
            yield b"one\n"
            await told.wait()
            yield b"two\n"
        finally:
            closed.set()

    async def answer(_request):
        return Response(HTTPStatus.OK, lines=lines())

    async with (
        served(tmp_path / "s", answer) as path,
        aiohttp.ClientSession(base_url="http://w", connector=aiohttp.UnixConnector(path)) as client,
        client.get("/reports") as response,
    ):
        assert await response.content.readline() == b"one\n"
        told.set()
        assert await response.content.read() == b"two\n"
        async with asyncio.timeout(10):
            await closed.wait()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET\r\n\r\n", 400),
        (b"PUT /pins HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"PUT /pins HTTP/1.1\r\nContent-Length: 4000001\r\n\r\n", 413),
        (b"PUT /pins HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET /pins HTT", None),
        (b"PUT /pins HTTP/1.1\r\nContent-Length: 9\r\n\r\nshort", None),
        (b"", None),
    ],
)
async def test_what_is_no_request_ends_its_connection_alone(tmp_path, data, status):
    async with served(tmp_path / "s", echo) as path:
        told = await said(path, data)
        assert told.startswith(b"" if status is None else b"HTTP/1.1 %d " % status)
        assert bool(told) is (status is not None)
        assert (await said(path, b"GET /a HTTP/1.1\r\n\r\n")).endswith(b"('GET', ('a',), b'')")


async def test_a_fault_in_one_request_is_told_and_the_connection_goes_on(tmp_path):
    async def answer(request):
        if request.path == ("bad",):
            raise KeyError("x")
        return Response(HTTPStatus.NO_CONTENT)

    async with served(tmp_path / "s", answer) as path:
        told = await said(path, b"GET /bad HTTP/1.1\r\n\r\nGET /good HTTP/1.1\r\n\r\n")
    assert [line for line in told.split(b"\r\n") if line.startswith(b"HTTP")] == [
        b"HTTP/1.1 500 Internal Server Error",
        b"HTTP/1.1 204 No Content",
    ]
