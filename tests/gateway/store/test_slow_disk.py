"""A disk that takes long to commit is told, and is well again though nothing is recorded any more."""

from __future__ import annotations

import threading

from waiting import until

from gateway.store.engine import database as database_module


async def test_commits_that_take_long_are_told_until_they_are_quick(store, monkeypatch):
    monkeypatch.setattr(database_module, "TEND_SECONDS", 0.02)
    disk = threading.Event()

    for _ in range(4):  # with the commit of the opening five
        assert store.slow_seconds == 0.0
        await store.database.write(lambda _: disk.wait(0.52))
    assert store.slow_seconds == 0.5
    await until(lambda: store.slow_seconds == 0.0, within=50)
