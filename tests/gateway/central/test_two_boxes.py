"""Two boxes with the same site name and the same local ids at one central: each keeps to its own records."""

from __future__ import annotations

import contextlib
import random
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from wired import outbox_sender

from gateway.central.push.outbox import OutboxSender
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment, Passage, PassageOutcome
from gateway.domain.record_match import is_still, marks_of
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import Entry, Store
from simulation.far_ends.central import Chances, Faults

AT = 1_767_268_800_000_000
SOON = Backoff(first=0.001, longest=0.005)
PATHS = {"camera_event": "/v1/camera/event", "entry": "/v1/entry"}


@dataclass
class Box:
    """A gateway's data folder and its way up to central. `name` stands in every record that it makes."""

    name: str
    store: Store
    sender: OutboxSender
    made: int = 0

    async def record(self, at: int = AT) -> None:
        """Record a vehicle that passed: a camera event and an entry."""
        self.made += 1
        told = f"{self.name} {self.made}"
        event = Event(EventKind.VEHICLE_PASSED, at, clock_trusted=True, text="Passed.", device_id=101)
        passage = Passage("entry", "entry", PassageOutcome.PASSED, at, at, clock_trusted=True, credential=told)
        moment = Moment(201, "Vehicle passed", told, at - 5, at + 5, clock_trusted=True)
        await self.store.journal.record(Entry(events=(event,), passage=passage, moments=(moment,)))

    async def turn(self) -> int:
        """Send whatever waits; return how much still does."""
        await self.store.outbox.retry_now()
        await self.sender.send_due()
        books = await self.store.outbox.books()
        assert books.balance()
        assert not books.parked
        return books.waiting

    async def held(self, kind: str) -> dict[int, int | None]:
        """Central's ids of the records, by the site's."""
        return {record.id: record.central_id for record in await self.store.delivered_records.since(kind, 0)}


@pytest.fixture
async def open_box(connect):
    """Opens a data folder and connects it to central."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(name: str, folder: Path) -> Box:
            folder.mkdir(exist_ok=True)
            store = Store(folder=folder, site_name="Test site", sends=True)
            await store.open()
            stack.push_async_callback(store.close)
            sender = outbox_sender(
                client=connect(), store=store, clock=SystemClock(), row_backoff=SOON, away_backoff=SOON, may_take=0
            )
            return Box(name, store, sender)

        yield make


@pytest.fixture
async def boxes(open_box, tmp_path):
    return [await open_box(name, tmp_path / name) for name in ("old", "new")]


def at_central(central, kind):
    """Sort central's ids by the box that made the records."""
    table, field = {"camera_event": (central.camera_events, "description"), "entry": (central.entries, "credential")}[
        kind
    ]
    held = {"old": set(), "new": set()}
    for record in table:
        held[record[field].split()[0]].add(record["id"])
    return held


@pytest.mark.parametrize("kind", PATHS)
async def test_a_lost_request_is_not_taken_for_the_record_of_the_other_box(central, boxes, kind):
    old, new = boxes
    for box in boxes:
        await box.record()
        assert await box.turn() == 0
    for box, chances in ((new, Chances(lost_requests=1)), (old, Chances(lost_answers=1))):
        await box.record()
        central.faults = Faults(paths=PATHS[kind], chances=chances)
        await box.turn()
    assert {name: len(ids) for name, ids in at_central(central, kind).items()} == {"old": 2, "new": 1}
    central.faults = Faults()
    for box in (new, old) * 3:
        await box.turn()
    await hold_their_own(central, boxes, 2)


async def test_of_many_lost_requests_and_answers_each_box_gets_its_own_records(central, boxes):
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    dice, count = random.Random(seed), 25
    central.faults = Faults(chances=Chances(lost_requests=0.2, lost_answers=0.3), seed=seed)
    for number in range(count):
        at = AT + number * dice.choice((0, 1_000_000))
        for box in boxes:
            await box.record(at)
            await box.turn()
    central.faults = Faults()
    for box in boxes:
        while await box.turn():
            pass
    await hold_their_own(central, boxes, count)


@pytest.mark.parametrize("kind", PATHS)
async def test_an_id_that_central_gave_to_the_other_box_since_counts_as_gone(central, boxes, kind):
    """Central was set back: under the old box's id it has the new one's record, alike in all but its source."""
    old, new = boxes
    for box in boxes:
        await box.record()
        await box.turn()
    (mine,), (theirs,) = at_central(central, kind)["old"], at_central(central, kind)["new"]
    table = {"camera_event": central.tables.camera_events, "entry": central.tables.entries}[kind]
    table.put({**table[theirs], "id": mine})
    table.remove(theirs)
    (lost,) = await old.store.delivered_records.since(kind, 0)
    assert not is_still(kind, marks_of(kind, lost.body), table[mine])
    (kept,) = await new.store.delivered_records.since(kind, 0)
    assert is_still(kind, marks_of(kind, kept.body), table[mine])


@pytest.mark.parametrize("kind", PATHS)
async def test_a_box_put_back_from_a_backup_takes_none_of_what_went_up_after_it(
    central, boxes, kind, tmp_path, open_box
):
    """It gives the same ids again, under the same number of the box."""
    old, _ = boxes
    await old.record()
    await old.turn()
    await old.store.close()
    shutil.copytree(tmp_path / "old", tmp_path / "backup")
    old = await open_box("old again", tmp_path / "old")
    for number in (1, 2):
        await old.record(AT + number * 1_000_000)
    await old.turn()
    put_back = await open_box("new", tmp_path / "backup")
    await put_back.record(AT + 3_000_000)
    await put_back.turn()
    await put_back.record(AT + 4_000_000)
    central.faults = Faults(paths=PATHS[kind], chances=Chances(lost_requests=1))
    await put_back.turn()
    central.faults = Faults()
    assert {name: len(ids) for name, ids in at_central(central, kind).items()} == {"old": 3, "new": 1}
    while await put_back.turn():
        pass
    assert {name: len(ids) for name, ids in at_central(central, kind).items()} == {"old": 3, "new": 2}
    assert at_central(central, kind)["new"] < set((await put_back.held(kind)).values())


async def hold_their_own(central, boxes, count):
    """Expect that each box has central's ids of its own records, and central has each of them once."""
    for kind in PATHS:
        for box in boxes:
            held = await box.held(kind)
            assert len(held) == len(set(held.values())) == count, (kind, box.name)
            assert set(held.values()) == at_central(central, kind)[box.name], (kind, box.name)
