"""How much is held of what is asked for while central is away."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.errors import NoRoom
from gateway.domain.events import Event, EventKind
from gateway.domain.writes import (
    CAMERA_CREATE,
    CARD_DELETE,
    CARD_LIFECYCLE,
    CARD_UPDATE,
    DEVICE_CONFIG,
    DEVICE_CREATE,
    ENTRY_CREATE,
)
from gateway.store import room
from gateway.store.room import MOST_MADE, MOST_WAITING, MOST_WAITING_BYTES


async def held(store, operation, body, *, times=1, first=1, **more):
    """Hold writes of as many records; whatever is refused is raised."""
    holds = (store.held.hold(operation, first + n, body, now=1, sends=True, **more) for n in range(times))
    await asyncio.gather(*holds)


async def test_so_many_writes_wait_and_no_more(store):
    await held(store, CARD_UPDATE, {"note": "x"}, times=MOST_WAITING)
    books = await store.outbox.books()
    with pytest.raises(NoRoom, match=r"10,000 changes .* wait for central already; this one was not taken"):
        await held(store, CARD_UPDATE, {"note": "x"})
    with pytest.raises(NoRoom):
        await store.held.hold(ENTRY_CREATE, None, {"device_id": 1}, now=1, sends=True)
    with pytest.raises(NoRoom):
        await store.held.room()
    assert await store.outbox.books() == books
    # what takes a right away, and what central may have already, is held all the same
    for operation, body in (
        (CARD_LIFECYCLE, {"status": "lost"}),
        (CARD_UPDATE, {"status": "blocked"}),
        (CARD_DELETE, {}),
    ):
        await held(store, operation, body, first=50_000)
    await held(store, CARD_UPDATE, {"note": "x"}, first=50_000, begun=True, key="k")
    await store.held.hold(CARD_UPDATE, 1, {"note": "y"}, now=1, sends=False)  # nor what waits for nobody
    # what goes makes room: first what takes rights away, then the others
    while (await store.outbox.books()).waiting >= MOST_WAITING:
        for row in await store.outbox.due(now=1, limit=10):
            await store.outbox.delivered(row, central_id=None)
    await held(store, CARD_UPDATE, {"note": "x"})


async def test_so_many_bytes_wait_and_no_more(store):
    body = {"note": "x" * 60_000}
    size = len('{"note":""}') + 60_000
    await held(store, CARD_UPDATE, body, times=-(-MOST_WAITING_BYTES // size))
    with pytest.raises(NoRoom, match=r"\(33\.\d MB\)"):
        await held(store, DEVICE_CONFIG, {"description": "x"})


async def test_bytes_are_counted_as_they_wait_now(store, monkeypatch):
    monkeypatch.setattr(room, "MOST_WAITING_BYTES", 100_000)
    told = Event(kind=EventKind.RECORD_RELEASED, date_at=1, clock_trusted=True, description="x")
    await held(store, DEVICE_CONFIG, {"description": "x" * 110_000, "location": "North"})
    with pytest.raises(NoRoom):
        await store.held.room()
    (row,) = await store.outbox.due(now=1)
    await store.outbox.park(row, error="too long")
    await held(store, DEVICE_CONFIG, {"description": "y"}, begun=True)  # takes its field out of the refused one
    await store.held.room()
    for length, fits in ((120_000, False), (10, True)):
        refused = await store.refused.get(row.id)
        await store.refused.edit(row.id, {"location": "z" * length}, told, key=refused.key)
        await store.outbox.park(row, error="too long")
        if fits:
            await store.held.room()
        else:
            with pytest.raises(NoRoom):
                await store.held.room()


@pytest.mark.parametrize("operation", [DEVICE_CREATE, CAMERA_CREATE])
async def test_so_many_records_are_made_here(store, operation):
    made = (store.held.hold(operation, None, {"name": "x"}, now=1, sends=False) for _ in range(MOST_MADE))
    await asyncio.gather(*made)
    with pytest.raises(NoRoom, match=f"1,000 {operation.kind}s already that only this site has"):
        await store.held.hold(operation, None, {"name": "x"}, now=1, sends=False)
