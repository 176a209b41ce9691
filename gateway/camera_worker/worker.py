"""The recordings of the cameras that the gateway assigned to this process."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import structlog

from drivers.rtsp.client.connection import ReadBuffers
from gateway.camera_worker.connection_budget import ConnectionBudget
from gateway.camera_worker.live_feed import LiveFeed
from gateway.camera_worker.live_stream import LiveStream
from gateway.camera_worker.reader import CameraReader, ReaderContext
from gateway.camera_worker.recorder import CameraRecorder, RecorderStart
from gateway.camera_worker.reports import ReportBuffer
from gateway.domain.footage import (
    CameraReported,
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


class CameraWorker:
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
