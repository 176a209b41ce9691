"""Clips and thumbnails, made from footage on request and cached.

The files are in the media folder beside the footage (`clips/`, `thumbs/`, `stills/`), limited in bytes: the least
recently used are deleted first.

Each file is made by a job that belongs to no caller. If a caller is cancelled or its wait is too long, the job goes on
for the others, and the file is there at the next request.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import compress
from pathlib import Path

from drivers.rtsp.frames import Entry
from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.domain.footage import CutClip, Missing, TakeThumbnail, continues, of_clip
from gateway.domain.passages import CameraEvent
from gateway.recording import media_files, readiness
from gateway.recording.readiness import Coverage
from gateway.recording.worker_client import WorkerClient
from gateway.runtime.clock import Clock
from gateway.runtime.data_folder import MADE_OF_FOOTAGE
from gateway.store import Segment
from gateway.store.footage.segments import Segments
from gateway.texts import listed, text

LONGEST_LEAD_IN = 60_000_000
"""The longest footage to decode before a moment, in micros; pictures that are incomplete after that stay so."""

CLIPS, THUMBNAILS, STILLS = MADE_OF_FOOTAGE
_MOST_CLIP_BYTES = 1_000_000_000
_MOST_THUMBNAIL_BYTES = 100_000_000
_MOST_STILL_BYTES = 10_000_000
_FRESH_SECONDS = 10.0
_LONGEST_CLIP_SEGMENTS = 1000
_CLIP_NAME = re.compile(r"[0-9]{1,20}(-[0-9]{1,20}-[0-9]{1,20})?\.mp4")
_THUMBNAIL_NAME = re.compile(r"[0-9]{1,20}\.jpg")
_STILL_NAME = re.compile(r"[0-9]{1,20}-[0-9]{1,20}\.jpg")

MOST_JOBS = 64
LONGEST_WAIT_SECONDS = 50.0
_RETRY_SECONDS = 5

Make = Callable[[str], Awaitable[None]]


def lead_in(earlier: Sequence[Segment], first: Segment, moment: int) -> tuple[Segment, ...]:
    """Choose the segments to decode before `first` so that its pictures are complete at `moment` (wall micros).

    `earlier` are its camera's segments before it, by start. If `first` begins with an entry point that gives complete
    pictures in time, none is chosen. If no segment does, all that lead up to `first` without a gap are chosen.
    """
    chain = [first]
    for segment in (*reversed(earlier), None):
        oldest = chain[-1]
        if oldest.entry is not Entry.NONE and oldest.started_at + oldest.whole_after <= max(moment, first.started_at):
            break
        if segment is None or not continues(segment.edge, oldest.edge):
            break
        chain.append(segment)
    return tuple(reversed(chain[1:]))


class FileJobs:
    """The jobs that make files: one for each file at a time, at most MOST_JOBS in all. Keep `run` alive as a task."""

    def __init__(self, *, most: int = MOST_JOBS, longest_wait_seconds: float = LONGEST_WAIT_SECONDS) -> None:
        self._most = most
        self._longest_wait_seconds = longest_wait_seconds
        self._jobs: dict[Path, asyncio.Future[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    @property
    def count(self) -> int:
        """The number of files that are being made."""
        return len(self._jobs)

    async def run(self) -> None:
        """Own the jobs until cancelled, and cancel them then."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    async def done(self, path: Path, make: Callable[[], Awaitable[None]]) -> None:
        """Wait until the job of this file is done; begin it unless it runs already.

        Raises what the job raised, and CameraUnavailable if there are too many jobs or the wait is too long.
        """
        job = self._jobs.get(path) or self._begin(path, make)
        done, _ = await asyncio.wait([job], timeout=self._longest_wait_seconds)
        if not done:
            raise CameraUnavailable(text("refused.still_being_made"), retry_after=_RETRY_SECONDS)
        job.result()

    async def settled(self, path: Path) -> None:
        """Wait until no job makes this file."""
        while (job := self._jobs.get(path)) is not None:
            await asyncio.wait([job])

    def _begin(self, path: Path, make: Callable[[], Awaitable[None]]) -> asyncio.Future[None]:
        if self._group is None:
            raise CameraUnavailable(text("refused.recording_starts"))
        if len(self._jobs) >= self._most:
            raise CameraUnavailable(
                text("refused.too_many_clips", count=str(len(self._jobs))),
                retry_after=_RETRY_SECONDS,
            )
        job: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._group.create_task(self._make(path, make, job), name=f"make {path.name}")
        self._jobs[path] = job
        return job

    async def _make(self, path: Path, make: Callable[[], Awaitable[None]], job: asyncio.Future[None]) -> None:
        try:
            await make()
        except asyncio.CancelledError:
            job.set_exception(CameraUnavailable(text("refused.recording_stops")))
            raise
        except Exception as error:  # noqa: BLE001 (raised again in each waiting caller)
            job.set_exception(error)
        else:
            job.set_result(None)
        finally:
            del self._jobs[path]
            job.exception()  # marks it as retrieved, so that asyncio does not warn if no caller waits any more


