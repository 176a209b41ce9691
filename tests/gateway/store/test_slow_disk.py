"""A disk that takes long to commit is told, and is well again though nothing is recorded any more."""

from __future__ import annotations

import asyncio
import threading


async def test_commits_that_take_long_are_told_until_they_are_quick(store):
    disk = threading.Event()

    async def until(condition) -> None:
        async with asyncio.timeout(50):
            while not condition():
                await asyncio.sleep(0.05)

    for _ in range(5):
        assert store.slow_seconds == 0.0
        await store.database.write(lambda _: disk.wait(0.7))
    assert store.slow_seconds == 0.5
    await until(lambda: store.slow_seconds == 0.0)
