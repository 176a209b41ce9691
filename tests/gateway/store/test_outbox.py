from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from examples import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.store import Entry, OutboxDelivery, Store
from gateway.store.outbox.rows import insert_outbox


async def put(store, *record_ids, kind="entry"):
    def job(connection):
        return [insert_outbox(connection, kind=kind, record_id=item, body="{}", now=1) for item in record_ids]

    return await store.database.write(job)


async def due(store, now=1_000):
    return [row.id for row in await store.outbox.due(now=now)]


async def test_rows_are_due_oldest_first_and_one_per_record(store):
    ids = await put(store, 1, 1, 2, 1, 3, 2)
    assert await due(store) == [ids[0], ids[2], ids[4]]
    (first, *_) = await store.outbox.due(now=0)
    await store.outbox.delivered(first, central_id=None)
    assert await due(store) == [ids[1], ids[2], ids[4]]
    assert [row.id for row in await store.outbox.due(now=0, limit=2)] == [ids[1], ids[2]]


async def test_the_same_record_id_of_another_kind_is_another_record(store):
    ids = await put(store, 1) + await put(store, 1, kind="camera_event")
    assert await due(store) == ids


async def test_a_row_that_failed_or_is_parked_holds_those_behind_it(store):
    ids = await put(store, 1, 1, 2, 2)
    first, second = await store.outbox.due(now=0)
    await store.outbox.failed(first, error="away", next_at=500)
    await store.outbox.park(second, error="refused")
    assert await due(store, now=499) == []
    assert await due(store, now=500) == [ids[0]]
    (row,) = await store.outbox.due(now=500)
    assert (row.tries, row.error, row.key) == (1, "away", first.key)
    books = await store.outbox.books()
    assert (books.accepted, books.waiting, books.parked, books.delivered) == (4, 3, 1, 0)


async def test_next_due_is_a_moment_at_which_something_is_due(store):
    assert await store.outbox.next_due() is None
    await put(store, 1, 1, 2, 2)
    first, second = await store.outbox.due(now=0)
    assert await store.outbox.next_due() == 0
    await store.outbox.failed(first, error="away", next_at=500)
    await store.outbox.park(second, error="refused")
    assert await store.outbox.next_due() == 500
    await store.outbox.park(first, error="refused")
    assert await store.outbox.next_due() is None


async def test_rows_of_an_operation_that_pauses_are_not_due_and_keep_nothing_from_others(store):
    first, second = await put(store, 1, 2)
    other, third = await put(store, 3, 1, kind="camera_event")
    without = {("entry", "create")}
    assert [row.id for row in await store.outbox.due(now=0, without=without)] == [other, third]
    assert await store.outbox.next_due(without=without) == 0
    assert await store.outbox.next_due(without={*without, ("camera_event", "create")}) is None
    assert await due(store) == [first, second, other, third]


async def test_what_was_tried_some_times_comes_after_what_was_not(store):
    ids = await put(store, *range(1, 41))
    for _ in range(3):
        for row in (await store.outbox.due(now=0))[:30]:
            await store.outbox.failed(row, error="central failed", next_at=0)
    assert await due(store) == ids[30:]
    for row in await store.outbox.due(now=0):
        await store.outbox.delivered(row, central_id=None)
    assert await due(store) == ids[:30]


async def test_a_right_that_may_not_be_taken_away_keeps_no_other_from_being_taken(store):
    def job(connection):
        for number in range(1, 251):
            insert_outbox(connection, kind="access_card", record_id=number, body="{}", now=1, action="lifecycle")
        return insert_outbox(connection, kind="access_card", record_id=7, body="{}", now=1, action="delete")

    last = await store.database.write(job)
    without = {("access_card", "lifecycle")}
    assert await store.outbox.due(now=0, without=without) == ()
    lone = await store.database.write(
        lambda c: insert_outbox(c, kind="access_card", record_id=900, body="{}", now=1, action="delete")
    )
    assert [row.id for row in await store.outbox.due(now=0, without=without)] == [lone]
    assert last not in [row.id for row in await store.outbox.due(now=0)]