class CachedFiles:
    """The cached files of one folder, bounded in bytes: the least recently used are deleted first."""

    def __init__(self, *, media: Path, folder: str, names: re.Pattern[str], most_bytes: int, jobs: FileJobs) -> None:
        self._media = media
        self._folder = folder
        self._names = names
        self._most_bytes = most_bytes
        self._jobs = jobs

    async def open(self) -> None:
        """Make the folder, and remove files that were left incomplete. Raises OSError."""
        await asyncio.to_thread(media_files.remove_strays, self._media / self._folder, keep=self._names)

    async def get(self, name: str, make: Make) -> Path:
        """Return the file of that name. If it is missing, `make` is called with its path within the media folder.

        Raises what `make` raises, and CameraUnavailable if the folder cannot be used or too many files are being made.
        """
        path = self._media / self._folder / name
        try:
            if not await asyncio.to_thread(_touched, path):
                await self._jobs.done(path, partial(self._made, path, make))
        except OSError as error:
            raise CameraUnavailable(text("refused.media_unusable", why=str(error.strerror))) from error
        return path

    async def forget(self, name: str) -> None:
        """Remove a file, if it exists, after its job has ended. Raises OSError."""
        path = self._media / self._folder / name
        await self._jobs.settled(path)
        await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _made(self, path: Path, make: Make) -> None:
        if await asyncio.to_thread(_touched, path):  # a job before this one has made it
            return
        await make(f"{self._folder}/{path.name}")
        await asyncio.to_thread(media_files.shrink, path.parent, most_bytes=self._most_bytes, spare=path)


def _touched(path: Path) -> bool:
    """Return whether the file exists, and set its access time to now. Its other time stays, for the ETag."""
    try:
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
    except FileNotFoundError:
        return False
    return True


