"""Files made on request: once at a time, bounded, and whole."""

from __future__ import annotations

import asyncio
import os
import re

import pytest
from hostile_camera import film, joined

from gateway.camera_worker.clip import cut_clip
from gateway.camera_worker.segmenter import Segmenter
from gateway.clock import Stamp
from gateway.domain.errors import CameraUnavailable
from gateway.domain.footage import ClipCut, CutClip, GapReason, Missing
from gateway.recording.clips import Clips, KeptFiles
from gateway.recording.readiness import Coverage


@pytest.fixture
def kept(tmp_path):
    return KeptFiles(media=tmp_path, folder="clips", names=re.compile(r"\d+\.mp4"), most_bytes=250)


async def test_a_file_is_made_once_however_many_ask(kept, tmp_path):
    await kept.open()
    made = []
    go_on = asyncio.Event()

    async def make(output):
        made.append(output)
        await go_on.wait()
        (tmp_path / output).write_bytes(b"x")

    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(kept.get("5.mp4", make)) for _ in range(5)]
        await asyncio.sleep(0)
        go_on.set()
    assert {task.result() for task in asking} == {tmp_path / "clips" / "5.mp4"}
    assert made == ["clips/5.mp4"]
    assert kept._making == {}


async def test_a_failure_is_told_and_the_next_may_try_again(kept, tmp_path):
    await kept.open()

    async def fail(output):
        raise CameraUnavailable("gone")

    async def make(output):
        (tmp_path / output).write_bytes(b"x")

    with pytest.raises(CameraUnavailable):
        await kept.get("5.mp4", fail)
    assert (await kept.get("5.mp4", make)).read_bytes() == b"x"


async def test_what_was_used_longest_ago_goes_first(kept, tmp_path):
    await kept.open()

    async def make(output):
        (tmp_path / output).write_bytes(b"x" * 100)

    for number in (1, 2):
        path = await kept.get(f"{number}.mp4", make)
        os.utime(path, (number, number))
    made_at = (tmp_path / "clips" / "1.mp4").stat().st_mtime_ns
    used = await kept.get("1.mp4", make)
    assert used.stat().st_mtime_ns == made_at, "its ETag stays, so that a cache need not fetch it again"
    await kept.get("3.mp4", make)
    assert {path.name for path in (tmp_path / "clips").iterdir()} == {"1.mp4", "3.mp4"}


async def test_what_was_left_half_made_is_removed(kept, tmp_path):
    (tmp_path / "clips").mkdir()
    for name in ("1.mp4", ".2.mp4.99.tmp", "other"):
        (tmp_path / "clips" / name).write_bytes(b"x")
    await kept.open()
    assert {path.name for path in (tmp_path / "clips").iterdir()} == {"1.mp4"}


async def test_what_was_made_of_an_event_that_is_deleted_goes(kept, tmp_path):
    await kept.open()

    async def make(output):
        (tmp_path / output).write_bytes(b"clip")

    path = await kept.get("7.mp4", make)
    assert path.read_bytes() == b"clip"
    for _ in range(2):
        await kept.forget("7.mp4")
        assert not path.exists()


class Cutter:
    """A worker that does nothing but cut."""

    def __init__(self, media):
        self.media = media
        self.made: list[ClipCut] = []

    async def cut(self, clip: CutClip):
        self.made.append(await asyncio.to_thread(cut_clip, self.media, clip))


async def test_what_a_clip_leaves_out_for_its_codec_is_told(tmp_path, store, clock, pin):
    start = clock.wall().micros - 60_000_000
    segments = []
    segmenter = Segmenter(camera_id=7, media=tmp_path, segment_seconds=1.0, finished=segments.append)
    for frame in joined(film("h265", frames=20), film(frames=50)):
        segmenter.push(frame, Stamp(start + frame.dts * 100 // 9, trusted=True))
    segmenter.disconnect(GapReason.NONE)
    await store.segments.add(segments)
    event = await pin(7, before=0.0, after=2.5, at=segments[0].started_at + 100_000)
    cutter = Cutter(tmp_path)
    coverage = Coverage(until=start + 10_000_000, more_may_come=False, since=start)
    clips = Clips(store=store, media=tmp_path, clock=clock, worker=lambda _: cutter, coverage=lambda _: coverage)
    await clips.open()
    await clips.clip(event)
    changed = segments[0].started_at + 800_000
    missing = (await store.segments.missing((event,)))[event.id]
    assert missing == (Missing(event.pinned_from, changed, GapReason.CODEC),)
    assert [cut.duration for cut in cutter.made] == [event.pinned_until - changed]
