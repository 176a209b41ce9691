"""Recording as the rest of the gateway sees it: cameras and their conditions, clips, thumbnails, playlists."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from gateway.clock import Clock, boot_id
from gateway.domain.errors import CameraUnavailable, ConfigError, NotFoundError, StoreError
from gateway.domain.footage import CameraCondition, RtspServing, WorkerCamera
from gateway.domain.passages import CameraEvent
from gateway.domain.viewing import LiveViewing
from gateway.recording import playlists
from gateway.recording.assignment import groups, regrouped, socket_folder, worker_camera
from gateway.recording.cameras import CameraSnapshot
from gateway.recording.chain import FootageChain
from gateway.recording.clips import Clips
from gateway.recording.clock_correction import ClockCorrection
from gateway.recording.exhibits import ExhibitFiles
from gateway.recording.forecast import StorageForecast, StorageLimits
from gateway.recording.found_files import FoundFiles
from gateway.recording.incoming import ExhibitLimits
from gateway.recording.index import FootageIndex
from gateway.recording.live_hls import LiveHls
from gateway.recording.media_folder import LOOK_SECONDS, MediaFolder, no_fault
from gateway.recording.pins import PinWatch
from gateway.recording.readiness import Readiness
from gateway.recording.retention import Retention
from gateway.recording.viewing import Viewing
from gateway.recording.watch import CameraWatch
from gateway.recording.worker_client import WorkerClient
from gateway.recording.workers import CAMERAS_PER_WORKER, CameraWorker
from gateway.site import Camera, Secrets, Site
from gateway.store import Segment, Store
from gateway.supervision import Progress, Supervisor

log = structlog.get_logger(__name__)

_GIGABYTE = 1_000_000_000
_MEGABYTE = 1_000_000
_FLUSH_SECONDS = 3.0
_SWEEP_SECONDS = 120.0
_NO_SECRET = (CameraCondition.REFUSED, "its password cannot be read at the gateway")
_NO_ROOM = (
    CameraCondition.DISK_FAILED,
    "the disk has less free space than must stay free; recording pauses until it has again",
)


class Recording:
    """Records the site's cameras while `run` is alive, and answers for their footage.

    `run` returns by cancellation alone, its workers ended in order. It is to be kept under a supervisor, and starts
    afresh when it is started again. The store must outlive it.
    """

    def __init__(
        self,
        *,
        site: Site,
        store: Store,
        media: Path,
        run_folder: Path,
        clock: Clock,
        progress: Progress,
        secrets: Secrets,
        media_fault: Callable[[], str] = no_fault,
        marker: str = "",
        segment_seconds: float = 2.0,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """`media_fault` says in one sentence why the media folder must not be used (unmounted, another disk), "" when
        it may; it is asked every `look_seconds` in a thread and may block. Without the file `marker` in the media
        folder nothing is written there, not even until the next time it is asked. `run_folder` takes the workers'
        sockets. A segment lasts at least `segment_seconds` and ends before a keyframe.
        """
        self._site = site
        self._store = store
        self._media = media.absolute()
        self._run_folder = run_folder
        self._clock = clock
        self._progress = progress
        self._secrets = secrets
        self._segment_seconds = segment_seconds
        self._workers: tuple[CameraWorker, ...] = ()
        self._wanted: dict[int, WorkerCamera] = {}
        self._cameras_changed = False
        self._marker = marker
        self._paused = False
        self._changed = asyncio.Event()
        self._folder = MediaFolder(
            fault=media_fault, reopen=self._open_media, changed=self._changed.set, look_seconds=look_seconds
        )
        self._chain = FootageChain(store=store, media=self._media)
        self._index = FootageIndex(store=store, media=self._media, clock=clock, chain=self._chain)
        self._pins = PinWatch(store=store, cameras=site.cameras, clock=clock, boot_id=boot_id())
        self._watch = CameraWatch(
            events_only=self._pins.cameras,
            names={camera.id: camera.name for camera in site.cameras},
            index=self._index,
            changes=store.changes,
            clock=clock,
        )
        self._readiness = Readiness(store=store, clock=clock, coverage=self._watch.coverage, boot_id=boot_id())
        self._clips = Clips(
            store=store,
            media=self._media,
            clock=clock,
            worker=self._living_worker,
            coverage=self._watch.coverage,
            boot_id=boot_id(),
        )
        self._exhibits = ExhibitFiles(
            store=store,
            media=self._media,
            clock=clock,
            fault=lambda: self._folder.fault,
            limits=ExhibitLimits(
                bytes_each=site.storage.evidence_megabytes * _MEGABYTE,
                per_event=site.storage.evidence_per_event,
                floor=int(site.storage.free_floor_gigabytes * _GIGABYTE) // 2,
            ),
        )
        self._found = FoundFiles(monotonic=clock.monotonic)
        self._live = LiveHls(store=store, media=self._media, clock=clock, cameras=self._camera_ids)
        self._viewing = Viewing(
            cameras=self._camera_ids,
            workers=lambda: self._workers,
            most=site.live.viewers,
        )
        self._retention = Retention(
            store=store,
            index=self._index,
            media=self._media,
            limits=StorageLimits(
                cap=int(site.storage.media_gigabytes * _GIGABYTE),
                floor=int(site.storage.free_floor_gigabytes * _GIGABYTE),
                continuous_days=site.storage.continuous_days,
                transaction_days=site.storage.transaction_days,
                incident_days=site.storage.incident_days,
            ),
            clock=clock,
            starved=self._starved,
            exhibits=self._exhibits,
            media_fault=lambda: self._folder.fault,
            first=ClockCorrection(
                store=store,
                index=self._index,
                clock=clock,
                boot_id=boot_id(),
                moved=self._watch.footage_has_moved,
            ).look,
            look_seconds=look_seconds,
            boot_id=boot_id(),
        )

    async def run(self) -> None:
        """Record until cancelled."""
        async with Supervisor(clock=self._clock) as lasting:
            lasting.keep("footage index", self._index.run)
            await self._folder.begin()
            lasting.keep("readiness", self._readiness.run)
            lasting.keep("footage chain", self._chain.run)
            try:
                with socket_folder(self._run_folder) as sockets:
                    await self._record(sockets)
            finally:
                with contextlib.suppress(TimeoutError):  # what has no row yet is adopted at the next start
                    async with asyncio.timeout(_FLUSH_SECONDS):
                        await self._index.flush()

    def change_cameras(self, cameras: tuple[Camera, ...]) -> None:
        """These are the site's cameras from now on, with the passwords as they are now. One that is as it was goes on
        without a gap, with its viewers; one that is not, is connected anew; the footage of one that is gone is kept.
        """
        self._site = self._site.model_copy(update={"cameras": cameras})
        self._pins.change(cameras)
        self._watch.change({camera.id: camera.name for camera in cameras}, events_only=self._pins.cameras)
        self._cameras_changed = True
        self._changed.set()

    @property
    def viewing(self) -> Viewing:
        """Live views of the cameras."""
        return self._viewing

    @property
    def live(self) -> LiveHls:
        """What the cameras record now, by HLS."""
        return self._live

    @property
    def exhibits(self) -> ExhibitFiles:
        """Files that people added to camera events."""
        return self._exhibits

    def cameras(self) -> tuple[CameraSnapshot, ...]:
        """The site's cameras, in the order of the site file."""
        return self._watch.snapshots()

    def storage(self) -> StorageForecast | None:
        """How much footage there is and how long the storage lasts; None until it was looked at."""
        return self._retention.forecast()

    async def clip(self, camera_event: CameraEvent) -> Path:
        """The event's clip as an MP4 file. Raises NotFoundError, or CameraUnavailable with one sentence."""
        self._refuse_while_silent()
        return await self._of_media(self._clips.clip(camera_event))

    async def parts(self, camera_event: CameraEvent) -> tuple[tuple[Path, Segment], ...]:
        """The segments that the event's clip is made from, each with its file. Raises as `clip`."""
        return tuple((self._media / part.path, part) for part in await self._clips.footage(camera_event))

    async def leaves(self, camera_id: int, *, after: int, before: int) -> tuple[str, ...] | None:
        """What links two segments of a camera's chain that do not follow one another; None when some are not known."""
        return await self._chain.leaves(camera_id, after=after, before=before)

    async def event_thumbnail(self, camera_event: CameraEvent) -> Path:
        """A picture of the moment of the event, JPEG. Raises NotFoundError, or CameraUnavailable with one sentence."""
        self._refuse_while_silent()
        return await self._of_media(self._clips.event_thumbnail(camera_event))

    async def forget(self, camera_event_id: int) -> None:
        """A camera event was deleted: what was made of it, and what was added to it, goes too. What cannot be removed
        now is removed later.
        """
        if self._folder.fault:
            return
        try:
            await self._clips.forget(camera_event_id)
            await self._exhibits.delete_let_go()
        except (OSError, StoreError) as error:
            log.warning("camera_event_not_cleared", camera_event_id=camera_event_id, error=str(error))

    async def camera_thumbnail(self, camera_id: int) -> Path:
        """A picture from the camera's newest footage, JPEG. Raises NotFoundError, CameraUnavailable."""
        self._refuse_while_silent()
        return await self._of_media(self._clips.camera_thumbnail(camera_id))

    async def vod_master(self, camera_event: CameraEvent) -> str:
        """The master playlist of the event's footage. Raises NotFoundError, CameraUnavailable."""
        return playlists.master(await self._clips.footage(camera_event))

    async def vod_media(self, camera_event: CameraEvent) -> str:
        """The media playlist, `index.m3u8`: with an end once all the footage is there. Raises as `vod_master`."""
        complete = self._clips.is_complete(camera_event)  # asked first: what is complete now is in the rows read next
        return playlists.media(await self._clips.footage(camera_event), complete=complete)

    async def vod_segment(self, camera_event: CameraEvent, segment_id: int) -> Path:
        """The file of one of the event's segments, MPEG-TS. Raises NotFoundError when it is none of them."""
        self._refuse_while_silent()
        place = (camera_event.camera_id, camera_event.pinned_from, camera_event.pinned_until, segment_id)
        if (known := self._found.get(place)) is not None:
            return known
        for segment in await self._store.segments.of_event(camera_event):
            if segment.id == segment_id:
                return self._found.note(place, self._media / segment.path)
        raise NotFoundError(f"camera event {camera_event.id} has no segment {segment_id}")

    def worker_pids(self) -> tuple[int, ...]:
        """The process ids of the workers that live, for diagnostics."""
        return tuple(worker.pid for worker in self._workers if worker.pid)

    def _refuse_while_silent(self) -> None:
        """Whoever touches a disk that does not answer hangs with it, in one of the few threads that all share."""
        if not self._folder.answers:
            raise CameraUnavailable(self._folder.fault)

    async def _of_media(self, made: Awaitable[Path]) -> Path:
        """What is made of footage. Where that fails because the disk is away, that is what is told."""
        try:
            return await made
        except (CameraUnavailable, NotFoundError) as error:
            if fault := self._folder.fault or await self._folder.look():
                raise CameraUnavailable(fault) from error
            raise

    async def _open_media(self) -> str:
        """Why the media folder cannot be used, "" when it has been made ready."""
        try:
            await asyncio.to_thread(self._media.mkdir, mode=0o750, parents=True, exist_ok=True)
            await self._clips.open()
            await self._exhibits.open()
            untold = await self._index.recover(tuple(self._camera_ids()))
        except OSError as error:
            return f"the media folder cannot be used: {error.strerror}"
        except StoreError as error:
            return str(error)
        self._watch.footage_is_indexed(untold)
        return ""

    async def _record(self, sockets: Path) -> None:
        cameras = self._site.cameras
        wanted = await asyncio.to_thread(self._with_credentials, cameras)
        rtsp = await asyncio.to_thread(self._rtsp_account)
        ids = [camera.id for camera in cameras]
        self._wanted = wanted
        self._workers = tuple(
            self._worker(number, frozenset(cameras), sockets=sockets, rtsp=rtsp)
            for number, cameras in enumerate(groups(ids, most=CAMERAS_PER_WORKER), 1)
        )
        try:
            await self._assign()
            async with Supervisor(clock=self._clock) as ending_first:
                ending_first.keep("retention", self._retention.run)
                ending_first.keep("media folder", self._folder.run)
                ending_first.keep("pins", self._tell_pins)
                ending_first.keep("footage sweep", self._sweep)
                for worker in self._workers:
                    ending_first.keep(worker.name, worker.run)
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    for worker in await self._take_changes(sockets, rtsp):
                        ending_first.keep(worker.name, worker.run)
                    await self._assign()
        finally:
            self._workers = ()

    async def _take_changes(self, sockets: Path, rtsp: RtspServing | None) -> tuple[CameraWorker, ...]:
        """Take the cameras as the site file has them now, each left with the worker that it has; the workers that
        are new.
        """
        if not self._cameras_changed:
            return ()
        self._cameras_changed = False
        cameras = self._site.cameras
        wanted = await asyncio.to_thread(self._with_credentials, cameras)
        before = self._wanted
        self._watch.connected_anew(key for key in wanted.keys() & before.keys() if wanted[key] != before[key])
        self._wanted = wanted
        own = regrouped(
            [worker.cameras for worker in self._workers], [camera.id for camera in cameras], most=CAMERAS_PER_WORKER
        )
        for worker, ids in zip(self._workers, own, strict=False):
            worker.cameras = ids
        added = tuple(
            self._worker(number, ids, sockets=sockets, rtsp=rtsp)
            for number, ids in enumerate(own[len(self._workers) :], len(self._workers) + 1)
        )
        self._workers += added
        return added

    def _worker(self, number: int, cameras: frozenset[int], *, sockets: Path, rtsp: RtspServing | None) -> CameraWorker:
        live = self._site.live
        return CameraWorker(
            name=f"camera-worker-{number}",
            cameras=cameras,
            media=self._media,
            marker=self._marker,
            socket=sockets / f"camera-worker-{number}.sock",
            clock=self._clock,
            progress=self._progress,
            listener=self._watch,
            live=LiveViewing(addresses=live.addresses, viewers_per_camera=live.viewers_per_camera),
            rtsp=None if rtsp is None else rtsp.model_copy(update={"port": rtsp.port + number - 1}),
        )

    async def _tell_pins(self) -> None:
        await self._pins.run(lambda: self._workers)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            if not self._folder.fault:
                await self._index.sweep(self._camera_ids())

    def _camera_ids(self) -> frozenset[int]:
        return frozenset(camera.id for camera in self._site.cameras)

    def _with_credentials(self, cameras: tuple[Camera, ...]) -> dict[int, WorkerCamera]:
        wanted: dict[int, WorkerCamera] = {}
        for camera in cameras:
            try:
                wanted[camera.id] = worker_camera(
                    camera,
                    self._secrets,
                    segment_seconds=self._segment_seconds,
                    clip_before=self._site.events.clip_before_seconds,
                )
            except ConfigError as error:
                log.error("camera_without_credentials", camera_id=camera.id, error=str(error))  # noqa: TRY400 (the sentence suffices)
        return wanted

    def _rtsp_account(self) -> RtspServing | None:
        """How cameras are served on by RTSP: where, and to whom; None: they are not."""
        section = self._site.rtsp
        if section is None:
            return None
        try:
            password = self._secrets.get(section.password)
        except ConfigError as error:
            log.error("rtsp_not_served", error=str(error))  # noqa: TRY400 (the sentence suffices)
            return None
        return RtspServing(host=section.host, port=section.port, username=section.username, password=password)

    async def _assign(self) -> None:
        wanted = self._wanted
        own = frozenset().union(*(worker.cameras for worker in self._workers))
        off = dict.fromkeys(own - wanted.keys(), _NO_SECRET)
        if self._folder.fault:
            off |= dict.fromkeys(wanted, (CameraCondition.DISK_FAILED, self._folder.fault))
        elif self._paused:
            off |= dict.fromkeys(wanted, _NO_ROOM)
        self._watch.turn_off(off)
        # what is held in memory until an event wants it must not be lost because the disk is away for a while
        assigned = wanted.keys() & (self._pins.cameras | (wanted.keys() - off.keys()))
        may_write = not (self._folder.fault or self._paused)
        for worker in self._workers:
            cameras = [wanted[camera_id] for camera_id in sorted(worker.cameras & assigned)]
            await worker.assign(cameras, may_write=may_write)

    def _starved(self, paused: bool) -> None:  # noqa: FBT001 (told yes or no)
        if paused is not self._paused:
            self._paused = paused
            self._changed.set()

    def _living_worker(self, camera_id: int) -> WorkerClient:
        """The camera's own worker, or any other: each can read all of the media folder."""
        for worker in sorted(self._workers, key=lambda worker: camera_id not in worker.cameras):
            if worker.client is not None:
                return worker.client
        raise CameraUnavailable("the camera worker is being restarted; try again in a few seconds")
