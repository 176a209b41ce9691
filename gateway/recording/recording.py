"""Recording as the rest of the gateway sees it: cameras and their conditions, clips, thumbnails, playlists."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import structlog

from drivers.listening.places import Crowd
from gateway.domain.errors import CameraUnavailable, NotFoundError, StoreError
from gateway.domain.footage import CameraCondition, Missing, Pin
from gateway.domain.passages import CameraEvent
from gateway.recording import playlists
from gateway.recording.camera_workers import Fleet
from gateway.recording.cameras import CameraSnapshot
from gateway.recording.chain import FootageChain
from gateway.recording.clips import Clips
from gateway.recording.evidence_files import EvidenceFiles
from gateway.recording.forecast import StorageForecast, StorageLimits
from gateway.recording.incoming import EvidenceLimits
from gateway.recording.index import FootageIndex
from gateway.recording.live_hls import LiveHls, SegmentPaths
from gateway.recording.media_files import ANSWER_SECONDS, LOOK_SECONDS, MediaFolder, no_fault
from gateway.recording.readiness import Readiness
from gateway.recording.retention import ClockCorrection, Retention
from gateway.recording.viewing import Viewing
from gateway.recording.watch import CameraWatch
from gateway.recording.worker_pool import CameraWorker, RestartingWorker
from gateway.runtime.clock import Clock, boot_id
from gateway.runtime.supervision import Progress, Supervisor
from gateway.site import Camera, Secrets, Site, StorageSection
from gateway.store import Changes, Segment, Store
from gateway.store.footage.camera_events import CameraEvents
from gateway.texts import text

log = structlog.get_logger(__name__)

_FLUSH_SECONDS = 3.0
_NO_ROOM = (
    CameraCondition.DISK_FAILED,
    "the disk has less free space than must stay free; recording pauses until it has again",
)


_MICROS = 1_000_000
_LONGEST_WAIT_SECONDS = 600
"""The longest time (seconds) for which a worker holds pinned footage in memory while a disk is away, given room."""
_LOOK_SECONDS = 5.0
_MOST_PINS = 10_000


class PinWatch:
    """Sender of all pins whose footage is in a worker's memory or may still come. Keep `run` alive as a task."""

    def __init__(
        self,
        *,
        camera_events: CameraEvents,
        changes: Changes,
        cameras: Iterable[Camera],
        clock: Clock,
        boot_id: str = "",
    ) -> None:
        """Keep the collaborators. `boot_id`: the present boot; pins of this boot are also sent with monotonic times."""
        self._boot_id = boot_id
        self._camera_events = camera_events
        self._changes = changes
        self._clock = clock
        self._seconds: Mapping[int, int] = {}
        self.change(cameras)

    def change(self, cameras: Iterable[Camera]) -> None:
        """Set the site's cameras."""
        self._seconds = {camera.id: camera.pre_roll_seconds for camera in cameras if camera.record == "events"}

    @property
    def cameras(self) -> frozenset[int]:
        """The ids of cameras that are recorded for events only."""
        return frozenset(self._seconds)

    async def run(self, workers: Callable[[], tuple[CameraWorker, ...]]) -> None:
        """Send the present pins whenever something was recorded, and every 5 s, until cancelled."""
        version = -1
        while True:
            version = await self._changes.beyond(version, within=_LOOK_SECONDS)
            try:
                await self.look(workers())
            except StoreError as error:
                log.warning("pins_not_sent", error=str(error))

    async def look(self, workers: tuple[CameraWorker, ...]) -> None:
        """Send each worker the present pins of its cameras. Raises StoreError."""
        if not self._seconds:
            for worker in workers:
                await worker.pin(())
            return
        span = max(self._seconds.values()) + _LONGEST_WAIT_SECONDS
        since = self._clock.wall().micros - span * _MICROS
        pins: defaultdict[int, list[Pin]] = defaultdict(list)
        uptime = int(self._clock.monotonic() * _MICROS) - span * _MICROS
        found = await self._camera_events.pinned_since(self._seconds, since)
        lately = await self._camera_events.stamped_in(self._boot_id, pinned_after=uptime)
        for event in {event.id: event for event in (*found, *lately)}.values():
            if event.camera_id not in self._seconds:
                continue
            ours = event.boot_id == self._boot_id != ""
            pins[event.camera_id].append(
                Pin(
                    camera_id=event.camera_id,
                    begin=event.pinned_from,
                    until=event.pinned_until,
                    clock_offset=event.clock_offset if ours else None,
                )
            )
        for worker in workers:
            wanted = [pin for camera_id in sorted(worker.cameras & pins.keys()) for pin in pins[camera_id]]
            await worker.pin(wanted[-_MOST_PINS:])


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordingPlaces:
    """The folders of the recording.

    Attributes:
        media: the media folder.
        run_folder: the folder of the workers' sockets.
        media_fault: returns why the media folder must not be used, "" if it may; may block, in a thread.
        marker: a file in the media folder without which the workers write nothing there.
    """

    media: Path
    run_folder: Path
    media_fault: Callable[[], str] = no_fault
    marker: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordingPace:
    """The durations of the recording.

    Attributes:
        segment_seconds: the least duration of a segment, which ends before a keyframe.
        look_seconds: the time between two checks of the media folder.
        answer_seconds: the longest time for one check.
    """

    segment_seconds: float = 2.0
    look_seconds: float = LOOK_SECONDS
    answer_seconds: float = ANSWER_SECONDS


