"""A count that goes up whenever something was recorded, to wait on: pages follow it, the outbox wakes by it."""

from __future__ import annotations

import asyncio


class Changes:
    """A version and those who wait for it to move on. A slow waiter misses steps, never the last one."""

    def __init__(self) -> None:
        self.version = 0
        self._moved = asyncio.Event()

    def bump(self) -> None:
        """Note a change and wake those who wait for one."""
        self.version += 1
        self._moved.set()
        self._moved = asyncio.Event()

    async def beyond(self, version: int, *, within: float) -> int:
        """Wait until the version is above `version`, at most `within` seconds; returns the version then."""
        if self.version <= version:
            try:
                async with asyncio.timeout(within):
                    await self._moved.wait()
            except TimeoutError:
                pass
        return self.version