async def test_retry_now_makes_waiting_rows_due(store):
    ids = await put(store, 1, 2)
    first, second = await store.outbox.due(now=0)
    await store.outbox.failed(first, error="away", next_at=10**15)
    await store.outbox.park(second, error="refused")
    await store.outbox.retry_now()
    assert await due(store) == [ids[0]]


async def test_a_row_delivered_twice_is_counted_once(store):
    await put(store, 1)
    (row,) = await store.outbox.due(now=0)
    await asyncio.gather(*(store.outbox.delivered(row, central_id=None) for _ in range(3)))
    books = await store.outbox.books()
    assert (books.accepted, books.delivered, books.waiting) == (1, 1, 0)
    assert books.balance()


async def test_a_delivered_camera_event_learns_its_central_id(store, entry, moment):
    (number,) = (await store.journal.record(entry(moment()))).camera_event_ids
    (row,) = await store.outbox.due(now=0)
    assert (row.kind, row.record_id) == ("camera_event", number)
    await store.outbox.delivered(row, central_id=42)
    found = await store.camera_events.get(42)
    assert (found.id, found.central_id) == (number, 42)
    assert await store.camera_events.get(number) == found


async def test_camera_events_delivered_together_each_learn_what_central_says_of_them(store, entry, moment):
    made = [(await store.journal.record(entry(moment()))).camera_event_ids[0] for _ in range(5)]
    plain, renamed, taken, deleted, unnamed = await store.outbox.due(now=0)
    await store.outbox.delivered(plain, central_id=41)
    await store.database.write(
        lambda connection: connection.execute("DELETE FROM camera_event WHERE id = ?", (made[3],))
    )
    await store.outbox.delivered_together(
        [
            OutboxDelivery(plain, 40, {"id": 40, "name": "Late"}),  # it was delivered before
            OutboxDelivery(renamed, 42, {"id": 42, "name": "Gate 2", "description": 7, "incident": True}),
            OutboxDelivery(taken, 41, {"id": 41, "description": "Seen"}),  # of another one until now
            OutboxDelivery(deleted, 44, {"id": 44, "name": "Gone"}),
            OutboxDelivery(unnamed, None),
        ],
        now=2,
    )
    found = [await store.camera_events.get(number) for number in made]
    said = [one and (one.central_id, one.name, one.description, one.incident) for one in found]
    assert said == [
        (None, "Entry", "A vehicle came.", False),
        (42, "Gate 2", "A vehicle came.", True),
        (41, "Entry", "Seen", False),
        None,
        (None, "Entry", "A vehicle came.", False),
    ]
    assert await store.pending_writes.central_id("camera_event", made[3]) == 44
    books = await store.outbox.books()
    assert (books.delivered, books.waiting, books.balance()) == (5, 0, True)


async def test_a_backlog_takes_no_statement_for_each_row(store, entry, moment):
    """At each of them the writing thread and the loop wait for each other."""
    for _ in range(24):
        await store.journal.record(entry(moment()))
    statements = []
    await store.database.write(lambda connection: connection.set_trace_callback(statements.append))
    counts = []
    for most in (2, 20):
        rows = await store.outbox.due(now=0, limit=most)
        statements.clear()
        begun = await store.outbox.begin_together(rows)
        assert [(row.id, row.begun) for row in begun] == [(row.id, True) for row in rows]
        record = {"name": "Entry", "description": "A vehicle came."}
        answers = [OutboxDelivery(row, row.id, {"id": row.id, **record}) for row in begun]
        await store.outbox.delivered_together(answers, now=2)
        counts.append(sum(said.split()[0] in ("SELECT", "UPDATE", "DELETE") for said in statements))
    assert counts[0] == counts[1], statements


