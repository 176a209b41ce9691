"""Coroutines that run for as long as a context lasts, and a store at work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

from gateway.store import Store


@asynccontextmanager
async def running(*bodies: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run these while the context lasts; what one of them raises ends it."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(body) for body in bodies]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


@asynccontextmanager
async def opened_store(folder, **options) -> AsyncIterator[Store]:
    """A store whose writers run, and which is closed cleanly at the end. `options` are the store's."""
    store = Store(folder=folder, **{"site_name": "North", "sends": False, **options})
    await store.open()
    try:
        async with running(store.run()):
            yield store
    finally:
        await store.close()
