"""The server of a worker's socket, asked over a real one: by aiohttp as the gateway asks, and byte by byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import aiohttp
import pytest
from waiting import until

from gateway.camera_worker.server import HttpServer, Request, Response
from gateway.runtime.unix_sockets import listen


class Answering:
    """Answers with what was asked; `/pieces` with pieces, `/fault` with an error after the first."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self.readers = 0

    async def answer(self, request: Request) -> Response:
        if request.path == "/pieces":
            return Response(status=200, body=self._pieces())
        if request.path == "/nothing":
            return Response()
        return Response(status=200, body=f"{request.method} {request.path} ".encode() + request.body)

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        self.readers += 1
        try:
            while piece := await self.pieces.get():
                if piece == b"fault":
                    raise RuntimeError(piece)
                yield piece
        finally:
            self.readers -= 1


@pytest.fixture
async def served(tmp_path):
    path, answering = tmp_path / "worker.sock", Answering()
    async with asyncio.TaskGroup() as tasks:
        server = HttpServer(answer=answering.answer, tasks=tasks)
        await server.serve(listen(path))
        yield path, answering
        server.end()


@pytest.fixture
async def client(served):
    async with aiohttp.ClientSession("http://worker", connector=aiohttp.UnixConnector(str(served[0]))) as session:
        yield session


async def _told(path, data: bytes) -> bytes:
    """Return everything that the server says to these bytes until it ends the connection."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(data)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


async def test_requests_with_and_without_a_body_are_answered(client):
    for body in (b"", b"x" * 300_000, b"{}"):
        async with client.put("/cameras", data=body) as answer:
            assert (answer.status, await answer.read()) == (200, b"PUT /cameras " + body)
    async with client.delete("/nothing") as answer:
        assert (answer.status, await answer.read()) == (204, b"")


async def test_a_connection_takes_one_request_after_the_other(served):
    told = await _told(
        served[0], b"PUT /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nxGET /b HTTP/1.1\r\nConnection: close\r\n\r\n"
    )
    assert told.count(b"HTTP/1.1 200 OK") == 2
    assert b"PUT /a x" in told
    assert told.endswith(b"GET /b ")


async def test_a_request_that_comes_in_single_bytes_is_answered(served):
    reader, writer = await asyncio.open_unix_connection(str(served[0]))
    for byte in b"POST /clips HTTP/1.1\r\nConnection: close\r\ncontent-length:  2\r\n\r\nab":
        writer.write(bytes([byte]))
        await writer.drain()
    assert (await reader.read()).endswith(b"\r\nContent-Length: 14\r\n\r\nPOST /clips ab")
    writer.close()


async def test_pieces_come_as_they_are_made_and_end_the_answer(served, client):
    _, answering = served
    async with client.get("/pieces") as answer:
        for piece in (b"a\n", b"b" * 100_000 + b"\n"):
            answering.pieces.put_nowait(piece)
            assert await answer.content.readexactly(len(piece)) == piece
        answering.pieces.put_nowait(b"")
        assert await answer.read() == b""
    await until(lambda: answering.readers == 0)


async def test_an_answer_that_breaks_off_is_no_whole_answer_and_harms_no_other(served, client):
    answering = served[1]
    async with client.get("/pieces") as answer:
        answering.pieces.put_nowait(b"a\n")
        answering.pieces.put_nowait(b"fault")
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
    async with client.get("/health") as answer:
        assert answer.status == 200


async def test_pieces_for_a_reader_that_left_are_made_no_more(served):
    path, answering = served
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(b"GET /pieces HTTP/1.1\r\n\r\n")
    answering.pieces.put_nowait(b"a\n")
    await reader.readuntil(b"a\n")
    writer.close()
    answering.pieces.put_nowait(b"b\n")
    answering.pieces.put_nowait(b"c\n")
    answering.pieces.put_nowait(b"d\n")
    await until(lambda: answering.readers == 0)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nContent-Length: \xb2\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nContent-Length: 4000001\r\n\r\n", 413),
        (b"PUT / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 413),
        (b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 431),
    ],
)
async def test_an_invalid_request_is_refused_with_the_reason_and_ends_the_connection(served, data, status):
    told = await _told(served[0], data)
    assert told.startswith(f"HTTP/1.1 {status} ".encode()), told
    assert b'{"error": "' in told
