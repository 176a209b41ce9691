"""A camera's second, smaller stream for viewers: connected only while somebody watches, and never recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.frames import EncodedAudio, EncodedFrame
from gateway.camera_worker.frame_queue import CameraConnected, CameraLost
from gateway.camera_worker.live_feed import LiveFeed
from gateway.camera_worker.reader import CameraReader
from gateway.domain.footage import CameraCondition, GapReason, WorkerCamera
from gateway.runtime.clock import Clock

log = structlog.get_logger(__name__)

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
