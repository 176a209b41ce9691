"""A TCP relay that can be cut, or hold back what is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from free_ports import free_port

_SEGMENT, _HEADERS = 1400, 52


class Relay:
    """A TCP relay to a port that can be cut, or hold back what is sent, as a bad network does.

    `carried` are the bytes on an IP network both ways: what was sent, and headers for each segment and its
    acknowledgement, and for the beginning and the end of each connection.
    """

    def __init__(self, far: int) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._far = far
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._passes = asyncio.Event()
        self._passes.set()
        self.carried = 0

    async def join(self) -> None:
        """Take connections."""
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)

    async def cut(self) -> None:
        """Refuse connections, and break those that are open."""
        if self._server is not None:
            self._server.close()
            for writer in tuple(self._open):
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None

    def hold(self) -> None:
        """Pass nothing on, and close nothing."""
        self._passes.clear()

    def let_go(self) -> None:
        """Pass on what was held back, and what comes."""
        self._passes.set()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._far)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, far_writer}
        self.carried += 7 * _HEADERS
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, far_writer))
                group.create_task(self._pump(far_reader, writer))
        finally:
            for one in (writer, far_writer):
                one.transport.abort()
                self._open.discard(one)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._passes.wait()
                self.carried += len(data) + 2 * _HEADERS * -(-len(data) // _SEGMENT)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def relay_to(far: int | str) -> AsyncIterator[Relay]:
    """A relay that takes connections while the context lasts. `far`: the port, or the address that ends with it."""
    relay = Relay(int(str(far).rpartition(":")[2]))
    await relay.join()
    try:
        yield relay
    finally:
        relay.let_go()
        await relay.cut()
