"""The recordings of the cameras that the gateway assigned to this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import structlog

from drivers.rtsp.client.connection import ReadBuffers
from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.frames import EncodedAudio, EncodedFrame
from gateway.camera_worker.connection_budget import ConnectionBudget
from gateway.camera_worker.frame_queue import CameraConnected, CameraLost
from gateway.camera_worker.live_feed import LiveFeed
from gateway.camera_worker.reader import CameraReader, ReaderContext
from gateway.camera_worker.recorder import CameraRecorder, RecorderStart
from gateway.camera_worker.reports import ReportBuffer
from gateway.domain.footage import (
    CameraCondition,
    CameraReported,
    GapReason,
    PartWritten,
    Pin,
    SegmentFinished,
    WantParts,
    WorkerAssignment,
    WorkerCamera,
)
from gateway.runtime.clock import Clock

log = structlog.get_logger(__name__)

_CHANGE_SECONDS = 2.0

LINGER_SECONDS = 10.0
"""Seconds for which it stays connected after the last viewer, who may only be reloading the page."""
FIRST_PICTURE_SECONDS = 4.0
_LOOK_SECONDS = 0.02


class LiveStream:
    """The second connection of one camera, and the feed of its frames.

    Belongs to the event loop, except the `put…` methods, which the reading thread calls as its sink.

    Args:
        camera: the camera.
        url: the stream's URL, with its credentials.
        clock: the clock of waits and stamps.
        reader: makes the stream's reader.
        loop: the event loop of the viewers.
    """

    def __init__(
        self,
        *,
        camera: WorkerCamera,
        url: str,
        clock: Clock,
        reader: Callable[..., CameraReader],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.feed = LiveFeed(loop=loop, wake=self.wake)
        """The feed that viewers watch."""
        self._camera = camera
        self._url = url
        self._clock = clock
        self._make_reader = reader
        self._habits = CameraHabits()
        self._loop = loop
        self._reader: CameraReader | None = None
        self._look: asyncio.TimerHandle | None = None
        self._stopped = False
        self._lost: CameraLost | None = None

    async def wake(self) -> str:
        """Connect if needed, and wait up to 4 s for the first picture; return why there is none, "" when there is."""
        if self._stopped:
            return ""
        self._keep()
        if self._reader is None:
            self._lost = None
            self.feed.lost()  # frames of the last connection, which may have come while it was being closed
            self._reader = self._make_reader(
                camera=self._camera, url=self._url, sink=self, live=self.feed, audio=False, habits=self._habits
            )
            self._reader.start()
        deadline = self._clock.monotonic() + FIRST_PICTURE_SECONDS
        # what is waited for happens in another thread
        while not self.feed.group() and self._lost is None and self._clock.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)
        lost = self._lost
        if self.feed.group() or self._stopped:
            return ""
        return f"at its live_url {lost.detail}" if lost is not None else "nothing came from its live_url in time"

    def stop(self) -> None:
        """Stop reading, because the camera is removed or changed."""
        self._stopped = True
        if self._look is not None:
            self._look.cancel()
        if self._reader is not None:
            self._reader.stop()

    def put(self, item: CameraConnected | CameraLost) -> None:
        """Take a change of the reader's connection."""
        condition = item.condition if isinstance(item, CameraLost) else CameraCondition.RECORDING
        before = self._lost.condition if self._lost is not None else CameraCondition.RECORDING
        if isinstance(item, CameraLost) and condition is not before:
            log.info("live_stream_lost", camera_id=self._camera.camera_id, condition=condition, detail=item.detail)
        self._lost = item if isinstance(item, CameraLost) else None

    def put_frames(self, frames: Sequence[EncodedFrame]) -> None:
        """Do nothing: the reader itself passes frames to the feed, and nothing records them."""

    def put_sound(self, sound: EncodedAudio) -> None:
        """Do nothing: sound is not asked for."""

    def put_loss(self, gap: GapReason) -> None:
        """Do nothing: viewers see a loss themselves, since the next frame is a keyframe."""

    def _keep(self) -> None:
        if self._look is not None:
            self._look.cancel()
        self._look = self._loop.call_later(LINGER_SECONDS, self._leave_unwatched)

    def _leave_unwatched(self) -> None:
        if self.feed.viewers:
            self._keep()
            return
        if self._reader is not None:
            self._reader.leave()
            self._reader = None
        self.feed.lost()


