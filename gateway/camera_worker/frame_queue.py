"""Between a camera's reading and its writing thread: bounded, so that a slow disk costs counted frames, not memory."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from drivers.rtsp.frames import AudioFormat, EncodedAudio, EncodedFrame, VideoFormat
from gateway.domain.footage import CameraCondition, GapReason, Pin

MOST_FRAMES = 500
MOST_BYTES = 32_000_000
WAKE_BYTES = 500_000
_MOST_ITEMS_A_FRAME = 4
"""Sound comes in more pieces than pictures do."""


@dataclass(frozen=True, slots=True)
class CameraConnected:
    """A connection is up; its frames follow."""

    announced: VideoFormat | None
    sound: AudioFormat | None = None
    """The AAC that comes too."""
    why_silent: str = ""
    """Why no sound comes though it was asked for, in one sentence."""


@dataclass(frozen=True, slots=True)
class CameraLost:
    """The connection ended, or was not made."""

    condition: CameraCondition
    detail: str
    gap: GapReason


@dataclass(frozen=True, slots=True)
class FramesDropped:
    """Frames between the one before and the keyframe after this are lost."""

    gap: GapReason = GapReason.BACK_PRESSURE


@dataclass(frozen=True, slots=True)
class RecordingStopped:
    """Nothing follows."""


@dataclass(frozen=True, slots=True)
class FootagePinned:
    """These times are wanted of a camera that is recorded for events only, and no others any more."""

    pins: tuple[Pin, ...]


@dataclass(frozen=True, slots=True)
class WritingAllowed:
    """Leave for a camera that is recorded for events only to write to the disk, or its withdrawal."""

    may_write: bool


Control = CameraConnected | CameraLost | FootagePinned | WritingAllowed | RecordingStopped
QueueItem = EncodedFrame | EncodedAudio | FramesDropped | Control


class FrameQueue:
    """Thread-safe. Frames are dropped when it is full, up to the next keyframe that fits; all else is always taken."""

    def __init__(self, *, most_frames: int = MOST_FRAMES, most_bytes: int = MOST_BYTES) -> None:
        self._most_frames = most_frames
        self._most_bytes = most_bytes
        self._items: deque[QueueItem] = deque()
        self._bytes = 0
        self._frames = 0
        self._shedding = False
        self._dropped = 0
        self._changed = threading.Condition()

    @property
    def dropped(self) -> int:
        """Number of frames that were ever dropped here."""
        return self._dropped

    @property
    def is_empty(self) -> bool:
        """True while nothing waits; callable from the thread that gets."""
        return not self._items

    def put_frame(self, frame: EncodedFrame) -> None:
        """Add a frame, or drop it."""
        with self._changed:
            full = self._frames >= self._most_frames or self._bytes + len(frame.data) > self._most_bytes
            if full or (self._shedding and not frame.keyframe):
                self._shedding = True
                self._dropped += 1
                return
            if self._shedding:
                self._shedding = False
                self._items.append(FramesDropped())
            self._items.append(frame)
            self._frames += 1
            self._bytes += len(frame.data)
            if frame.keyframe or self._bytes >= WAKE_BYTES:
                self._changed.notify()

    def put_sound(self, sound: EncodedAudio) -> None:
        """Add a piece of sound, or drop it; nobody misses it who misses the pictures."""
        with self._changed:
            if self._shedding or len(self._items) >= _MOST_ITEMS_A_FRAME * self._most_frames:
                return
            self._items.append(sound)
            self._bytes += len(sound.data)

    def put_loss(self, gap: GapReason) -> None:
        """Note that frames were lost before they came here. Losses with nothing between them are one, the first."""
        with self._changed:
            if not self._items or not isinstance(self._items[-1], FramesDropped):
                self._items.append(FramesDropped(gap))
                self._changed.notify()

    def put(self, item: Control) -> None:
        """Add what must not be lost."""
        with self._changed:
            self._items.append(item)
            self._changed.notify()

    def get(self, timeout: float) -> QueueItem | None:
        """Return the next item, or None when there is none after `timeout` seconds.

        While frames are few, whoever waits is woken by a keyframe, with which a segment ends, or at the end of that
        time: waking a thread for each costs more than to write it.
        """
        with self._changed:
            if not self._items:
                self._changed.wait(timeout)
            if not self._items:
                return None
            item = self._items.popleft()
            if isinstance(item, EncodedFrame | EncodedAudio):
                self._bytes -= len(item.data)
                self._frames -= isinstance(item, EncodedFrame)
            return item
