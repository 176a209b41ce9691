"""Footage of one camera on disk, with clips that are really cut, and no camera or worker process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

from hostile_camera import film, joined, on_time

from gateway.camera_worker.clip import cut_clip
from gateway.camera_worker.pre_roll import ToDisk
from gateway.camera_worker.segmenter import Segmenter
from gateway.domain.footage import ClipCut, CutClip, GapReason
from gateway.recording.chain import FootageChain
from gateway.recording.clips import Clips
from gateway.recording.readiness import Coverage
from gateway.runtime.clock import Stamp, SystemClock

CAMERA = 201


class CutFootage:
    """The part of `Recording` that gives footage away, over five seconds of film that ended a minute ago."""

    def __init__(self, store, media: Path) -> None:
        self._store, self.media, self._clock = store, media, SystemClock()
        self._chain = FootageChain(links=store.chain_links, media=media)
        self.begin = self._clock.wall().micros - 60_000_000
        self.end = self.begin
        self.made: list[ClipCut] = []
        self.clips = Clips(
            segments=store.segments,
            media=media,
            clock=self._clock,
            worker=lambda _: self,
            coverage=lambda _: Coverage(until=self.end, more_may_come=False, since=self.begin),
            missing=store.segments.missing,
        )

    async def record(self) -> None:
        segments = []
        segmenter = Segmenter(
            camera_id=CAMERA,
            media=self.media,
            segment_seconds=1.0,
            shelf=ToDisk(media=self.media, finished=segments.append),
        )
        for frame in joined(film(frames=125)):
            segmenter.push(on_time(frame), Stamp(self.begin + frame.pts * 100 // 9, trusted=True))
        segmenter.disconnect(GapReason.NONE)
        self.end = segments[-1].started_at + segments[-1].duration
        await self._store.segments.add(segments)

    async def cut(self, clip: CutClip) -> None:
        self.made.append(await asyncio.to_thread(cut_clip, self.media, clip))

    def cameras(self):
        return (SimpleNamespace(camera_id=CAMERA, name="Entry"),)

    async def clip(self, camera_event) -> Path:
        return await self.clips.clip(camera_event)

    async def parts(self, camera_event):
        return tuple((self.media / part.path, part) for part in await self.clips.footage(camera_event))

    async def missing(self, camera_events):
        return await self._store.segments.missing(camera_events)

    async def leaves(self, camera_id, *, after, before):
        return await self._chain.leaves(camera_id, after=after, before=before)


@asynccontextmanager
async def cut_footage(store, media: Path) -> AsyncIterator[CutFootage]:
    """Footage whose clips can be cut while the context lasts."""
    footage = CutFootage(store, media)
    await footage.clips.open()
    await footage.record()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(footage.clips.run())
        await asyncio.sleep(0)
        yield footage
        running.cancel()
