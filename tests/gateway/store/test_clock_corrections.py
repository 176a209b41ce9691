"""Corrections of an untrusted clock's stamps, segments and pins together, in the run of the machine it belongs to."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from gateway.domain.footage import GapReason, SegmentFinished, segment_path
from gateway.runtime.clock import ClockOffset
from gateway.store import Choice, RecordTimes, Store
from gateway.store.footage import clock_corrections

SECOND = 1_000_000
WRONG = 86_400 * SECOND  # 1970-01-02: a machine without a battery
TRUE = 1_767_268_800 * SECOND
WAS = ClockOffset("run", WRONG, trusted=False)
IS = ClockOffset("run", TRUE, trusted=True)


@pytest.fixture
async def store(tmp_path):
    store = Store(folder=tmp_path, site_name="North", sends=True, times=RecordTimes(offset=lambda: WAS))
    await store.open()
    yield store
    await store.close()


def segment(n, *, offset=WAS, gap=GapReason.NONE, boot_id="run", camera=7):
    """The nth: 2 s long, from n * 2 s of the run on."""
    start = n * 2 * SECOND + offset.micros
    return SegmentFinished(
        camera_id=camera, path=segment_path(camera, start, 2 * SECOND, "1970010200"), started_at=start,
        clock_trusted=offset.trusted, duration=2 * SECOND, size=1000, gap=gap, boot_id=boot_id,
        monotonic=n * 2 * SECOND,
    )  # fmt: skip


async def test_segments_and_the_pins_of_events_move_together(store, entry, moment):
    await store.segments.add([segment(n) for n in range(10)])
    await store.segments.add([segment(10, offset=IS, gap=GapReason.CLOCK), segment(11, offset=IS)])
    pin = replace(moment(7, WRONG + 5 * SECOND, WRONG + 9 * SECOND), clock_trusted=False)
    recorded = await store.journal.record(entry(pin, date_at=WRONG + 6 * SECOND, clock_trusted=False))
    before = await store.segments.between(7, pin.pinned_from, pin.pinned_until)
    assert len(before) == 3

    assert await store.clock_corrections.correct(IS) == 10
    event = await store.camera_events.get(recorded.camera_event_ids[0])
    assert (event.pinned_from, event.pinned_until) == (TRUE + 5 * SECOND, TRUE + 9 * SECOND)
    assert (event.date_at, event.clock_trusted) == (TRUE + 6 * SECOND, True)
    after = await store.segments.between(7, event.pinned_from, event.pinned_until)
    assert [row.path for row in after] == [row.path for row in before]
    assert [row.place for row in after] == [row.place for row in before], "the chain is of what was recorded"

    rows = await store.segments.between(7, 0, 2**60)
    assert [row.started_at for row in rows] == [TRUE + n * 2 * SECOND for n in range(12)]
    assert all(row.clock_trusted for row in rows)
    assert {row.gap for row in rows} == {GapReason.NONE}, "nothing is missing where the clock was set"

    (row,) = await store.outbox.due(now=2**62)
    told = json.loads(row.body)
    assert (told["start_date"], told["end_date"]) == ("2026-01-01T12:00:05.000Z", "2026-01-01T12:00:09.000Z")
    assert told["clock_trusted"] is True
    freed = await store.segments.discard(Choice(at_least=10**9))
    assert {row.id for row in freed} == {row.id for row in rows} - {row.id for row in after}
    assert await store.clock_corrections.correct(IS) == 0


async def test_what_another_run_of_the_machine_stamped_stays(store, entry, moment):
    await store.segments.add([segment(1, boot_id="before"), segment(2, boot_id=""), segment(3)])
    assert await store.clock_corrections.correct(IS) == 1
    starts = [row.started_at for row in await store.segments.between(7, 0, 2**60)]
    assert starts == [WRONG + 2 * SECOND, WRONG + 4 * SECOND, TRUE + 6 * SECOND]


async def test_a_correction_cut_short_is_finished_in_the_next_run(store, entry, moment, monkeypatch):
    monkeypatch.setattr(clock_corrections, "AT_A_TIME", 4)
    await store.segments.add([segment(n) for n in range(10)])
    await store.database.write(lambda connection: clock_corrections.move_pins(connection, IS))
    await store.database.write(lambda connection: clock_corrections.move_some(connection, boot_id="run"))
    assert await store.clock_corrections.correct(ClockOffset("later", TRUE, trusted=True)) == 6
    rows = await store.segments.between(7, 0, 2**60)
    assert [row.started_at for row in rows] == [TRUE + n * 2 * SECOND for n in range(10)]


async def test_a_report_that_comes_late_is_put_right_too(store):
    await store.segments.add([segment(1)])
    assert await store.clock_corrections.correct(IS) == 1
    await store.segments.add([segment(2), segment(2, camera=8)])
    assert await store.clock_corrections.correct(IS) == 2


@pytest.mark.parametrize("step", [3600 * SECOND + 7, 7 - 3600 * SECOND])
@pytest.mark.parametrize("set_at", [3, 100])
async def test_the_clock_being_set_changes_nothing_of_what_footage_an_event_has(store, entry, moment, step, set_at):
    begin = 4000  # an hour before it there was footage too, which is none of the event's
    stepped = replace(WAS, micros=WRONG + step)
    segments = [linked(n, stepped if n >= begin + set_at else WAS) for n in range(begin - 1900, begin + 1900)]
    await store.segments.add(segments)
    pin = moment(7, WRONG + (2 * begin + 1) * SECOND, WRONG + (2 * begin + 11) * SECOND)
    recorded = await store.journal.record(entry(pin, date_at=WRONG + (2 * begin + 5) * SECOND))
    event = await store.camera_events.get(recorded.camera_event_ids[0])

    found = await store.segments.of_event(event)
    assert [row.monotonic // SECOND for row in found] == [2 * begin + n for n in range(0, 12, 2)]
    assert found[0].started_at == event.pinned_from - SECOND
    assert found[-1].ended_at == event.pinned_until + SECOND, "by the event's own clock"
    assert all(a.ended_at == b.started_at for a, b in pairwise(found))

    uptime = (2 * begin + 11) * SECOND
    due = store.camera_events.awaiting
    assert await due(now=event.pinned_until + step, boot_id="run", uptime=uptime - 1) == ()
    assert [item.id for item in await due(now=event.pinned_until + step, boot_id="run", uptime=uptime)] == [event.id]
    assert await store.camera_events.stamped_in("run", pinned_after=uptime) == ()
    assert await store.camera_events.stamped_in("other", pinned_after=0) == ()
    assert [item.id for item in await store.camera_events.stamped_in("run", pinned_after=uptime - 1)] == [event.id]


@pytest.mark.parametrize("step", [3600 * SECOND + 7, 7 - 3600 * SECOND])
@pytest.mark.parametrize("set_at", [3, 100])
async def test_an_event_keeps_its_footage_and_no_other_after_the_clock_was_set(store, entry, moment, step, set_at):
    begin = 4000
    stepped = replace(WAS, micros=WRONG + step)
    # as far as the clock was set there is footage of other times that is stamped as the event's
    told = [(n, stepped if n >= begin + set_at else WAS) for n in range(begin - 1900, begin + 1900)]
    await store.segments.add([linked(n, offset) for n, offset in told])
    earlier = segment(begin + 2).model_copy(update={"boot_id": "", "path": f"7/2026010112/{begin}_2000001.ts"})
    await store.segments.add([earlier])  # of a program that kept no monotonic times: its wall times decide
    at = WRONG + (2 * begin + 1) * SECOND
    recorded = await store.journal.record(entry(moment(7, at, at + 10 * SECOND), date_at=at + 4 * SECOND))
    event = await store.camera_events.get(recorded.camera_event_ids[0])
    wanted = await store.segments.of_event(event)
    assert {row.monotonic // SECOND for row in wanted} == {2 * begin + n for n in range(0, 12, 2)}

    while await store.segments.discard(Choice(at_least=2**62, limit=2000)):
        pass
    kept = await store.segments.after(0)
    assert {row.id for row in kept} == {row.id for row in wanted}


async def test_an_event_keeps_its_footage_when_the_clock_becomes_trusted(store, entry, moment):
    await store.segments.add([linked(n, WAS) for n in range(10)])
    pin = replace(moment(7, WRONG + 5 * SECOND, WRONG + 25 * SECOND), clock_trusted=False)
    recorded = await store.journal.record(entry(pin, date_at=WRONG + 6 * SECOND, clock_trusted=False))
    await store.clock_corrections.correct(IS)
    await store.segments.add([linked(n, IS) for n in range(10, 14)])
    event = await store.camera_events.get(recorded.camera_event_ids[0])
    assert event.clock_offset == TRUE
    found = await store.segments.of_event(event)
    assert [row.monotonic // SECOND for row in found] == list(range(4, 26, 2))


def linked(n, offset):
    return segment(n, offset=offset).model_copy(update={"sha256": f"{n:064x}"})
