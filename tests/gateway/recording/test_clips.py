"""Clips of events."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hostile_camera import film, joined, on_time

from gateway.camera_worker.clip import cut_clip
from gateway.camera_worker.pre_roll import ToDisk
from gateway.camera_worker.segmenter import Segmenter
from gateway.domain.errors import CameraUnavailable
from gateway.domain.footage import ClipCut, CutClip, GapReason, Missing
from gateway.recording.clips import Clips
from gateway.recording.readiness import Coverage
from gateway.runtime.clock import Stamp


class Cutter:
    """A worker that does nothing but cut."""

    def __init__(self, media):
        self.media = media
        self.made: list[ClipCut] = []

    async def cut(self, clip: CutClip):
        self.made.append(await asyncio.to_thread(cut_clip, self.media, clip))


@contextlib.asynccontextmanager
async def at_work(clips):
    await clips.open()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(clips.run())
        await asyncio.sleep(0)
        yield
        running.cancel()


async def test_a_clip_whose_last_footage_comes_while_it_is_looked_for_is_not_cut_short(
    tmp_path, store, clock, pin, monkeypatch
):
    start = clock.wall().micros - 2_000_000
    segments = []
    segmenter = Segmenter(
        camera_id=7, media=tmp_path, segment_seconds=1.0, shelf=ToDisk(media=tmp_path, finished=segments.append)
    )
    for frame in joined(film(frames=50)):
        segmenter.push(on_time(frame), Stamp(start + frame.pts * 100 // 9, trusted=True))
    segmenter.disconnect(GapReason.NONE)
    *early, last = segments
    assert early
    await store.segments.add(early)
    event = await pin(7, before=0.0, after=(last.started_at + last.duration - start) / 1e6, at=start)
    covered = [last.started_at]
    of_event = store.segments.of_event

    async def overtaken(item):
        found = await of_event(item)
        await store.segments.add([last])
        covered[0] = last.started_at + last.duration
        return found

    cutter = Cutter(tmp_path)
    clips = Clips(
        segments=store.segments, media=tmp_path, clock=clock, worker=lambda _: cutter,
        coverage=lambda _: Coverage(until=covered[0], more_may_come=True, since=start),
        missing=store.segments.missing,
    )  # fmt: skip
    async with at_work(clips):
        monkeypatch.setattr(store.segments, "of_event", overtaken)
        with pytest.raises(CameraUnavailable, match="camera event") as told:
            await clips.clip(event)
        assert told.value.retry_after >= 1
        assert not cutter.made
        monkeypatch.undo()
        await clips.clip(event)
    (made,) = cutter.made
    assert abs(made.duration - (event.pinned_until - event.pinned_from)) < 100_000


async def test_what_a_clip_leaves_out_for_its_codec_is_told(tmp_path, store, clock, pin):
    start = clock.wall().micros - 60_000_000
    segments = []
    segmenter = Segmenter(
        camera_id=7, media=tmp_path, segment_seconds=1.0, shelf=ToDisk(media=tmp_path, finished=segments.append)
    )
    for frame in joined(film("h265", frames=20), film(frames=50)):
        segmenter.push(on_time(frame), Stamp(start + frame.pts * 100 // 9, trusted=True))
    segmenter.disconnect(GapReason.NONE)
    await store.segments.add(segments)
    event = await pin(7, before=0.0, after=2.5, at=segments[0].started_at + 100_000)
    cutter = Cutter(tmp_path)
    coverage = Coverage(until=start + 10_000_000, more_may_come=False, since=start)
    clips = Clips(
        segments=store.segments,
        media=tmp_path,
        clock=clock,
        worker=lambda _: cutter,
        coverage=lambda _: coverage,
        missing=store.segments.missing,
    )
    async with at_work(clips):
        await clips.clip(event)
    changed = segments[0].started_at + 800_000
    missing = (await store.segments.missing((event,)))[event.id]
    assert missing == (Missing(event.pinned_from, changed, GapReason.CODEC),)
    assert [cut.duration for cut in cutter.made] == [event.pinned_until - changed]