_USUAL_PACE = RecordingPace()


@dataclass(kw_only=True, eq=False)
class Recording:
    """Recorder of the site's cameras while `run` is alive, and access to their footage.

    `run` ends only by cancellation, after its workers; it may be run again. The store must outlive it.

    Attributes:
        site: the site file; its cameras may change later.
        store: the database.
        places: the media folder, and the folder of the workers' sockets.
        clock: wall and monotonic time.
        progress: the heartbeats of the workers.
        secrets: passwords of cameras.
        pace: the durations of segments and of checks.
    """

    site: Site
    store: Store
    places: RecordingPlaces
    clock: Clock
    progress: Progress
    secrets: Secrets
    pace: RecordingPace = _USUAL_PACE

    def __post_init__(self) -> None:
        self._media = self.places.media.absolute()
        self._boot_id = boot_id()
        self._cameras = self.site.cameras
        self._cameras_changed = False
        self._paused = False
        self._changed = asyncio.Event()

    @cached_property
    def viewing(self) -> Viewing:
        """Live views of the cameras."""
        return Viewing(cameras=self._camera_ids, workers=lambda: self._fleet.workers, most=self.site.live.viewers)

    @cached_property
    def live(self) -> LiveHls:
        """Live views of the cameras by HLS."""
        return LiveHls(
            segments=self.store.segments,
            links=self.store.chain_links,
            media=self._media,
            clock=self.clock,
            cameras=self._camera_ids,
            events_only=lambda: self._pins.cameras,
            ask_for_parts=self.viewing.want_parts,
            refuse=self._refuse_while_silent,
        )

    @cached_property
    def evidence_files(self) -> EvidenceFiles:
        """The files that people attached to camera events."""
        return EvidenceFiles(
            store=self.store,
            media=self._media,
            clock=self.clock,
            fault=lambda: self._folder.fault,
            limits=EvidenceLimits.of(self.site.storage),
        )

    @cached_property
    def _folder(self) -> MediaFolder:
        return MediaFolder(
            fault=self.places.media_fault,
            reopen=self._open_media,
            changed=self._changed.set,
            look_seconds=self.pace.look_seconds,
            answer_seconds=self.pace.answer_seconds,
        )

    @cached_property
    def _chain(self) -> FootageChain:
        return FootageChain(links=self.store.chain_links, media=self._media)

    @cached_property
    def _index(self) -> FootageIndex:
        return FootageIndex(
            segments=self.store.segments,
            journal=self.store.journal,
            media=self._media,
            clock=self.clock,
            chain=self._chain,
            added=self.live.rows_changed,
        )

    @cached_property
    def _pins(self) -> PinWatch:
        return PinWatch(
            camera_events=self.store.camera_events,
            changes=self.store.changes,
            cameras=self._cameras,
            clock=self.clock,
            boot_id=self._boot_id,
        )

    @cached_property
    def _watch(self) -> CameraWatch:
        return CameraWatch(
            names={camera.id: camera.name for camera in self._cameras},
            events_only=self._pins.cameras,
            index=self._index,
            changes=self.store.changes,
            clock=self.clock,
            live=self.live.parts.hear,
        )

    @cached_property
    def _fleet(self) -> Fleet:
        return Fleet(
            site=self.site,
            media=self._media,
            marker=self.places.marker,
            clock=self.clock,
            progress=self.progress,
            secrets=self.secrets,
            watch=self._watch,
            segment_seconds=self.pace.segment_seconds,
        )

    @cached_property
    def _readiness(self) -> Readiness:
        return Readiness(
            camera_events=self.store.camera_events,
            clock=self.clock,
            coverage=self._watch.coverage,
            boot_id=self._boot_id,
        )

    @cached_property
    def _clips(self) -> Clips:
        return Clips(
            segments=self.store.segments,
            media=self._media,
            clock=self.clock,
            worker=self._fleet.living,
            coverage=self._watch.coverage,
            missing=self.missing,
            boot_id=self._boot_id,
        )

    @cached_property
    def _segment_paths(self) -> SegmentPaths:
        return SegmentPaths(monotonic=self.clock.monotonic)

    @cached_property
    def _retention(self) -> Retention:
        correction = ClockCorrection(
            corrections=self.store.clock_corrections,
            index=self._index,
            clock=self.clock,
            boot_id=self._boot_id,
            moved=self._watch.footage_has_moved,
        )
        return Retention(
            index=self._index,
            limits=StorageLimits.of(self.site.storage),
            starved=self._starved,
            evidence_files=self.evidence_files,
            media_fault=lambda: self._folder.fault,
            first=correction.look,
            look_seconds=self.pace.look_seconds,
            boot_id=self._boot_id,
        )

    async def run(self) -> None:
        """Record until cancelled."""
        async with Supervisor(clock=self.clock) as lasting:
            lasting.keep("footage index", self._index.run)
            await self._folder.begin()
            lasting.keep("readiness", self._readiness.run)
            lasting.keep("footage chain", self._chain.run)
            try:
                self.places.run_folder.mkdir(mode=0o750, parents=True, exist_ok=True)
                await self._record()
            finally:
                self.live.parts.close()
                with contextlib.suppress(TimeoutError):  # segments without a row are adopted at the next start
                    async with asyncio.timeout(_FLUSH_SECONDS):
                        await self._index.flush()

    def change_cameras(self, cameras: tuple[Camera, ...]) -> None:
        """Set the site's cameras, and read their passwords again.

        An unchanged camera goes on without a gap, with its viewers. A changed camera is reconnected. The footage of a
        removed camera is kept.
        """
        self._cameras = cameras
        self._pins.change(cameras)
        self._watch.change({camera.id: camera.name for camera in cameras}, events_only=self._pins.cameras)
        self._cameras_changed = True
        self._changed.set()

    def change_limits(self, storage: StorageSection) -> None:
        """Set the limits of footage and evidence."""
        self._retention.limits = StorageLimits.of(storage)
        self.evidence_files.limits = EvidenceLimits.of(storage)

    def cameras(self) -> tuple[CameraSnapshot, ...]:
        """Return the site's cameras, in the order of the site file."""
        return self._watch.snapshots()

    def storage(self) -> StorageForecast | None:
        """Return the storage forecast, None before the first check."""
        return self._retention.forecast()

    async def clip(self, camera_event: CameraEvent) -> Path:
        """Return the event's clip as an MP4 file. Raises NotFoundError, or CameraUnavailable with one sentence."""
        self._refuse_while_silent()
        return await self._of_media(self._clips.clip(camera_event))

    async def parts(self, camera_event: CameraEvent) -> tuple[tuple[Path, Segment], ...]:
        """Return the segments of the event's clip, each with its file. Raises as `clip`."""
        self._refuse_while_silent()
        return tuple((self._media / part.path, part) for part in await self._clips.footage(camera_event))

    async def leaves(self, camera_id: int, *, after: int, before: int) -> tuple[str, ...] | None:
        """Return the leaves between two numbers of a camera's chain, both excluded; None if some are unknown."""
        return await self._chain.leaves(camera_id, after=after, before=before)

    async def missing(self, camera_events: Iterable[CameraEvent]) -> dict[int, tuple[Missing, ...]]:
        """Return the spans that each camera event's clip does not show, with reasons, by the camera event's id."""
        wanted = tuple(camera_events)
        found = await self.store.segments.missing(wanted)
        return {item.id: tuple(self._watch.explained(item.camera_id, gap) for gap in found[item.id]) for item in wanted}

    async def event_thumbnail(self, camera_event: CameraEvent) -> Path:
        """Return a JPEG of the moment of the event. Raises NotFoundError, or CameraUnavailable with one sentence."""
        self._refuse_while_silent()
        return await self._of_media(self._clips.event_thumbnail(camera_event))

    async def forget(self, camera_event_id: int) -> None:
        """Delete the clip, thumbnail and evidence of a deleted camera event. After a failure they are deleted later."""
        if self._folder.fault:
            return
        try:
            await self._clips.forget(camera_event_id)
            await self.evidence_files.delete_let_go()
        except (OSError, StoreError) as error:
            log.warning("camera_event_not_cleared", camera_event_id=camera_event_id, error=str(error))

    async def camera_thumbnail(self, camera_id: int) -> Path:
        """Return a JPEG of the camera's newest footage. Raises NotFoundError, CameraUnavailable."""
        self._refuse_while_silent()
        return await self._of_media(self._clips.camera_thumbnail(camera_id))

    async def vod_master(self, camera_event: CameraEvent) -> str:
        """Write the master playlist of the event's footage. Raises NotFoundError, CameraUnavailable."""
        return playlists.master(await self._clips.footage(camera_event))

    async def vod_media(self, camera_event: CameraEvent) -> str:
        """Write the media playlist, `index.m3u8`, with an end if no more footage will come. Raises as `vod_master`."""
        complete = self._clips.is_complete(camera_event)  # asked first: if complete, the next rows are all of them
        return playlists.media(await self._clips.footage(camera_event), complete=complete)

    async def vod_segment(self, camera_event: CameraEvent, segment_id: int) -> Path:
        """Return the MPEG-TS file of one of the event's segments. Raises NotFoundError for any other segment."""
        self._refuse_while_silent()
        place = (camera_event.camera_id, camera_event.pinned_from, camera_event.pinned_until, segment_id)
        if (known := self._segment_paths.get(place)) is not None:
            return known
        for segment in await self.store.segments.of_event(camera_event):
            if segment.id == segment_id:
                return self._segment_paths.note(place, self._media / segment.path)
        raise NotFoundError(text("refused.segment_unknown", event=str(camera_event.id), segment=str(segment_id)))

    def restarting_workers(self) -> tuple[RestartingWorker, ...]:
        """Return the workers that stop repeatedly."""
        return tuple(found for worker in self._fleet.workers if (found := worker.restarting) is not None)

    def rtsp_crowd(self) -> Crowd | None:
        """Return those for whom an RTSP server of the workers had no room in the last minute, None for none."""
        return next((worker.rtsp_crowd for worker in self._fleet.workers if worker.rtsp_crowd is not None), None)

    def worker_pids(self) -> tuple[int, ...]:
        """Return the process ids of the living workers, for diagnostics."""
        return tuple(worker.pid for worker in self._fleet.workers if worker.pid)

    def _refuse_while_silent(self) -> None:
        """Raise CameraUnavailable while the disk does not answer: it would hang the few threads that all share."""
        if not self._folder.answers:
            raise CameraUnavailable(self._folder.fault)

    async def _of_media(self, made: Awaitable[Path]) -> Path:
        """Await a file made from footage. If that fails because the disk is away, raise CameraUnavailable with that."""
        try:
            return await made
        except (CameraUnavailable, NotFoundError) as error:
            if fault := self._folder.fault or await self._folder.look():
                raise CameraUnavailable(fault) from error
            raise

    async def _open_media(self) -> str:
        """Prepare the media folder; return why it cannot be used, "" if it is ready."""
        try:
            await asyncio.to_thread(self._media.mkdir, mode=0o750, parents=True, exist_ok=True)
            await self._clips.open()
            await self.evidence_files.open()
            unreported = await self._index.recover(tuple(self._camera_ids()))
        except OSError as error:
            return f"the media folder cannot be used: {error.strerror}"
        except (StoreError, CameraUnavailable) as error:
            return str(error)
        self._watch.footage_is_indexed(unreported)
        return ""

    async def _record(self) -> None:
        try:
            await self._fleet.form(self._cameras, self.places.run_folder)
            await self._assign()
            async with Supervisor(clock=self.clock) as ending_first:
                ending_first.keep("retention", self._retention.run)
                ending_first.keep("media folder", self._folder.run)
                ending_first.keep("clips", self._clips.run)
                ending_first.keep("pins", lambda: self._pins.run(lambda: self._fleet.workers))
                ending_first.keep("footage sweep", lambda: self._index.sweep_on(self._camera_ids, self._folder))
                for worker in self._fleet.workers:
                    ending_first.keep(worker.name, worker.run)
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    if self._cameras_changed:
                        self._cameras_changed = False
                        for worker in await self._fleet.regroup(self._cameras):
                            ending_first.keep(worker.name, worker.run)
                    await self._assign()
        finally:
            self._fleet.disband()

    async def _assign(self) -> None:
        why_not = (CameraCondition.DISK_FAILED, self._folder.fault) if self._folder.fault else None
        await self._fleet.assign(why_not or (_NO_ROOM if self._paused else None), in_memory=self._pins.cameras)

    def _camera_ids(self) -> frozenset[int]:
        return frozenset(camera.id for camera in self._cameras)

    def _starved(self, paused: bool) -> None:  # noqa: FBT001 (a callback)
        if paused is not self._paused:
            self._paused = paused
            self._changed.set()