class Clips:
    """Maker of MP4 clips and thumbnails, which a living worker cuts. Keep `run` alive as a task."""

    def __init__(
        self,
        *,
        segments: Segments,
        media: Path,
        clock: Clock,
        worker: Callable[[int], WorkerClient],
        coverage: Callable[[int], Coverage],
        missing: Callable[[Iterable[CameraEvent]], Awaitable[dict[int, tuple[Missing, ...]]]],
        boot_id: str = "",
        most_clip_bytes: int = _MOST_CLIP_BYTES,
    ) -> None:
        """Keep the collaborators.

        Args:
            segments: the rows of footage.
            media: the media folder.
            clock: both clocks.
            worker: returns the client of a living worker for a camera, or raises CameraUnavailable.
            coverage: returns up to which time a camera has footage.
            missing: returns the spans of camera events without footage.
            boot_id: the present boot, "" if unknown.
            most_clip_bytes: the greatest size of all cached clips.
        """
        self._segments = segments
        self._clock = clock
        self._worker = worker
        self._coverage = coverage
        self._missing = missing
        self._boot_id = boot_id
        self._jobs = FileJobs()
        cached = partial(CachedFiles, media=media, jobs=self._jobs)
        self._clips = cached(folder=CLIPS, names=_CLIP_NAME, most_bytes=most_clip_bytes)
        self._thumbnails = cached(folder=THUMBNAILS, names=_THUMBNAIL_NAME, most_bytes=_MOST_THUMBNAIL_BYTES)
        self._stills = cached(folder=STILLS, names=_STILL_NAME, most_bytes=_MOST_STILL_BYTES)
        self._latest: dict[int, tuple[float, int]] = {}

    async def open(self) -> None:
        """Make the folders, and remove incomplete files. Raises OSError."""
        await self._clips.open()
        await self._thumbnails.open()
        await self._stills.open()

    async def run(self) -> None:
        """Run the jobs that make files until cancelled."""
        await self._jobs.run()

    async def footage(self, event: CameraEvent) -> tuple[Segment, ...]:
        """Return the segments of an event, by start; at least one.

        Raises:
            CameraUnavailable: there is no footage yet, but some may come.
            NotFoundError: there is no footage and none will come.
        """
        segments, _ = await self._footage(event)
        return segments

    async def _footage(self, event: CameraEvent) -> tuple[tuple[Segment, ...], bool]:
        """Return the segments of an event, and whether they are all that will come. Raises as `footage`."""
        complete = self.is_complete(event)  # asked first: if it is complete now, the rows read next are all of them
        segments = await self._segments.of_event(event)
        if segments:
            return segments, complete
        if complete:
            missing = (await self._missing((event,)))[event.id]
            why = listed([gap.why for gap in missing])
            if event.id:
                raise NotFoundError(text("refused.no_footage_of", event=str(event.id), why=why))
            raise NotFoundError(text("refused.no_footage_then", camera=str(event.camera_id), why=why))
        raise self._still_recording(event)

    async def clip(self, event: CameraEvent) -> Path:
        """Return the event's clip, in the codec of most of its footage.

        Raises NotFoundError if there is no footage, CameraUnavailable with one sentence if it cannot be made now.
        """

        async def cut(output: str) -> None:
            footage, complete = await self._footage(event)
            if not complete:
                raise self._still_recording(event)
            fitting = of_clip([segment.edge for segment in footage], event.pinned_from, event.pinned_until)
            segments = tuple(compress(footage, fitting))
            lead = await self._lead_in(segments[0], event.pinned_from)
            if len(segments) > _LONGEST_CLIP_SEGMENTS:
                raise CameraUnavailable(f"{event.called} is too long for one clip; use its playlist")
            clip = CutClip(
                segments=tuple(segment.path for segment in (*lead, *segments)),
                output=output,
                skip=sum(segment.duration for segment in lead) + max(0, event.pinned_from - segments[0].started_at),
                leave_off=max(0, segments[-1].ended_at - event.pinned_until),
            )
            await self._worker(event.camera_id).cut(clip)

        name = f"{event.id}.mp4" if event.id else f"{event.camera_id}-{event.pinned_from}-{event.pinned_until}.mp4"
        return await self._clips.get(name, cut)

    async def event_thumbnail(self, event: CameraEvent) -> Path:
        """Return a picture of the moment of the event. Raises as `clip`."""

        async def take(output: str) -> None:
            segments, complete = await self._footage(event)
            nearest = min(segments, key=lambda segment: _distance(segment, event.date_at))
            if nearest.ended_at <= event.date_at and not complete:
                raise self._still_recording(event)
            await self._take(nearest, event.date_at, output)

        return await self._thumbnails.get(f"{event.id}.jpg", take)

    async def forget(self, camera_event_id: int) -> None:
        """Remove the clip and the thumbnail of a deleted camera event. Raises OSError."""
        await self._clips.forget(f"{camera_event_id}.mp4")
        await self._thumbnails.forget(f"{camera_event_id}.jpg")

    async def camera_thumbnail(self, camera_id: int) -> Path:
        """Return a picture of the camera's newest footage, at most about 10 s behind it.

        Raises NotFoundError if the camera has no footage, CameraUnavailable with one sentence.
        """
        now = self._clock.monotonic()
        at, shown = self._latest.get(camera_id, (float("-inf"), 0))
        if now - at > _FRESH_SECONDS:
            latest = await self._segments.latest(camera_id)
            if latest is None:
                raise NotFoundError(text("refused.footage_of_camera_missing", camera=str(camera_id)))
            shown = latest.started_at
            self._latest[camera_id] = (now, shown)

        async def take(output: str) -> None:
            newest = await self._segments.between(camera_id, shown, shown + 1)
            if not newest:
                raise NotFoundError(text("refused.footage_of_camera_missing", camera=str(camera_id)))
            await self._take(newest[-1], newest[-1].started_at, output)

        return await self._stills.get(f"{camera_id}-{shown}.jpg", take)

    async def _take(self, segment: Segment, moment: int, output: str) -> None:
        """Make the picture of a segment that is nearest to a moment (wall micros), at the path `output`."""
        moment = max(segment.started_at, min(moment, segment.ended_at - 1))
        lead = await self._lead_in(segment, moment)
        asked = TakeThumbnail(
            segments=tuple(each.path for each in (*lead, segment)),
            at=sum(each.duration for each in lead) + moment - segment.started_at,
            output=output,
        )
        await self._worker(segment.camera_id).take(asked)

    async def _lead_in(self, first: Segment, moment: int) -> tuple[Segment, ...]:
        begin = first.started_at - LONGEST_LEAD_IN
        earlier = await self._segments.between(first.camera_id, begin, first.started_at)
        return lead_in([segment for segment in earlier if segment.id != first.id], first, moment)

    def _still_recording(self, event: CameraEvent) -> CameraUnavailable:
        coverage, at = readiness.read(self._clock, self._boot_id).of(event, self._coverage(event.camera_id))
        return readiness.not_yet(event, coverage, now=at)

    def is_complete(self, event: CameraEvent) -> bool:
        """Return whether no more footage of an event will come."""
        coverage, at = readiness.read(self._clock, self._boot_id).of(event, self._coverage(event.camera_id))
        return readiness.is_complete(event, coverage, now=at)


def _distance(segment: Segment, moment: int) -> int:
    return max(segment.started_at - moment, moment - segment.ended_at + 1, 0)
