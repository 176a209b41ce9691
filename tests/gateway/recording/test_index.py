"""Rows and files: brought together at start, whatever was cut short."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.footage import GapReason, SegmentFinished, segment_path
from gateway.recording.index import FootageIndex, UnreportedGap, utc_hour
from gateway.runtime.clock import Stamp
from gateway.store import Choice

START = 1_767_268_800_000_000  # 2026-01-01 12:00 UTC


@pytest.fixture
def media(tmp_path):
    (tmp_path / "media").mkdir()
    return tmp_path / "media"


@pytest.fixture
def index(store, media, clock):
    return FootageIndex(segments=store.segments, journal=store.journal, media=media, clock=clock)


@pytest.fixture
def put(media):
    """Write a segment's file; returns its report."""

    def write(start: int, *, camera_id: int = 7, duration: int = 2_000_000, size: int = 188) -> SegmentFinished:
        path = segment_path(camera_id, start, duration, utc_hour(start))
        (media / path).parent.mkdir(parents=True, exist_ok=True)
        (media / path).write_bytes(b"G" * size)
        return SegmentFinished(
            camera_id=camera_id, path=path, started_at=start, clock_trusted=True, duration=duration, size=size,
            codec="avc1.64001f",
        )  # fmt: skip

    return write


async def test_start_up_finishes_deletions_drops_lost_rows_and_adopts_files(store, index, media, put):
    kept, lost, garbage = put(START), put(START + 2_000_000), put(START + 4_000_000)
    await store.segments.add([garbage])
    assert len(await store.segments.discard(Choice(at_least=1))) == 1
    await store.segments.add([kept, lost])
    (media / lost.path).unlink()
    adopted = [put(START + 3_600_000_000 + n * 2_000_000, camera_id=8, size=188 * (1 + n)) for n in range(3)]
    late = put(START + 3_700_000_000, camera_id=8)
    (media / "8" / "2026010113" / "123.part").write_bytes(b"x")
    (media / "clips").mkdir()
    (media / "clips" / "5.mp4").write_bytes(b"x")
    (media / ".marker").write_text("x")

    untold = await index.recover((7, 8))

    last = adopted[-1]
    assert untold == (UnreportedGap(8, last.started_at + last.duration, late.started_at),)
    assert await store.segments.paths() == {kept.path, late.path, *(item.path for item in adopted)}
    assert not (media / garbage.path).exists()
    assert (media / "clips" / "5.mp4").exists()
    rows = await store.segments.between(8, 0, 2**60)
    assert [(row.size, row.gap) for row in rows] == [
        (188, GapReason.NONE), (376, GapReason.NONE), (564, GapReason.NONE), (188, GapReason.WORKER),
    ]  # fmt: skip
    assert index.covered_until(7) == START + 2_000_000
    assert index.covered_until(8) == late.started_at + late.duration
    assert index.covered_until(9) is None

    await index.recover((7, 8))  # a second time finds nothing to do
    assert len(await store.segments.paths()) == 5


async def test_each_folder_is_listed_a_few_times_at_start_however_many_cameras_there_are(
    store, index, put, monkeypatch
):
    cameras = range(100, 180)
    recorded = [put(START + n * 2_000_000, camera_id=camera_id) for n in range(30) for camera_id in cameras]
    await store.segments.add(recorded)
    listed = Counter()

    def listing(folder):
        listed[folder] += 1
        return iterdir(folder)

    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", listing)
    await index.recover(tuple(cameras))
    hours = {folder: times for folder, times in listed.items() if folder.name == utc_hour(START)}
    assert len(hours) == len(cameras)
    assert max(hours.values()) <= 3
    assert len(await store.segments.paths()) == len(recorded)


async def test_footage_that_is_no_longer_on_the_disk_is_told_once_for_each_camera(store, index, media, put):
    reports = [put(START + n * 2_000_000, camera_id=camera_id) for n in range(3) for camera_id in (7, 8)]
    await store.segments.add(reports)
    shutil.rmtree(media / "7")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(index.run())
        for _ in range(2):
            await index.recover((7, 8))
        await index.flush()
        running.cancel()
    (event,) = await store.events.latest(limit=10)
    assert (event.type, event.device_id) == (EventKind.FOOTAGE_GAP, 7)
    assert json.loads(event.data) == {
        "reason": "lost", "files": 3, "seconds": 6.0, "from": START, "until": START + 6_000_000,
    }  # fmt: skip
    assert "6.0 s of footage" in event.description
    assert len(await store.segments.paths()) == 3


