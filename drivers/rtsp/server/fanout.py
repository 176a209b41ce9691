"""Distribution of one stream to many viewers: all share the frame objects; each has a bounded queue.

Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from drivers.contract import ProtocolViolation
from drivers.rtsp import formats
from drivers.rtsp.frames import AudioFormat, EncodedFrame, VideoFormat

MOST_QUEUED = 150


class Subscription:
    """The frames of one viewer. They begin at a keyframe, and go on at a keyframe after a loss."""

    def __init__(self, *, most_queued: int) -> None:
        self._most_queued = most_queued
        self._frames: deque[EncodedFrame] = deque()
        self._arrived = asyncio.Event()
        self._waits_for_keyframe = True
        self._ended = False
        self.dropped = 0
        """The number of frames dropped because this viewer was too slow."""

    def offer(self, frame: EncodedFrame) -> None:
        """Queue a frame. When the queue is full, drop everything up to the next keyframe."""
        if self._waits_for_keyframe and not frame.keyframe:
            return
        if len(self._frames) >= self._most_queued:
            self.dropped += len(self._frames) + 1
            self._frames.clear()
            self._waits_for_keyframe = True
            return
        self._waits_for_keyframe = False
        self._frames.append(frame)
        self._arrived.set()

    def end(self) -> None:
        """End the stream: no more frames come."""
        self._ended = True
        self._arrived.set()

    async def frames(self) -> AsyncIterator[EncodedFrame]:
        """Iterate over frames in order until the stream ends."""
        while True:
            while self._frames:
                yield self._frames.popleft()
            if self._ended:
                return
            self._arrived.clear()
            await self._arrived.wait()


class Fanout:
    """The distributor of one stream's frames to its viewers. The format is known from the first keyframe on."""

    def __init__(self, *, most_queued: int = MOST_QUEUED) -> None:
        self._most_queued = most_queued
        self._subscriptions: set[Subscription] = set()
        self._format: VideoFormat | None = None
        self._known = asyncio.Event()

    @property
    def viewers(self) -> int:
        """The number of subscriptions."""
        return len(self._subscriptions)

    @property
    def sound(self) -> AudioFormat | None:
        """Always None: this feed has no sound."""
        return None

    async def format(self) -> VideoFormat:
        """Wait for the first keyframe with parameter sets; return the format."""
        while self._format is None:
            await self._known.wait()
        return self._format

    def publish(self, frame: EncodedFrame) -> None:
        """Hand a frame to every viewer; never blocks.

        Raises:
            ProtocolViolation: a keyframe's parameter sets are invalid; the frame is dropped.
        """
        if frame.keyframe:
            found = formats.told_by(frame, known=self._format)
            if found is not None:
                self._format = found
                self._known.set()
        for subscription in self._subscriptions:
            subscription.offer(frame)

    @contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        """Add a viewer for the length of the block."""
        subscription = Subscription(most_queued=self._most_queued)
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def end_all(self) -> None:
        """End the stream of every present viewer. New viewers can still subscribe."""
        for subscription in self._subscriptions:
            subscription.end()


__all__ = ["Fanout", "ProtocolViolation", "Subscription"]
