"""Fifty open pages without a browser, for `test_open_pages`: `python open_pages.py RUN_FOLDER PAGES CAMERA`.

Each follows the stream of changes as a page does, and fetches a camera's still every 10 s. Reads "on" and "off" from
its input, a word a line, and answers "open" once all pages have their first snapshot, or "closed".
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout, UnixConnector

from gateway.runtime.unix_sockets import INTERFACE_SOCKET

STILL_SECONDS = 10.0
BASE = "http://localhost"


async def main(run: Path, pages: int, camera: str) -> None:
    """Open and close the pages as they are asked for."""
    connector = UnixConnector(path=str(run / INTERFACE_SOCKET), limit=0)
    async with ClientSession(connector=connector, timeout=ClientTimeout(total=None)) as client:
        while await word() == "on":
            shown = [asyncio.Event() for _ in range(pages)]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(page(client, number, camera, event)) for number, event in enumerate(shown)]
                for event in shown:
                    await event.wait()
                print("open", flush=True)
                await word()
                for task in tasks:
                    task.cancel()
            print("closed", flush=True)


async def word() -> str:
    """Return the next word of the input, "" at its end."""
    return (await asyncio.to_thread(sys.stdin.readline)).strip()


async def page(client: ClientSession, number: int, camera: str, shown: asyncio.Event) -> None:
    """Follow the site as one open page does."""
    async with asyncio.TaskGroup() as group:
        group.create_task(stills(client, number, camera))
        async with client.get(f"{BASE}/status/live") as stream:
            async for line in stream.content:
                if line.startswith(b"event: snapshot"):
                    shown.set()
        raise ClientError("the stream ended")


async def stills(client: ClientSession, number: int, camera: str) -> None:
    """Fetch the newest picture again and again, the pages one after another."""
    await asyncio.sleep(number * STILL_SECONDS / 50)
    while True:
        async with client.get(f"{BASE}/v1/camera/thumbnail/{camera}") as picture:
            await picture.read()
        await asyncio.sleep(STILL_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
