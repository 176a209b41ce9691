"""A camera's frames for whoever watches it live. They are those that are recorded, or those of a stream of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from drivers.camera.fanout import Fanout, Subscription
from drivers.camera.frames import EncodedFrame, VideoFormat
from drivers.contract import ProtocolViolation
from gateway.camera_worker.connection_budget import ConnectionBudget
from gateway.camera_worker.frame_queue import CameraConnected, CameraLost
from gateway.camera_worker.reader import CameraReader
from gateway.clock import Clock
from gateway.domain.footage import CameraCondition, GapReason, WorkerCamera

log = structlog.get_logger(__name__)

LINGER_SECONDS = 10.0
"""A live stream of its own stays connected so long after its last viewer, for the one who only loads the page anew."""
MOST_HANDED_OVER = 250


class LiveFrames:
    """One camera's frames, on the event loop; they cost next to nothing while nobody watches.

    A camera with a `live_url` is connected to a second time while somebody watches, and those frames never reach the
    recording. After a camera was away its times begin anew, at a keyframe.
    """

    def __init__(
        self, *, camera: WorkerCamera, clock: Clock, budget: ConnectionBudget, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._camera = camera
        self._clock = clock
        self._budget = budget
        self._loop = loop
        self._fanout = Fanout()
        self._reader: CameraReader | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._stopped = False
        self._watched = False
        self._lock = threading.Lock()
        self._handed: deque[EncodedFrame] = deque()
        self._scheduled = False
        self._sheds = False
        self.dropped = 0
        """Frames that the loop was too slow for; each viewer's own losses are counted at its subscription."""
        self._state = (CameraCondition.STARTING, "connecting")

    @property
    def condition(self) -> CameraCondition | None:
        """What the second stream is doing; None where there is none, or nobody watches."""
        return self._state[0] if self._reader is not None else None

    @property
    def detail(self) -> str:
        """One sentence on that, without secrets."""
        return self._state[1] if self._reader is not None else ""

    @property
    def viewers(self) -> int:
        """How many watch now."""
        return self._fanout.viewers

    async def format(self) -> VideoFormat:
        """The format of what is watched, as soon as a keyframe told it; somebody must watch meanwhile."""
        return await self._fanout.format()

    @contextmanager
    def watch(self) -> Iterator[Subscription]:
        """Frames for one viewer, for the length of the block, from the next keyframe on. From the loop alone.

        They end when the camera is taken away or changed.
        """
        with self._fanout.subscribe() as subscription:
            if self._stopped:
                subscription.end()
            self._begin()
            try:
                yield subscription
            finally:
                if self._fanout.viewers == 1:
                    self._leave()

    def offer(self, frame: EncodedFrame) -> None:
        """Hand a frame to the viewers; callable from any thread, and never blocks."""
        if not self._watched:
            return
        with self._lock:
            if len(self._handed) >= MOST_HANDED_OVER:
                self.dropped += len(self._handed)
                self._handed.clear()
                self._sheds = True
            if self._sheds and not frame.keyframe:
                self.dropped += 1
                return
            self._sheds = False
            self._handed.append(frame)
            if self._scheduled:
                return
            self._scheduled = True
        with contextlib.suppress(RuntimeError):  # the loop has ended: so has this worker
            self._loop.call_soon_threadsafe(self._hand_over)

    def stop(self) -> None:
        """No more frames come; every viewer's end. From the loop alone."""
        self._stopped = True
        if self._reader is not None:
            self._reader.stop()
        self._disconnect()
        self._fanout.end_all()

    def put(self, item: CameraConnected | CameraLost) -> None:
        """What the second stream's reader says of its connection."""
        if isinstance(item, CameraLost):
            if item.condition is not self._state[0]:
                log.info(
                    "live_stream_lost", camera_id=self._camera.camera_id, condition=item.condition, detail=item.detail
                )
            self._state = (item.condition, item.detail)

    def put_frame(self, frame: EncodedFrame) -> None:
        """A frame of the second stream."""
        self._state = (CameraCondition.RECORDING, "")
        self.offer(frame)

    def put_loss(self, gap: GapReason) -> None:
        """Viewers see a loss themselves: the next frame is a keyframe."""

    def _begin(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if not self._watched:
            with self._lock:
                # what was handed over before nobody watched has nothing to do with what comes now
                self._handed.clear()
                self._sheds = True
        self._watched = not self._stopped
        if self._camera.live_url is None or self._reader is not None or self._stopped:
            return
        self._state = (CameraCondition.STARTING, "connecting")
        self._reader = CameraReader(
            camera=self._camera, url=self._camera.live_url, sink=self, clock=self._clock, budget=self._budget
        )
        self._reader.start()

    def _leave(self) -> None:
        """The last viewer is just leaving."""
        if self._reader is not None:
            self._leaving = self._loop.call_later(LINGER_SECONDS, self._disconnect)
        else:
            self._watched = False

    def _disconnect(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        self._watched = False
        if self._reader is not None:
            self._reader.leave()
            self._reader = None

    def _hand_over(self) -> None:
        with self._lock:
            frames = tuple(self._handed)
            self._handed.clear()
            self._scheduled = False
        for frame in frames:
            try:
                self._fanout.publish(frame)
            except ProtocolViolation as error:
                log.warning("live_frame_refused", camera_id=self._camera.camera_id, error=str(error))