async def test_files_that_a_disk_cut_off_are_left_for_a_worker_to_save(store, index, media, put):
    whole, row_left, no_row = put(START, size=376), put(START + 2_000_000, size=376), put(START + 4_000_000, size=188)
    await store.segments.add([whole, row_left])
    (media / row_left.path).write_bytes(b"G" * 188)
    (media / no_row.path).write_bytes(b"G" * 100)
    await index.recover((7,))
    assert await store.segments.paths() == {whole.path}
    assert {file.name for file in (media / "7" / "2026010112").iterdir()} == {
        whole.path.rpartition("/")[2], f"{START + 2_000_000}.part", f"{START + 4_000_000}.part",
    }  # fmt: skip


async def test_what_a_clock_that_was_never_set_stamped_is_not_believed(store, index, put, clock, monkeypatch):
    put(START)
    put(7_200_000_000)
    monkeypatch.setattr(clock, "wall", lambda: Stamp(START + 3_600_000_000, trusted=True))
    await index.recover((7,))
    rows = await store.segments.between(7, 0, 2**60)
    assert [(row.started_at, row.clock_trusted) for row in rows] == [(7_200_000_000, False), (START, True)]


async def test_footage_of_a_clock_that_stood_in_the_future_covers_nothing(store, index, put, clock):
    ahead = clock.wall().micros + 30 * 86_400_000_000
    await store.segments.add([put(START), put(ahead, camera_id=8)])
    put(ahead)
    await index.recover((7, 8))
    assert index.covered_until(7) == START + 2_000_000
    assert index.covered_until(8) is None


async def test_many_rows_are_walked_in_steps(store, index, media, put):
    reports = [put(START + n * 2_000_000) for n in range(2100)]
    await store.segments.add(reports)
    for report in reports[::500]:
        (media / report.path).unlink()
    await index.recover((7,))
    assert len(await store.segments.paths()) == 2095


async def test_reports_become_rows_and_events_in_their_order(store, index, put, events_of):
    async with asyncio.TaskGroup() as group:
        running = group.create_task(index.run())
        for n in range(300):
            index.offer(put(START + n * 2_000_000))
        index.offer(put(START))  # told twice
        for n in range(3):
            index.tell(Event(kind=EventKind.CAMERA_LOST, date_at=n, clock_trusted=True, text=str(n)))
        await index.flush()
        running.cancel()
    assert len(await store.segments.paths()) == 300
    assert [event.description for event in await events_of(EventKind.CAMERA_LOST)] == ["0", "1", "2"]
    assert index.covered_until(7) == START + 300 * 2_000_000


async def test_files_whose_report_died_with_the_worker_are_adopted(store, index, put):
    told, untold = put(START), put(START + 2_000_000)
    put(START, camera_id=8)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(index.run())
        index.offer(told)
        assert [found.path for found in await index.adopt(frozenset({7}))] == [untold.path]
        running.cancel()
    (first, second) = await store.segments.between(7, 0, 2**60)
    assert first.codec == "avc1.64001f"
    assert (second.size, second.duration, second.gap) == (188, 2_000_000, GapReason.NONE)
    assert await store.segments.between(8, 0, 2**60) == ()


async def test_a_sweep_adopts_what_nobody_told_of_for_a_while(store, index, put, clock):
    now = clock.wall().micros
    settled, fresh = put(now - 80_000_000), put(now - 5_000_000)
    await index.sweep(frozenset({7}))
    assert await store.segments.paths() == {settled.path}
    await store.segments.add([fresh])  # its report comes as it should


async def test_a_row_goes_only_after_its_file(store, index, media, put):
    report = put(START)
    await store.segments.add([report])
    rows = await store.segments.discard(Choice(at_least=1))
    (media / report.path).unlink()
    (media / report.path).mkdir()  # what cannot be unlinked
    with pytest.raises(StoreError, match="cannot be deleted"):
        await index.delete(rows)
    assert await store.segments.garbage() == rows
    (media / report.path).rmdir()
    await index.delete(rows)
    assert await store.segments.garbage() == ()
    assert not (media / report.path).parent.exists()
