"""People are told while the backlog for central is nearly full."""

from __future__ import annotations

import pytest
from at_work import opened_store

from gateway.central.runner import BacklogWarning
from gateway.domain.events import EventKind
from gateway.domain.writes import DEVICE_CONFIG
from gateway.runtime.clock import SystemClock


@pytest.fixture
async def store(tmp_path):
    async with opened_store(tmp_path, sends=True, backlog_bytes=100_000) as store:
        yield store


async def told(store):
    return [event for event in await store.events.latest(limit=50) if event.type == EventKind.BACKLOG_NEARLY_FULL]


async def test_a_backlog_beyond_four_fifths_is_told_once_and_shown_until_it_is_smaller(store):
    news = BacklogWarning(backlog=store.backlog, journal=store.journal, clock=SystemClock())
    for number, shown in ((1, ""), (2, "bring central back, or raise backlog_gigabytes")):
        await store.pending_writes.hold(DEVICE_CONFIG, number, {"description": "x" * 41_000}, now=1, sends=True)
        await news.look()
        await news.look()
        assert shown in str(news.notice)
        assert bool(news.notice) == bool(shown)
        assert len(await told(store)) == number - 1
    for row in await store.outbox.due(now=1, limit=1):
        await store.outbox.delivered(row, central_id=None)
    await news.look()
    assert news.notice == ""
    await store.pending_writes.hold(DEVICE_CONFIG, 3, {"description": "x" * 41_000}, now=1, sends=True)
    await news.look()
    assert len(await told(store)) == 2
