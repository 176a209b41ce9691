"""Limits on writes queued while central is offline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.domain.errors import QuotaExceeded
from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import Evidence, KeptAs
from gateway.domain.passages import Moment
from gateway.domain.writes import (
    CAMERA_CREATE,
    CARD_DELETE,
    CARD_LIFECYCLE,
    CARD_UPDATE,
    DEVICE_CONFIG,
    DEVICE_CREATE,
    ENTRY_CREATE,
)
from gateway.store import Entry, OutboxDelivery, Store
from gateway.store.outbox import backlog_quota
from gateway.store.outbox.backlog_quota import MOST_MADE

HAPPENED = Event(kind=EventKind.VEHICLE_PASSED, date_at=1, clock_trusted=True, text="", lane_id="entry")
SEEN = Moment(201, "Vehicle passed", "", 0, 2, clock_trusted=True)


async def held(store, operation, body, *, times=1, first=1, **more):
    """Hold writes of as many records; whatever is refused is raised."""
    holds = (store.pending_writes.hold(operation, first + n, body, now=1, sends=True, **more) for n in range(times))
    await asyncio.gather(*holds)


async def held_after_sending(store, operation, record_id, body):
    """Hold a write that was sent for its caller and may have reached central."""
    row = await store.pending_writes.ask(operation, record_id, body, now=1)
    assert await store.outbox.begin(row)
    await store.pending_writes.hold(operation, record_id, body, now=1, sends=True, asked=row)
    store.pending_writes.let_go(row)


@pytest.mark.long("twelve thousand writes, one by one")
async def test_more_than_ten_thousand_small_writes_are_taken_and_go_up_in_order(store):
    for first in range(0, 12_000, 500):
        await held(store, CARD_UPDATE, {"note": "x"}, first=first + 1, times=500)
    gone: list[int] = []
    while rows := await store.outbox.due(now=1, limit=500):
        gone += [row.id for row in rows]
        await store.outbox.delivered_together([OutboxDelivery(row, None, None) for row in rows], now=1)
    assert gone == sorted(gone)
    assert len(gone) == 12_000
    assert (await store.backlog.usage()).bytes == 0


@pytest.fixture
async def small(tmp_path) -> AsyncIterator[Store]:
    """A store whose backlog may take 100,000 bytes."""
    store = Store(folder=tmp_path, site_name="North", sends=True, backlog_bytes=100_000)
    await store.open()
    yield store
    await store.close()


async def test_a_full_backlog_refuses_direct_writes_and_names_the_remedy(small):
    with pytest.raises(QuotaExceeded, match=r"bring central back, or raise backlog_gigabytes in the site file"):
        await held(small, CARD_UPDATE, {"note": "x" * 1_000}, times=1_000)
    books = await small.outbox.books()
    with pytest.raises(QuotaExceeded):
        await small.pending_writes.hold(ENTRY_CREATE, None, {"device_id": 1}, now=1, sends=True)
    with pytest.raises(QuotaExceeded):
        await small.backlog.admit()
    assert await small.outbox.books() == books
    # What takes a right away, and what central may have already, is held all the same.
    for operation, body in (
        (CARD_LIFECYCLE, {"status": "lost"}),
        (CARD_UPDATE, {"status": "blocked"}),
        (CARD_DELETE, {}),
    ):
        await held(small, operation, body, first=50_000)
    await held_after_sending(small, CARD_UPDATE, 50_000, {"note": "x"})
    await small.pending_writes.hold(CARD_UPDATE, 1, {"note": "y"}, now=1, sends=False)  # nor what waits for nobody
    # The site's own records are never refused, and they count.
    before = (await small.backlog.usage()).bytes
    await small.journal.record(Entry(events=(HAPPENED,), moments=(SEEN,)))
    assert (await small.backlog.usage()).bytes > before
    while (await small.backlog.usage()).bytes >= 100_000:
        for row in await small.outbox.due(now=1, limit=10):
            await small.outbox.delivered(row, central_id=None)
    await held(small, CARD_UPDATE, {"note": "x"})


async def test_the_backlog_is_counted_as_it_waits_now(small):
    told = Event(kind=EventKind.RECORD_RELEASED, date_at=1, clock_trusted=True, text="x")
    await held(small, DEVICE_CONFIG, {"description": "x" * 110_000, "location": "North"})
    with pytest.raises(QuotaExceeded):
        await small.backlog.admit()
    (row,) = await small.outbox.due(now=1)
    await small.outbox.park(row, error="too long")
    await held_after_sending(small, DEVICE_CONFIG, 1, {"description": "y"})  # takes its field out of the refused one
    await small.backlog.admit()
    for length, fits in ((120_000, False), (10, True)):
        refused = await small.refused.get(row.id)
        await small.refused.edit(row.id, {"location": "z" * length}, told, key=refused.key)
        await small.outbox.park(row, error="too long")
        if fits:
            await small.backlog.admit()
        else:
            with pytest.raises(QuotaExceeded):
                await small.backlog.admit()
    counted = await small.database.read(
        lambda connection: connection.execute("SELECT sum(bytes) FROM outbox_size").fetchone()
    )
    assert (await small.backlog.usage()).bytes == counted[0]


async def test_the_sum_is_checked_against_the_rows_at_the_start(opened, tmp_path):
    async with opened(tmp_path) as store:
        await held(store, CARD_UPDATE, {"note": "x"}, times=10)
        right = (await store.backlog.usage()).bytes
        await store.database.write(lambda connection: connection.execute("UPDATE backlog SET bytes = 5"))
    async with opened(tmp_path) as store:
        assert (await store.backlog.usage()).bytes == right


async def test_files_that_wait_count_with_their_size(small):
    recorded = await small.journal.record(Entry(events=(HAPPENED,), moments=(SEEN,)))
    (place,) = recorded.camera_event_ids
    for number in "12":
        draft = Evidence(
            id=0, camera_event_id=place, name="a.txt", description="", kept_as=KeptAs.INCIDENT, media_type="text/plain",
            size=60_000, sha256=number * 64, file=number, created_at=1, clock_trusted=True, username="ada",
        )  # fmt: skip
        await small.evidence.add(draft, event=HAPPENED, most=9)
    assert (await small.backlog.usage()).bytes > 120_000
    with pytest.raises(QuotaExceeded):
        await small.backlog.admit()
    row = await small.evidence.due(now=1)
    await small.evidence.sent(row, central_id=None)
    await small.backlog.admit()


async def test_so_many_changes_of_one_record_wait_and_no_more(store, monkeypatch):
    monkeypatch.setattr(backlog_quota, "MOST_OF_RECORD", 3)
    for _ in range(3):
        await held(store, CARD_UPDATE, {"note": "x"})
    with pytest.raises(QuotaExceeded, match=r"3 changes of this record wait"):
        await held(store, CARD_UPDATE, {"note": "x"})
    await held(store, CARD_LIFECYCLE, {"status": "lost"})
    await held(store, CARD_UPDATE, {"note": "x"}, first=2)


@pytest.mark.parametrize("operation", [DEVICE_CREATE, CAMERA_CREATE])
async def test_so_many_records_are_made_here(store, operation):
    made = (store.pending_writes.hold(operation, None, {"name": "x"}, now=1, sends=False) for _ in range(MOST_MADE))
    await asyncio.gather(*made)
    with pytest.raises(QuotaExceeded, match=f"1,000 {operation.kind}s already that only this site has"):
        await store.pending_writes.hold(operation, None, {"name": "x"}, now=1, sends=False)