async def test_rows_of_a_backlog_are_written_without_going_through_all_of_it(store, entry, moment):
    await store.journal.record(entry(moment()))
    rows, statements = await store.outbox.due(now=0), []
    await store.database.write(lambda connection: connection.set_trace_callback(statements.append))
    begun = await store.outbox.begin_together(rows)
    await store.outbox.delivered_together([OutboxDelivery(row, 42, {"id": 42}) for row in begun], now=2)
    await store.database.write(lambda connection: connection.set_trace_callback(None))
    asked = [text for text in statements if text.split()[0] in ("SELECT", "UPDATE", "DELETE") and " outbox" in text]

    def explain(connection):
        return [row[3] for text in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {text}")]

    plans = [plan for plan in await store.database.read(explain) if " outbox" in plan]
    assert len(plans) == 9
    ways = ("INTEGER PRIMARY KEY (rowid=?)", "(kind=? AND record_id=?)", "outbox_waits_for (waits_for=?)")
    assert all(any(way in plan for way in ways) for plan in plans), plans


async def test_a_large_outbox_is_read_in_order_of_an_index(store, plans):
    async def look():
        await store.outbox.due(now=0)
        await store.outbox.next_due()

    found = (await plans(store.database, look)).values()
    assert len(found) == 4
    assert any("SCAN outbox USING INDEX outbox_urgent" in plan for plan in found)
    assert any("SCAN outbox USING INDEX outbox_waiting" in plan for plan in found)
    assert any("SEARCH outbox USING COVERING INDEX outbox_due (parked=?)" in plan for plan in found)
    assert sum("earlier USING COVERING INDEX outbox_by_record" in plan for plan in found) == 3
    assert not any("TEMP B-TREE" in plan for plan in found)


class Balanced(RuleBasedStateMachine):
    """Accept, deliver, fail, park and crash in any order: the books balance and are those of a plain model."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.store = self.opened()
        self.accepted = self.delivered = 0
        self.last_id = 0

    def opened(self):
        store = Store(folder=self.folder, site_name="North", sends=True)
        self.loop.run_until_complete(store.open())
        return store

    def do(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def pick(self, number):
        rows = self.do(self.store.outbox.due(now=10**17))
        return rows[number % len(rows)] if rows else None

    @rule(moments=st.integers(0, 3))
    def accept(self, moments):
        event = Event(EventKind.VEHICLE_PASSED, 1, clock_trusted=True, text="")
        footage = tuple(Moment(n, "", "", 0, 1, clock_trusted=True) for n in range(moments))
        recorded = self.do(self.store.journal.record(Entry(events=(event,), moments=footage)))
        assert recorded.event_ids[0] > self.last_id
        self.last_id = recorded.event_ids[0]
        self.accepted += moments

    @rule(record_id=st.integers(1, 3))
    def accept_for_one_record(self, record_id):
        self.do(put(self.store, record_id))
        self.accepted += 1

    @rule(number=st.integers(0, 100), central_id=st.one_of(st.none(), st.integers(1, 5)))
    def deliver(self, number, central_id):
        if row := self.pick(number):
            self.do(self.store.outbox.delivered(row, central_id=central_id))
            self.do(self.store.outbox.delivered(row, central_id=central_id))
            self.delivered += 1

    @rule(number=st.integers(0, 100), next_at=st.integers(0, 10**18))
    def fail(self, number, next_at):
        if row := self.pick(number):
            self.do(self.store.outbox.failed(row, error="away", next_at=next_at))

    @rule(number=st.integers(0, 100))
    def park(self, number):
        if row := self.pick(number):
            self.do(self.store.outbox.park(row, error="refused"))

    @rule()
    def crash(self):
        """Crash: the next start has only what is on disk at this moment."""
        cut = Path(tempfile.mkdtemp())
        shutil.copytree(self.folder, cut, dirs_exist_ok=True)
        self.do(self.store.close())
        shutil.rmtree(self.folder)
        self.folder = cut
        self.store = self.opened()
        assert self.store.was_unclean
        assert self.store.salvaged == ()

    @invariant()
    def books_balance(self):
        books = self.do(self.store.outbox.books())
        assert books.balance()
        assert (books.accepted, books.delivered, books.dropped) == (self.accepted, self.delivered, 0)

    @invariant()
    def something_is_due_when_next_due_says_so(self):
        soonest = self.do(self.store.outbox.next_due())
        assert bool(self.do(self.store.outbox.due(now=2 * 10**18))) == (soonest is not None)
        if soonest is not None:
            assert self.do(self.store.outbox.due(now=soonest))
            assert not self.do(self.store.outbox.due(now=soonest - 1))

    def teardown(self):
        self.do(self.store.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.folder)


TestBalanced = Balanced.TestCase
TestBalanced.settings = settings(
    max_examples=examples(3, of=8),
    stateful_step_count=examples(12, of=20),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
