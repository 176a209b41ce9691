"""A real store in a folder of its own, and entries to put into it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest
from at_work import opened_store

from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.store import Entry, Store

NOON = 1_767_268_800_000_000


@pytest.fixture
def opened() -> Callable[..., object]:
    """`async with opened(folder) as store`: open, tended and closed. `boot`: that of the machine, "" if unknown."""
    return partial(opened_store, sends=True, boot="")


@pytest.fixture
async def store(opened, tmp_path) -> AsyncIterator[Store]:
    async with opened(tmp_path) as store:
        yield store


@pytest.fixture
def event() -> Callable[..., Event]:
    def make(description: str = "A vehicle came.", **fields) -> Event:
        fields = {"kind": EventKind.VEHICLE_ARRIVED, "date_at": NOON, "clock_trusted": True, **fields}
        return Event(text=description, **fields)

    return make


@pytest.fixture
def moment() -> Callable[..., Moment]:
    def make(camera_id: int = 7, start: int = NOON - 5_000_000, end: int = NOON + 5_000_000) -> Moment:
        return Moment(
            camera_id=camera_id,
            name="Entry",
            description="A vehicle came.",
            pinned_from=start,
            pinned_until=end,
            clock_trusted=True,
        )

    return make


@pytest.fixture
def entry(event) -> Callable[..., Entry]:
    def make(*moments: Moment, **fields) -> Entry:
        return Entry(events=(event(**fields),), moments=moments)

    return make


@pytest.fixture
def plans() -> Callable[..., object]:
    """`await plans(database, act)`: the query plan of every SELECT that readers ran during `act()`, by statement."""

    async def look(database, act) -> dict[str, str]:
        seen: list[str] = []
        both = threading.Barrier(2)

        def watch(connection):
            both.wait(20)
            connection.set_trace_callback(seen.append)

        await asyncio.gather(database.read(watch), database.read(watch))
        await act()
        statements = {text for text in seen if text.startswith("SELECT")}

        def explain(statement):
            return lambda connection: " | ".join(
                row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
            )

        return {statement: await database.read(explain(statement)) for statement in statements}

    return look
