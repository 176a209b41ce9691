"""A real `nats-server` with JetStream, in a temporary store on a free port; it can be killed and started again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from free_ports import free_port
from own_server import OwnServer


class NatsServer(OwnServer):
    """The server. `config` are further lines of its configuration; `streams`: whether it keeps any."""

    def __init__(self, folder: Path, config: str = "", *, streams: bool = True) -> None:
        # Its greeting comes after JetStream has recovered its streams.
        super().__init__(folder, "nats-server", greeting=b"INFO")
        self.url = f"nats://127.0.0.1:{self.port}"
        self._jetstream = f'jetstream {{ store_dir: "{folder / "jetstream"}" }}\n' if streams else ""
        self.configure(config)

    def configure(self, config: str) -> None:
        """Write the configuration, which holds from the next start or `reload` on."""
        jetstream = "" if "store_dir" in config else self._jetstream
        self._config.write_text(f'listen: "127.0.0.1:{self.port}"\n{jetstream}{config}\n')


@contextmanager
def nats_server(folder: Path, config: str = "", *, streams: bool = True) -> Iterator[NatsServer]:
    """A server that runs while the context lasts."""
    server = NatsServer(folder, config, streams=streams)
    server.start()
    try:
        yield server
    finally:
        server.kill()


_SEGMENT, _HEADERS = 1400, 52


class Relay:
    """A TCP relay to a port that can be cut, or hold back what is sent, as a bad network does.

    `carried` are the bytes on an IP network both ways: what was sent, and headers for each segment and its
    acknowledgement, and for the beginning and the end of each connection.
    """

    def __init__(self, far: int) -> None:
        self.port = free_port()
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
            writer.transport.abort()
