"""A disk that takes long to commit is told, and is well again though nothing is recorded any more."""

from __future__ import annotations

import threading

from waiting import until

from gateway.store.engine import database as database_module


async def test_commits_that_take_long_are_told_until_they_are_quick(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(database_module, "TEND_SECONDS", 0.02)
    disk = threading.Event()
    async with opened(tmp_path) as store:
        for seconds in (0.0, 0.0, 0.52, 0.52, 0.52):
            assert store.slow_seconds == 0.0
            await store.database.write(lambda _, seconds=seconds: disk.wait(seconds))
        assert store.slow_seconds == 0.5
        await until(lambda: store.slow_seconds == 0.0, within=50)
