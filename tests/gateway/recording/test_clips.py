"""Clips of events."""

from __future__ import annotations

import asyncio

from hostile_camera import film, joined

from gateway.camera_worker.clip import cut_clip
from gateway.camera_worker.segmenter import Segmenter
from gateway.clock import Stamp
from gateway.domain.footage import ClipCut, CutClip, GapReason, Missing
from gateway.recording.clips import Clips
from gateway.recording.readiness import Coverage


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
    async with asyncio.TaskGroup() as group:
        running = group.create_task(clips.run())
        await asyncio.sleep(0)
        await clips.clip(event)
        running.cancel()
    changed = segments[0].started_at + 800_000
    missing = (await store.segments.missing((event,)))[event.id]
    assert missing == (Missing(event.pinned_from, changed, GapReason.CODEC),)
    assert [cut.duration for cut in cutter.made] == [event.pinned_until - changed]
