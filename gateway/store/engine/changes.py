"""A version that rises with every recorded change, to wait for: status pages and the outbox sender do."""

from __future__ import annotations

import asyncio


class Changes:
    """A version and its waiters. A slow waiter may miss versions in between, never the latest one."""

    def __init__(self) -> None:
        self.version = 0
        self._moved = asyncio.Event()

    def bump(self) -> None:
        """Raise the version and wake all waiters."""
        self.version += 1
        self._moved.set()
        self._moved = asyncio.Event()

    async def beyond(self, version: int, *, within: float) -> int:
        """Wait until the version is above `version`, for at most `within` seconds. Return the version by then."""
        if self.version <= version:
            try:
                async with asyncio.timeout(within):
                    await self._moved.wait()
            except TimeoutError:
                pass
        return self.version
