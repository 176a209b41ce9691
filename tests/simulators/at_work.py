"""Coroutines that run for as long as a context lasts, a store at work, and the simulated central."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager

from gateway.runtime.clock import SystemClock
from gateway.store import Store
from simulation.far_ends.central import Central, CentralAccount, seed_site


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


@asynccontextmanager
async def serving_central(
    *accounts: CentralAccount,
    devices: Mapping[int, str] | None = None,
    cameras: Mapping[int, str] | None = None,
    cards: int = 0,
) -> AsyncIterator[Central]:
    """The simulated central on a free port, with these records. Without accounts, it knows the gateway's alone."""
    clock = SystemClock()
    central = Central(clock=clock, accounts=accounts or (CentralAccount("gateway", "right horse"),))
    seed_site(central.tables, now=clock.wall(), devices=devices or {}, cameras=cameras or {}, cards=cards)
    await central.start()
    try:
        yield central
    finally:
        await central.stop()
