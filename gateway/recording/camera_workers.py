"""The camera workers of the site: the cameras of each, and the settings with which it records them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

import structlog

from gateway.domain.errors import CameraUnavailable, ConfigError
from gateway.domain.footage import CAMERAS_PER_WORKER, CameraCondition, RtspServing, WorkerCamera
from gateway.domain.viewing import LiveViewing
from gateway.recording.watch import CameraWatch
from gateway.recording.worker_client import WorkerClient
from gateway.recording.worker_pool import CameraWorker, WorkerContext
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Progress
from gateway.site import Camera, Secrets, Site
from gateway.site.addresses import PLACE
from gateway.texts import text

log = structlog.get_logger(__name__)

T = TypeVar("T")

_NO_SECRET = (CameraCondition.REFUSED, "its password cannot be read at the gateway")


def groups(cameras: Sequence[T], *, most: int) -> tuple[tuple[T, ...], ...]:
    """Split the cameras, in their order, into the fewest groups of at most `most`. Pure."""
    return tuple(tuple(cameras[at : at + most]) for at in range(0, len(cameras), most))


def regrouped(now: Sequence[frozenset[int]], wanted: Sequence[int], *, most: int) -> tuple[frozenset[int], ...]:
    """Fit the `wanted` cameras into the present groups (`now`). Pure.

    No camera changes its group. New cameras fill free places, then new groups at the end. An empty group stays, for
    later cameras.
    """
    groups = [set(group.intersection(wanted)) for group in now]
    for camera_id in wanted:
        if any(camera_id in group for group in groups):
            continue
        room = next((group for group in groups if len(group) < most), None)
        if room is None:
            groups.append(room := set())
        room.add(camera_id)
    return tuple(frozenset(group) for group in groups)


def worker_camera(camera: Camera, secrets: Secrets, *, segment_seconds: float, clip_before: float = 0) -> WorkerCamera:
    """Convert a camera of the site file to the worker's form. Its URL has the credentials: never log or show it.

    `clip_before`: the seconds before an event that a clip shows. A camera that is recorded for events only holds at
    least these in memory. Raises ConfigError if the secret cannot be read.
    """
    return WorkerCamera(
        camera_id=camera.id,
        url=_with_account(camera.url, camera, secrets),
        live_url=None if camera.live_url is None else _with_account(camera.live_url, camera, secrets),
        audio=camera.audio == "on",
        transport=camera.transport,
        segment_seconds=segment_seconds,
        record=camera.record,
        pre_roll_seconds=max(camera.pre_roll_seconds, clip_before + 2 * segment_seconds),
    )


def _with_account(url: str, camera: Camera, secrets: Secrets) -> str:
    if camera.password is not None:
        values = {"username": camera.username or "", "password": secrets.get(camera.password, may_be_empty=True)}
        quoted = {name: quote(value, safe="") for name, value in values.items()}
        url = PLACE.sub(lambda found: quoted[found[1]], url)
        if camera.username is None:  # the password is in the address alone
            return url
        account = f"{quoted['username']}:{quoted['password']}"
    elif camera.token is not None:
        account = f":{quote(secrets.get(camera.token), safe='')}"
    else:
        return url
    parts = urlsplit(url)
    return parts._replace(netloc=f"{account}@{parts.netloc}").geturl()


class Fleet:
    """The workers of the site with their cameras. The caller runs the workers.

    Args:
        site: the site file; its cameras are not used, because they may change.
        media: the media folder.
        marker: the file without which nothing is written to the media folder.
        clock: the clock.
        progress: the heartbeats of the workers.
        secrets: the passwords of cameras, and the password for serving them by RTSP.
        watch: receives the workers' reports, and the reasons why cameras are off.
        segment_seconds: the least duration of a segment.
    """

    def __init__(
        self,
        *,
        site: Site,
        media: Path,
        marker: str,
        clock: Clock,
        progress: Progress,
        secrets: Secrets,
        watch: CameraWatch,
        segment_seconds: float,
    ) -> None:
        self._site = site
        self._media = media
        self._marker = marker
        self._clock = clock
        self._progress = progress
        self._secrets = secrets
        self._watch = watch
        self._segment_seconds = segment_seconds
        self._workers: tuple[CameraWorker, ...] = ()
        self._wanted: dict[int, WorkerCamera] = {}
        self._sockets = Path()
        self._rtsp: RtspServing | None = None

    @property
    def workers(self) -> tuple[CameraWorker, ...]:
        """All workers."""
        return self._workers

    async def form(self, cameras: tuple[Camera, ...], sockets: Path) -> None:
        """Make the workers for these cameras, of CAMERAS_PER_WORKER each; `sockets` is the folder of their sockets."""
        self._wanted = await asyncio.to_thread(self._with_credentials, cameras)
        self._rtsp = await asyncio.to_thread(self._rtsp_account)
        self._sockets = sockets
        ids = [camera.id for camera in cameras]
        self._workers = tuple(
            self._worker(number, frozenset(own)) for number, own in enumerate(groups(ids, most=CAMERAS_PER_WORKER), 1)
        )

    async def regroup(self, cameras: tuple[Camera, ...]) -> tuple[CameraWorker, ...]:
        """Set the cameras. Each known camera stays with its worker; return the new workers."""
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
            self._worker(number, ids) for number, ids in enumerate(own[len(self._workers) :], len(self._workers) + 1)
        )
        self._workers += added
        return added

    def disband(self) -> None:
        """Forget all workers, after they have ended."""
        self._workers = ()

    async def assign(self, why_not: tuple[CameraCondition, str] | None, *, in_memory: AbstractSet[int]) -> None:
        """Tell every worker which cameras to record.

        `why_not`: a condition and a sentence why nothing may be written now, or None. Then only the cameras of
        `in_memory` are read, whose footage is held in memory until an event wants it.
        """
        wanted = self._wanted
        own = frozenset().union(*(worker.cameras for worker in self._workers))
        off = dict.fromkeys(own - wanted.keys(), _NO_SECRET)
        if why_not is not None:
            off |= dict.fromkeys(wanted, why_not)
        self._watch.turn_off(off)
        # footage that is held in memory until an event wants it must not be lost because the disk is away for a while
        assigned = wanted.keys() & (in_memory | (wanted.keys() - off.keys()))
        for worker in self._workers:
            cameras = [wanted[camera_id] for camera_id in sorted(worker.cameras & assigned)]
            await worker.assign(cameras, may_write=why_not is None)

    def living(self, camera_id: int) -> WorkerClient:
        """Return the client of the camera's own worker, or else of any living one, since all can read the media folder.

        Raises CameraUnavailable if no worker lives.
        """
        for worker in sorted(self._workers, key=lambda worker: camera_id not in worker.cameras):
            if worker.client is not None:
                return worker.client
        raise CameraUnavailable(text("refused.worker_restarts"))

    def _worker(self, number: int, cameras: frozenset[int]) -> CameraWorker:
        live, rtsp = self._site.live, self._rtsp
        context = WorkerContext(
            media=self._media,
            marker=self._marker,
            clock=self._clock,
            progress=self._progress,
            listener=self._watch,
            live=LiveViewing(addresses=live.addresses, viewers_per_camera=live.viewers_per_camera),
        )
        return CameraWorker(
            context,
            name=f"camera-worker-{number}",
            cameras=cameras,
            socket=self._sockets / f"camera-worker-{number}.sock",
            rtsp=None if rtsp is None else rtsp.model_copy(update={"port": rtsp.port + number - 1}),
        )

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
        """Return the address and account under which the gateway serves cameras by RTSP; None if it does not."""
        section = self._site.rtsp
        if section is None:
            return None
        try:
            password = self._secrets.get(section.password)
        except ConfigError as error:
            log.error("rtsp_not_served", error=str(error))  # noqa: TRY400 (the sentence suffices)
            return None
        return RtspServing(host=section.host, port=section.port, username=section.username, password=password)
