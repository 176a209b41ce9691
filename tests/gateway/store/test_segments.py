from __future__ import annotations

import pytest

from gateway.domain.footage import GapReason, SegmentFinished, segment_path
from gateway.runtime.clock import ClockOffset
from gateway.store import Choice

SECOND = 1_000_000
START = 1_767_268_800 * SECOND


def finished(number, *, camera=7, duration=2 * SECOND, size=1000, gap=GapReason.NONE):
    started = START + number * 2 * SECOND
    return SegmentFinished(
        camera_id=camera,
        path=segment_path(camera, started, duration, "2026010112"),
        started_at=started,
        clock_trusted=True,
        duration=duration,
        size=size,
        gap=gap,
        codec="avc1.64001f",
        width=1280,
        height=720,
    )


def starts(segments):
    return [(segment.started_at - START) // (2 * SECOND) for segment in segments]


async def test_a_segment_is_kept_as_it_was_and_added_once(store):
    made = finished(1, gap=GapReason.NETWORK)
    assert await store.segments.add([made, made]) == 1
    assert await store.segments.add([made]) == 0
    found = await store.segments.latest(7)
    assert (found.path, found.duration, found.size, found.gap) == (made.path, made.duration, 1000, GapReason.NETWORK)
    assert (found.codec, found.width, found.height, found.clock_trusted) == ("avc1.64001f", 1280, 720, True)
    assert found.ended_at == made.started_at + made.duration
    assert await store.segments.paths() == {made.path}
    assert await store.segments.latest(8) is None


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 2, [0]),  # ends where the second begins
        (0, 2.001, [0, 1]),
        (1.999, 2, [0]),
        (2, 2.001, [1]),  # begins where the first ends
        (3, 3.001, [1]),
        (-10, 0, []),
        (-10, 0.001, [0]),
        (10, 20, []),
        (9.999, 20, [4]),
        (-100, 100, [0, 1, 2, 3, 4]),
        (3, 3, [1]),
        (2, 2, []),
    ],
)
async def test_between_gives_what_overlaps(store, start, end, expected):
    await store.segments.add([finished(n) for n in range(5)] + [finished(n, camera=8) for n in range(5)])
    found = await store.segments.between(7, START + int(start * SECOND), START + int(end * SECOND))
    assert starts(found) == expected
    assert {segment.camera_id for segment in found} <= {7}


async def test_a_segment_of_the_greatest_length_is_found_by_its_last_moment(store):
    await store.segments.add([finished(0, duration=120 * SECOND)])
    assert await store.segments.between(7, START + 120 * SECOND - 1, START + 200 * SECOND)


async def test_discard_takes_the_oldest_until_enough(store):
    await store.segments.add([finished(n) for n in (3, 1, 2, 0)])
    assert await store.segments.bytes_kept() == 4000
    taken = await store.segments.discard(Choice(at_least=1500))
    assert starts(taken) == [0, 1]
    assert await store.segments.bytes_kept() == 2000
    assert sorted(starts(await store.segments.garbage())) == [0, 1]
    assert starts(await store.segments.between(7, START, START + 100 * SECOND)) == [2, 3]
    assert len(await store.segments.paths()) == 4
    await store.segments.forget(taken)
    assert await store.segments.garbage() == ()
    assert len(await store.segments.paths()) == 2
    assert await store.segments.discard(Choice(at_least=0)) == ()


async def test_discard_passes_over_unsynced_and_young_footage(store, entry, moment):
    await store.segments.add([finished(n) for n in range(10)] + [finished(n, camera=8) for n in range(10)])
    pinned = moment(7, START + 5 * SECOND, START + 8 * SECOND)  # parts of 2, all of 3
    date = START + 6 * SECOND
    await store.journal.record(entry(pinned, date_at=date))

    async def free(pinned_after):
        return await store.segments.discard(
            Choice(at_least=10**9, transactions_from=pinned_after, incidents_from=pinned_after)
        )

    taken = await free(date + 1)
    assert starts(segment for segment in taken if segment.camera_id == 7) == [0, 1, 4, 5, 6, 7, 8, 9]
    assert len([segment for segment in taken if segment.camera_id == 8]) == 10
    (row,) = await store.outbox.due(now=0)
    await store.outbox.park(row, error="refused")
    assert await free(date + 1) == ()
    await store.outbox.delivered(row, central_id=1)
    assert await free(date) == ()
    assert starts(await free(date + 1)) == [2, 3]


async def test_footage_that_only_touches_a_pin_is_free(store, entry, moment):
    await store.segments.add([finished(n) for n in range(3)])
    await store.journal.record(entry(moment(7, START + 2 * SECOND, START + 4 * SECOND)))
    assert starts(await store.segments.discard(Choice(at_least=10**9))) == [0, 2]


async def test_the_longest_pin_holds_its_last_moment(store, entry, moment):
    hour = 3600 * SECOND
    await store.segments.add([finished(1800), finished(1799)])
    await store.journal.record(entry(moment(7, START, START + hour)))
    assert starts(await store.segments.discard(Choice(at_least=10**9))) == [1800]


async def test_each_look_uses_its_index(store, plans):
    await store.segments.add([finished(n) for n in range(5)])

    async def look():
        await store.segments.between(7, START, START + SECOND)
        await store.segments.latest(7)
        await store.segments.bytes_kept()
        await store.segments.garbage()
        await store.segments.discard(Choice(at_least=1))

    found = (await plans(store.database, look)).values()
    assert len(found) == 5
    assert any("segment_by_time (camera_id=? AND started_at>? AND started_at<?)" in plan for plan in found)
    assert any("COVERING INDEX segment_by_age" in plan for plan in found)
    assert any("camera_event_by_pin (camera_id=? AND pinned_from>? AND pinned_from<?)" in plan for plan in found)
    uptime = "camera_event_by_uptime (camera_id=? AND boot_id=? AND <expr>>? AND <expr><?)"
    assert any(uptime in plan for plan in found)
    assert not any("TEMP B-TREE FOR ORDER BY" in plan or "SCAN segment" in plan for plan in found if "pin" in plan)


async def test_looks_for_what_is_left_to_do_use_their_indexes(store, plans):
    await store.segments.add([finished(n) for n in range(5)])

    async def look():
        await store.chain_links.unlinked(after=0, limit=5)
        await store.chain_links.leaves(7, 1, 5)
        await store.segments.known("7/2026010112")
        await store.segments.bytes_since(START)
        await store.clock_corrections.correct(ClockOffset("run", 0, trusted=True))
        await store.camera_events.pinned_since((7,), START)

    found = await plans(store.database, look)
    assert len(found) >= 7
    assert not [plan for plan in found.values() if "SCAN segment" in plan or "SCAN camera_event" in plan], found
