"""A far end that says what it is told to, byte for byte, and keeps what it heard: for relaying at its worst."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ALIVE = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{"success":true}'


def said(raw: bytes) -> Script:
    """Answer with these bytes once a request's head and its body of known length are there."""

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return script


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Take everything and never answer."""
    await reader.read(-1)


@dataclass
class ScriptedCentral:
    """Listens on a free port.

    Attributes:
        heard: every connection's bytes, up to where the script took over.
        serving: the task of every open connection. Without it, a script that waits for ever would be collected.
    """

    script: Script
    url: str = ""
    heard: list[bytes] = field(default_factory=list)
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio's server runs each connection in a task"
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next((int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")), 0)
            self.heard.append(head)
            if head.startswith(b"GET / "):
                writer.write(ALIVE)
                return
            if length < 100_000:
                self.heard[-1] += await reader.readexactly(length)
            await self.script(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def scripted_central(script: Script) -> AsyncIterator[ScriptedCentral]:
    """One that is listening."""
    central = ScriptedCentral(script)
    server = await asyncio.start_server(central.serve, "127.0.0.1", 0)
    central.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield central
    finally:
        server.close()
        left = list(central.serving)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
