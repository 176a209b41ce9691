"""A line between the page and the gateway that tests cut, freeze and mend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest


class Line:
    """A line to the gateway that can be cut and mended, or frozen: then it takes everything and carries nothing."""

    def __init__(self, *, gateway) -> None:
        self._host, self._port = gateway.url.removeprefix("http://").split(":")
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.flowing = asyncio.Event()
        self.flowing.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._server
        self.flowing.set()
        self._server.close()
        for end in tuple(self._ends):
            end.transport.abort()
        await self._server.wait_closed()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host, int(self._port))
        ends = {writer, far_writer}
        self._ends |= ends

        async def one_way(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(65536):
                    await self.flowing.wait()
                    sink.write(data)
                    await sink.drain()
            except ConnectionError:
                pass
            finally:
                sink.close()

        await asyncio.gather(one_way(reader, far_writer), one_way(far_reader, writer))
        self._ends -= ends


@pytest.fixture
def line():
    @asynccontextmanager
    async def laid(gateway) -> AsyncIterator[Line]:
        front = Line(gateway=gateway)
        await front.mend()
        try:
            yield front
        finally:
            await front.cut()

    return laid
