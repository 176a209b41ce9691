"""The bounded queue from a camera's reading thread to its writing thread.

With a slow disk, frames are dropped and counted, and memory does not grow.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from drivers.rtsp.frames import AudioFormat, EncodedAudio, EncodedFrame, VideoFormat
from gateway.domain.footage import CameraCondition, GapReason, Pin

MOST_FRAMES = 500
MOST_BYTES = 32_000_000
WAKE_BYTES = 500_000
_MOST_ITEMS_A_FRAME = 4
"""The limit on all items is this times the limit on frames, because sound comes in more pieces than pictures."""
_MOST_TAKEN = 64


@dataclass(frozen=True, slots=True)
class CameraConnected:
    """A connection is up, and its frames follow. `announced` is its format, None when it comes in-band only."""

    announced: VideoFormat | None
    sound: AudioFormat | None = None
    """The format of its AAC; None without sound."""
    why_silent: str = ""
    """The reason, in one sentence, why no sound comes although it was asked for; "" otherwise."""


@dataclass(frozen=True, slots=True)
class CameraLost:
    """The connection ended, or could not be made: the camera's condition, the reason, and the gap's reason."""

    condition: CameraCondition
    detail: str
    gap: GapReason


@dataclass(frozen=True, slots=True)
class FramesDropped:
    """The frames between the last one and the next keyframe are lost."""

    gap: GapReason = GapReason.BACK_PRESSURE


@dataclass(frozen=True, slots=True)
class RecordingStopped:
    """The recording ends; nothing follows."""


@dataclass(frozen=True, slots=True)
class FootagePinned:
    """The new pins of a camera that is recorded for events only, in place of all earlier ones."""

    pins: tuple[Pin, ...]


@dataclass(frozen=True, slots=True)
class WritingAllowed:
    """Permission or prohibition to write to the disk, for a camera that is recorded for events only."""

    may_write: bool


@dataclass(frozen=True, slots=True)
class PartsWanted:
    """A request for parts of about `part_seconds` in segments below `longest_seconds`, until a monotonic time."""

    part_seconds: float
    longest_seconds: float
    until: float


Control = CameraConnected | CameraLost | FootagePinned | WritingAllowed | PartsWanted | RecordingStopped
QueueItem = EncodedFrame | EncodedAudio | FramesDropped | Control


class FrameQueue:
    """The queue, which is thread-safe. When it is full, frames are dropped up to the next keyframe that fits.

    All other items are always taken, except sound.
    """

    def __init__(self, *, most_frames: int = MOST_FRAMES, most_bytes: int = MOST_BYTES) -> None:
        self._most_frames = most_frames
        self._most_bytes = most_bytes
        self._items: deque[QueueItem] = deque()
        self._bytes = 0
        self._frames = 0
        self._taken: list[QueueItem] = []
        self._shedding = False
        self._dropped = 0
        self._changed = threading.Condition()
        self.hurried = False
        """True if frames wake the thread that calls `take` as they come, because somebody watches what it writes."""

    @property
    def dropped(self) -> int:
        """The number of frames dropped so far."""
        return self._dropped

    @property
    def is_done(self) -> bool:
        """True when nothing waits, and `take` was called again after the last item."""
        return not self._items and not self._taken

    def put_frames(self, frames: Sequence[EncodedFrame]) -> None:
        """Add frames. One for which there is no room, or for which a keyframe is missing, is dropped."""
        wakes = self.hurried
        with self._changed:
            for frame in frames:
                size = len(frame.data)
                full = self._frames >= self._most_frames or self._bytes + size > self._most_bytes
                if full or (self._shedding and not frame.keyframe):
                    self._shedding = True
                    self._dropped += 1
                    continue
                if self._shedding:
                    self._shedding = False
                    self._items.append(FramesDropped())
                self._items.append(frame)
                self._frames += 1
                self._bytes += size
                wakes = wakes or frame.keyframe
            if wakes or self._bytes >= WAKE_BYTES:
                self._changed.notify()

    def put_sound(self, sound: EncodedAudio) -> None:
        """Add a piece of sound, or drop it when the queue is full or pictures are being dropped."""
        with self._changed:
            if self._shedding or len(self._items) >= _MOST_ITEMS_A_FRAME * self._most_frames:
                return
            self._items.append(sound)
            self._bytes += len(sound.data)

    def put_loss(self, gap: GapReason) -> None:
        """Add that frames were lost before they came here. Right after another loss, it is ignored."""
        with self._changed:
            if not self._items or not isinstance(self._items[-1], FramesDropped):
                self._items.append(FramesDropped(gap))
                self._changed.notify()

    def put(self, item: Control) -> None:
        """Add an item that is never dropped."""
        with self._changed:
            self._items.append(item)
            self._changed.notify()

    def take(self, timeout: float) -> Sequence[QueueItem]:
        """Return the next items, none when there are none after `timeout` seconds.

        They count as waiting until the next call, because they are in memory until they are written.

        A waiting thread is not woken for every frame, since that would cost more than writing it. It is woken by a
        keyframe (which ends a segment), by WAKE_BYTES of frames, by other items, or by the time-out. Only while it is
        `hurried`, frames wake it as they come.
        """
        with self._changed:
            for item in self._taken:
                if isinstance(item, EncodedFrame | EncodedAudio):
                    self._bytes -= len(item.data)
                    self._frames -= isinstance(item, EncodedFrame)
            self._taken = []
            if not self._items:
                self._changed.wait(timeout)
            self._taken = [self._items.popleft() for _ in range(min(len(self._items), _MOST_TAKEN))]
            return self._taken
