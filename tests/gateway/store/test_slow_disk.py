"""A disk that takes long to commit is told, and is well again though nothing is recorded any more."""

from __future__ import annotations

import threading

from waiting import until


async def test_commits_that_take_long_are_told_until_they_are_quick(store):
    disk = threading.Event()

    for _ in range(5):
        assert store.slow_seconds == 0.0
        await store.database.write(lambda _: disk.wait(0.7))
    assert store.slow_seconds == 0.5
    await until(lambda: store.slow_seconds == 0.0, within=50)
