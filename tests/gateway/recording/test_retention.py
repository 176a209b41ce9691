"""Footage is kept within its limits, the footage of events last of all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.events import EventKind
from gateway.domain.footage import SegmentFinished, segment_path
from gateway.recording.index import FootageIndex, utc_hour
from gateway.recording.retention import Retention, StorageLimits, StorageUse, bytes_to_free, must_pause

SIZE = 1000


@given(*(st.integers(0, 10**13) for _ in range(4)))
def test_freeing_that_much_satisfies_both_limits(footage, free, cap, floor):
    limits = StorageLimits(cap=cap, floor=floor, keep_days=1)
    wanted = bytes_to_free(StorageUse(footage=footage, free=free), limits)
    assert bytes_to_free(StorageUse(footage=footage - wanted, free=free + wanted), limits) == 0
    assert wanted >= 0


def test_cameras_pause_before_the_disk_is_full_and_only_then():
    limits = StorageLimits(cap=10, floor=100, keep_days=1)
    assert not must_pause(StorageUse(footage=1000, free=50), limits, paused=False)
    assert must_pause(StorageUse(footage=0, free=49), limits, paused=False)
    assert must_pause(StorageUse(footage=0, free=99), limits, paused=True)
    assert not must_pause(StorageUse(footage=0, free=100), limits, paused=True)


@pytest.fixture
def media(tmp_path):
    (tmp_path / "media").mkdir()
    return tmp_path / "media"


@pytest.fixture
async def footage(store, media, clock):
    """Twenty segments of 1000 bytes, 2 s each, the last one ending now."""
    reports = []
    begin = clock.wall().micros - 40_000_000
    for n in range(20):
        start = begin + n * 2_000_000
        path = segment_path(7, start, 2_000_000, utc_hour(start))
        (media / path).parent.mkdir(parents=True, exist_ok=True)
        (media / path).write_bytes(b"x" * SIZE)
        reports.append(
            SegmentFinished(
                camera_id=7, path=path, started_at=start, clock_trusted=True, duration=2_000_000, size=SIZE
            )
        )  # fmt: skip
    await store.segments.add(reports)
    return reports


@pytest.fixture
def keeper(store, media, clock):
    """Retention with these limits, and the index that it tells."""

    def make(*, cap=10**12, floor=0, starved=lambda _: None, fault=""):
        index = FootageIndex(store=store, media=media, clock=clock)
        retention = Retention(
            store=store, index=index, media=media, limits=StorageLimits(cap=cap, floor=floor, keep_days=1),
            clock=clock, starved=starved, media_fault=lambda: fault,
        )  # fmt: skip
        return retention, index

    return make


async def test_the_oldest_go_first_and_footage_of_events_stays(store, footage, keeper, pin, media):
    await pin(7, before=2, after=1, at=footage[3].started_at)  # segments 2 and 3
    retention, _ = keeper(cap=12 * SIZE)
    await retention.look()
    left = [report for number, report in enumerate(footage) if number in (2, 3) or number >= 10]
    assert await store.segments.paths() == {report.path for report in left}
    assert {str(path.relative_to(media)) for path in media.glob("*/*/*.ts")} == {report.path for report in left}
    assert await store.segments.garbage() == ()


async def test_what_only_events_hold_is_never_deleted_and_told_once(store, footage, keeper, pin, events_of):
    await pin(7, before=60, after=60)
    paused = []
    retention, index = keeper(cap=SIZE, floor=10**15, starved=paused.append)
    for _ in range(3):
        await retention.look()
    assert len(await store.segments.paths()) == 20
    assert paused == [True] * 3
    await index._write()
    (low,) = await events_of(EventKind.STORAGE_LOW)
    assert "pause" in low.description


async def test_a_deletion_that_was_cut_short_is_finished(store, footage, keeper, media):
    chosen = await store.segments.discard(at_least=3 * SIZE, pinned_after=0)
    retention, _ = keeper()
    await retention.look()
    assert await store.segments.garbage() == ()
    assert len(list(media.glob("*/*/*.ts"))) == 17
    assert len(chosen) == 3
