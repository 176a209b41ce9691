"""Many new records on their way up at once: what holds of one row alone holds of each of them."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from fresh_ids import fresh_ids
from wired import outbox_sender

from gateway.domain.errors import CentralUnavailable, StoreError
from gateway.domain.events import EventKind
from gateway.domain.writes import ENTRY_CREATE
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import EventFilter
from gateway.store.outbox.rows import insert_outbox

NOW = 1_769_860_800_000_000
SOON = Backoff(first=0.01, longest=0.05)


class PushedClock(SystemClock):
    """A clock that can be pushed on, or stopped."""

    def __init__(self):
        super().__init__()
        self.pushed = 0.0
        self.stopped_at = None

    def monotonic(self):
        return (super().monotonic() if self.stopped_at is None else self.stopped_at) + self.pushed


@dataclass
class Line:
    """The requests of the client, with the state of each row on disk as its request goes out."""

    real: object
    path: object
    away_after: int = 2**31
    keys: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    not_begun: list[str] = field(default_factory=list)
    under_way: int = 0
    most: int = 0
    on_call: object = None
    leaves_unnamed: object = None

    async def call(self, method, path, body=None, *, key="", **more):
        if len(self.keys) >= self.away_after:
            raise CentralUnavailable("the line is down")
        self.keys.append(key)
        number = len(self.keys)
        self.paths.append(path)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if self.on_call is not None:
                await self.on_call(number)
            if key and not await asyncio.to_thread(self._begun, key):
                self.not_begun.append(key)
            answer = await self.real(method, path, body, key=key, **more)
            if method == "PUT" and self.leaves_unnamed is not None and self.leaves_unnamed(number):
                return {"success": True}
            return answer
        finally:
            self.under_way -= 1

    def _begun(self, key):
        """By a connection of its own, which sees what is committed."""
        with closing(sqlite3.connect(self.path)) as other:
            return other.execute("SELECT begun FROM outbox WHERE key = ?", (key,)).fetchone() == (1,)


@pytest.fixture
def line(client, store, monkeypatch):
    made = Line(client.call, store.database.path)
    monkeypatch.setattr(client, "call", made.call)
    return made


@pytest.fixture
def clock():
    return PushedClock()


@pytest.fixture
def sender(client, store, clock, line):
    return outbox_sender(
        client=client,
        newest=fresh_ids(client),
        store=store,
        clock=clock,
        may_take=0,
        row_backoff=SOON,
        away_backoff=SOON,
    )


@pytest.fixture
def backlog(store):
    """Lets so many camera events wait."""

    async def fill(count, camera_id=201):
        def insert(connection):
            for number in range(1, count + 1):
                body = (
                    f'{{"camera_id": {camera_id}, "name": "Vehicle passed", "date_at": "2026-03-01T08:00:00.000Z",'
                    f' "source_id": {number}}}'
                )
                insert_outbox(connection, kind="camera_event", record_id=number, body=body, now=NOW)

        await store.database.write(insert)

    return fill


async def begun(store):
    return await store.database.read(
        lambda connection: connection.execute("SELECT count(*) FROM outbox WHERE begun = 1").fetchone()[0]
    )


async def send_all(sender, store):
    async with asyncio.timeout(60):
        while (await store.outbox.books()).waiting:
            await sender.send_due()
            await asyncio.sleep(0)


async def test_a_backlog_goes_up_several_at_a_time_each_begun_on_disk_before_its_request(
    central, store, sender, line, backlog, clock, monkeypatch
):
    clock.stopped_at = clock.monotonic()  # a batch ends after 2 s, which a busy machine needs
    await backlog(120)
    begin, begins = store.outbox.begin_together, []

    async def counted(rows, **bounds):
        begins.append(len(rows))
        return await begin(rows, **bounds)

    monkeypatch.setattr(store.outbox, "begin_together", counted)
    await send_all(sender, store)
    assert line.not_begun == []
    assert line.most == 3
    assert begins == [50, 50, 20]
    assert sorted(event["source_id"] for event in central.camera_events) == list(range(1, 121))
    books = await store.outbox.books()
    assert (books.delivered, books.balance()) == (120, True)


async def test_a_stop_leaves_only_what_is_under_way_to_be_looked_for(central, store, sender, line, backlog):
    await backlog(60)

    async def stop(number):
        if number == 20:
            task.cancel()

    line.on_call = stop
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sender.send_due())
    assert await begun(store) <= 3
    assert (await store.outbox.books()).delivered >= 17
    line.on_call = None
    await send_all(sender, store)
    assert {event["source_id"] for event in central.camera_events} == set(range(1, 61))


async def test_few_rows_go_one_after_the_other_in_order(central, store, sender, line, backlog):
    await backlog(6)
    await send_all(sender, store)
    assert line.most == 1
    assert [event["source_id"] for event in central.camera_events] == [1, 2, 3, 4, 5, 6]


async def test_what_was_not_tried_when_the_line_broke_counts_as_never_begun(central, store, sender, line, backlog):
    await backlog(60)
    line.away_after = 10
    turn = await sender.send_due()
    assert turn.wakes_on_new_rows is False
    assert (await store.outbox.books()).delivered == 10
    assert 1 <= await begun(store) <= 3, "only what was under way"
    line.away_after = 2**31
    await send_all(sender, store)
    assert sorted(event["source_id"] for event in central.camera_events) == list(range(1, 61))


async def test_while_central_is_away_one_row_at_a_time_finds_that_out(client, store, clock, line, backlog):
    slow = Backoff(first=200, longest=300)
    sender = outbox_sender(
        client=client, newest=fresh_ids(client), store=store, clock=clock, row_backoff=slow, away_backoff=SOON
    )
    await backlog(60)
    line.away_after = 0
    for _ in range(4):
        await sender.send_due()
    assert await begun(store) <= 3 + 3


async def test_what_takes_a_right_away_does_not_wait_for_a_whole_backlog(central, store, sender, line, clock, backlog):
    await backlog(100)

    async def revoked(number):
        if number == 5:
            clock.pushed = 3.0
            await store.database.write(
                lambda connection: insert_outbox(
                    connection, kind="access_card", action="delete", record_id=4001, body="{}", now=NOW
                )
            )

    line.on_call = revoked
    await send_all(sender, store)
    assert line.paths.index("/v1/access") <= 5 + 3  # those that were under way
    assert line.not_begun == []
    assert len(central.camera_events) == 100


async def test_refusals_in_a_backlog_are_parked_and_the_rest_goes_on(central, store, sender, line, backlog):
    await backlog(20)
    await backlog(20, camera_id=999)
    await send_all(sender, store)
    books = await store.outbox.books()
    assert (books.delivered, books.parked, books.balance()) == (20, 20, True)


async def test_an_answer_that_the_disk_refused_to_keep_is_asked_for_again_with_its_key(
    central, store, sender, line, backlog, monkeypatch
):
    await backlog(30)
    keep, refused = store.outbox.delivered_together, []

    async def full(deliveries, **now):
        if not refused:
            refused.extend(delivery.row.key for delivery in deliveries)
            raise StoreError("the disk is full")
        await keep(deliveries, **now)

    monkeypatch.setattr(store.outbox, "delivered_together", full)
    with pytest.raises(StoreError):
        await sender.send_due()
    assert refused
    await send_all(sender, store)
    assert len({event["idempotency_key"] for event in central.camera_events}) == 30
    books = await store.outbox.books()
    assert (books.delivered, books.balance()) == (30, True)


@pytest.fixture
def held_alike(store):
    """Holds so many entries that nothing tells from one another; returns their ids."""
    body = {"device_id": 101, "type": "entry", "date_at": "2026-01-01T12:00:00Z", "plate": "ALIKE1"}

    async def hold(count):
        return [
            (await store.pending_writes.hold(ENTRY_CREATE, None, body, now=NOW, sends=True)).record_id
            for _ in range(count)
        ]

    return hold


@pytest.mark.parametrize(
    "unnamed", [lambda _: True, lambda number: number % 2, lambda number: number % 3 == 0], ids=["all", "half", "third"]
)
@pytest.mark.parametrize("count", [2, 24])
async def test_records_that_are_alike_get_an_id_each_where_central_does_not_name_it(
    central, store, sender, line, held_alike, count, unnamed
):
    known = await held_alike(1)
    await send_all(sender, store)
    line.leaves_unnamed = unnamed
    line.paths.clear()
    known += await held_alike(count)
    await send_all(sender, store)
    ids = [await store.pending_writes.central_id("entry", number) for number in known]
    assert sorted(ids) == sorted(entry["id"] for entry in central.entries)
    assert len(ids) == 1 + count
    twice = await store.events.page(EventFilter(types=(int(EventKind.ID_GIVEN_TWICE),)))
    assert twice.events == ()
    assert line.paths.count("/v1/entry/list") <= 1, "one search serves the whole batch"


async def test_ids_that_cannot_be_looked_for_are_given_up_after_one_try(central, store, sender, line, held_alike):
    line.leaves_unnamed = lambda _: True

    async def no_lists(_):
        if line.paths[-1].endswith("/list"):
            raise CentralUnavailable("the list does not come")

    line.on_call = no_lists
    await held_alike(24)
    await send_all(sender, store)
    books = await store.outbox.books()
    assert (books.delivered, books.balance(), len(central.entries)) == (24, True, 24)
    assert line.paths.count("/v1/entry/list") == 1
