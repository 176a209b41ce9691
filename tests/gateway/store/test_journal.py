from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest

from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.events import EventKind
from gateway.domain.passages import Passage, PassageOutcome
from gateway.domain.writes import site_id_in
from gateway.store import Entry, EventFilter, Recorded


def passage(lane="in"):
    return Passage(lane, "entry", PassageOutcome.PASSED, 1, 2, clock_trusted=True, card_id=5, credential="5", reason="")


def command(state=CommandState.RECORDED, detail=""):
    return Command("c1", 103, "in", GateAction.OPEN, "lane", 1, 2, state=state, detail=detail)


async def test_everything_of_an_entry_is_recorded_together(store, event, moment):
    events = (event("first"), event("last", lane_id="in", kind=EventKind.VEHICLE_PASSED))
    recorded = await store.journal.record(
        Entry(events=events, passage=passage(), moments=(moment(7), moment(8)), commands=(command(),))
    )
    first, last = recorded.event_ids
    assert last == first + 1
    assert recorded.camera_event_ids == (2_000_000_000, 2_000_000_001)
    (kept,) = await store.passages.page()
    assert (kept.id, kept.event_id, kept.passage) == (recorded.passage_id, last, passage())
    page = await store.camera_events.page()
    footage, count = page.events, page.count
    assert [(item.camera_id, item.event_id, item.lane_id) for item in footage] == [(8, last, "in"), (7, last, "in")]
    assert count == 2
    assert await store.camera_events.of_events((first, last)) == footage[::-1]
    assert await store.camera_events.of_events(()) == ()
    assert await store.commands.get("c1") == command()
    rows = await store.outbox.due(now=0)
    assert [row.kind for row in rows] == ["entry", "camera_event", "camera_event"]
    body = json.loads(rows[1].body)
    assert body["camera_id"] == 7
    assert body["date_at"] == "2026-01-01T12:00:00.000Z"
    assert (body["start_date"], body["end_date"]) == ("2026-01-01T11:59:55.000Z", "2026-01-01T12:00:05.000Z")
    assert (body["source_event_id"], site_id_in(body["source_id"])) == (last, 2_000_000_000)
    assert body["source_name"] == "North"


async def test_an_entry_that_fails_leaves_nothing_behind(store, event, moment):
    before = store.changes.version
    with pytest.raises(OverflowError):
        await store.journal.record(
            Entry(events=(event(),), passage=passage(), moments=(moment(), moment(2**70)), commands=(command(),))
        )
    assert (await store.events.page(EventFilter())).count == 0
    assert await store.passages.page() == ()
    assert await store.commands.get("c1") is None
    assert (await store.outbox.books()).accepted == 0
    assert store.changes.version == before


def test_what_could_not_be_recorded_whole_is_refused(event, moment):
    with pytest.raises(ValueError, match="need the event"):
        Entry(passage=passage())
    with pytest.raises(ValueError, match="need the event"):
        Entry(moments=(moment(),))
    with pytest.raises(ValueError, match="at most an hour"):
        Entry(events=(event(),), moments=(moment(7, 0, 3_600_000_001),))


async def test_without_central_nothing_waits_to_be_sent(opened, tmp_path, entry, moment):
    async with opened(tmp_path, sends=False) as store:
        await store.journal.record(entry(moment()))
        assert (await store.outbox.books()).accepted == 0
        assert (await store.camera_events.page()).count == 1


async def test_commands_alone_and_their_steps(store):
    assert await store.journal.record(Entry(commands=(command(),))) == Recorded()
    assert await store.commands.unfinished() == (command(),)
    await store.journal.record(Entry(commands=(command(CommandState.REFUSED, "locked"),)))
    assert await store.commands.unfinished() == ()
    assert await store.commands.get("c1") == command(CommandState.REFUSED, "locked")
    assert await store.commands.get("c2") is None


async def test_what_is_recorded_is_told_even_when_nobody_waits_any_more(store, entry):
    before = store.changes.version
    recording = asyncio.get_running_loop().create_task(store.journal.record(entry()))
    await asyncio.sleep(0)
    recording.cancel()
    with suppress(asyncio.CancelledError):
        await recording
    assert await store.changes.beyond(before, within=10) > before
    assert (await store.events.page(EventFilter())).count == 1


async def test_passages_by_lane_and_cursor(store, event):
    for lane in ("in", "out", "in", "in"):
        await store.journal.record(Entry(events=(event(),), passage=passage(lane)))
    assert [item.id for item in await store.passages.page(lane_id="in")] == [4, 3, 1]
    assert [item.id for item in await store.passages.page(before=3)] == [2, 1]
    assert [item.id for item in await store.passages.page(lane_id="in", before=4, limit=1)] == [3]
    assert await store.passages.page(limit=-1) == ()


async def test_camera_events_wait_for_their_footage(store, entry, moment):
    (number,) = (await store.journal.record(entry(moment(7, 10, 20)))).camera_event_ids
    assert await store.camera_events.awaiting(now=19) == ()
    assert [item.id for item in await store.camera_events.awaiting(now=20)] == [number]
    version = store.changes.version
    await store.camera_events.mark_ready(number)
    assert await store.camera_events.awaiting(now=20) == ()
    assert (await store.camera_events.get(number)).ready
    assert store.changes.version > version


async def test_deleting_events_looks_their_dependents_up(store, entry, moment):
    await store.journal.record(entry(moment()))

    def plan(connection):
        return [
            row[3]
            for table in ("passage", "camera_event")
            for row in connection.execute(f"EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE event_id = 1")
        ]

    assert all("USING" in step and "_by_event" in step for step in await store.database.read(plan))