class AssignedCameras:
    """The recordings of the assigned cameras. Belongs to the event loop; slow work is in the recorders' threads."""

    def __init__(self, *, clock: Clock, reports: ReportBuffer, budget: ConnectionBudget) -> None:
        self._clock = clock
        self._reader = partial(CameraReader, ReaderContext(clock, budget, ReadBuffers()))
        self._reports = reports
        self._recorders: dict[int, CameraRecorder] = {}
        self._viewers_feeds: dict[int, LiveFeed] = {}
        self._live_streams: dict[int, LiveStream] = {}
        self._recorded_feeds: dict[int, LiveFeed] = {}
        self._known: set[int] = set()
        self._changing = asyncio.Lock()
        self.media: Path | None = None
        self._marker = ""
        self._pins: tuple[Pin, ...] = ()
        self._may_write = True

    @property
    def cameras(self) -> int:
        """The number of assigned cameras."""
        return len(self._recorders)

    def states(self) -> list[CameraReported]:
        """Return each camera's condition and figures now."""
        return [recorder.state() for recorder in self._recorders.values()]

    def live(self, camera_id: int) -> LiveFeed | None:
        """Return the feed for a camera's viewers; None for a camera that is not assigned."""
        return self._viewers_feeds.get(camera_id)

    def recorded(self, camera_id: int) -> LiveFeed | None:
        """Return the feed of a camera's recorded stream; None for a camera that is not assigned."""
        return self._recorded_feeds.get(camera_id)

    async def assign(self, assignment: WorkerAssignment) -> None:
        """Record these cameras and no others. A camera with unchanged settings is recorded without interruption."""
        async with self._changing:
            media = Path(assignment.media)
            wanted = {camera.camera_id: camera for camera in assignment.cameras}
            leaving = [
                recorder
                for camera_id, recorder in self._recorders.items()
                if wanted.get(camera_id) != recorder.camera or (media, assignment.marker) != (self.media, self._marker)
            ]
            await self._end(leaving, _CHANGE_SECONDS)
            self.media, self._marker = media, assignment.marker
            self._may_write = assignment.may_write
            for recorder in self._recorders.values():
                recorder.allow(self._may_write)
            loop = asyncio.get_running_loop()
            for camera_id, camera in wanted.items():
                if camera_id not in self._recorders:
                    self._begin(camera, media, loop)

    def pin(self, pins: tuple[Pin, ...]) -> None:
        """Set the time spans to keep of cameras that are recorded for events only, also for cameras assigned later."""
        self._pins = pins
        for recorder in self._recorders.values():
            self._tell_pins(recorder)

    def want_parts(self, wanted: WantParts) -> None:
        """Report a camera's parts for some seconds; no effect for a camera that is not assigned."""
        if (recorder := self._recorders.get(wanted.camera_id)) is not None:
            recorder.want_parts(
                part_seconds=wanted.part_seconds, longest_seconds=wanted.longest_seconds, seconds=wanted.seconds
            )

    async def stop(self, seconds: float) -> None:
        """End all recordings. Wait up to `seconds` until their open segments are durable."""
        await self._end(list(self._recorders.values()), seconds)

    def _begin(self, camera: WorkerCamera, media: Path, loop: asyncio.AbstractEventLoop) -> None:
        def report(item: SegmentFinished | PartWritten | CameraReported) -> None:
            loop.call_soon_threadsafe(self._hear, recorder, item)

        stream: LiveStream | None = None
        if camera.live_url is not None:
            stream = LiveStream(camera=camera, url=camera.live_url, clock=self._clock, reader=self._reader, loop=loop)
            self._live_streams[camera.camera_id] = stream
        main = LiveFeed(loop=loop)
        self._recorded_feeds[camera.camera_id] = main
        self._viewers_feeds[camera.camera_id] = main if stream is None else stream.feed
        recorder = CameraRecorder(
            camera=camera,
            media=media,
            clock=self._clock,
            reader=self._reader,
            marker=self._marker,
            live=main,
            report=report,
            # only once: later a part file may belong to a recording of this process that is just ending
            start=RecorderStart(camera.camera_id not in self._known, self._may_write),
        )
        self._known.add(camera.camera_id)
        self._recorders[camera.camera_id] = recorder
        recorder.allow(self._may_write)
        self._tell_pins(recorder)
        recorder.start()

    def _tell_pins(self, recorder: CameraRecorder) -> None:
        recorder.pin(tuple(pin for pin in self._pins if pin.camera_id == recorder.camera.camera_id))

    def _hear(self, recorder: CameraRecorder, item: SegmentFinished | PartWritten | CameraReported) -> None:
        current = self._recorders.get(recorder.camera.camera_id)
        if isinstance(item, SegmentFinished) or current is recorder:
            self._reports.add(item)

    async def _end(self, leaving: list[CameraRecorder], seconds: float) -> None:
        for recorder in leaving:
            recorder.stop()
            if (stream := self._live_streams.pop(recorder.camera.camera_id, None)) is not None:
                stream.stop()
            self._viewers_feeds.pop(recorder.camera.camera_id).end()
            self._recorded_feeds.pop(recorder.camera.camera_id).end()
        for recorder in leaving:
            self._recorders.pop(recorder.camera.camera_id, None)
            self._reports.forget(recorder.camera.camera_id)
        ended = await asyncio.gather(*(asyncio.to_thread(recorder.join, seconds) for recorder in leaving))
        for recorder, in_time in zip(leaving, ended, strict=True):
            if not in_time:
                log.warning("recording_did_not_end", camera_id=recorder.camera.camera_id)
