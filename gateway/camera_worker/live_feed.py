"""Live frames of a camera for its viewers: the group of pictures so far, and each frame that follows.

The reading thread offers every frame; while nobody watches that costs a lock and an append.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from drivers.rtsp.frames import AudioFormat, EncodedAudio, EncodedFrame, Entry, VideoCodec

MOST_GROUP_BYTES = 16_000_000
MOST_GROUP_FRAMES = 1_500
MOST_QUEUED = 300
_PLAIN_GROUPS = 20
"""After so many without a reordered picture a camera counts as sending none any more."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A frame on its way to one viewer.

    Attributes:
        frame: the frame.
        number: counts the camera's frames.
        behind: whether newer frames wait already, so that it need not be shown for its whole time.
    """

    frame: EncodedFrame
    number: int
    behind: bool


class LiveView:
    """One viewer's frames: from the keyframe of the group that runs when it comes; after a loss from a keyframe on.

    Belongs to the loop.
    """

    def __init__(self, feed: LiveFeed, *, sound: bool = False) -> None:
        """`sound`: it takes sound too, by `next_of_both`."""
        self._feed = feed
        self._takes_sound = sound
        self._waiting: deque[tuple[int, EncodedFrame | EncodedAudio]] = deque()
        self._arrived = asyncio.Event()
        self._last = -1
        self._needs_keyframe = True
        self._ended = False
        self.dropped = 0
        """Frames that this viewer was too slow for."""

    def restart(self) -> None:
        """Begin again at the newest keyframe: the viewer has lost a part of what was sent to it."""
        self._waiting.clear()
        self._needs_keyframe = True
        self._last = -1
        for number, frame in self._feed.group():
            self.take(number, frame)

    def take(self, number: int, frame: EncodedFrame) -> None:
        """Queue a frame that has not come yet; one too many drops what waits, up to the next keyframe."""
        if number <= self._last or (self._needs_keyframe and not frame.keyframe):
            return
        if len(self._waiting) >= MOST_QUEUED and not frame.keyframe:
            self.dropped += len(self._waiting) + 1
            self._waiting.clear()
            self._needs_keyframe = True
            return
        if frame.keyframe and len(self._waiting) >= MOST_QUEUED:
            self.dropped += len(self._waiting)
            self._waiting.clear()
        self._needs_keyframe = False
        self._last = number
        self._waiting.append((number, frame))
        self._arrived.set()

    def hear(self, sound: EncodedAudio) -> None:
        """Queue a piece of sound after the pictures that came before it; where pictures are missing, so is it."""
        if self._takes_sound and not self._needs_keyframe and len(self._waiting) < MOST_QUEUED:
            self._waiting.append((self._last, sound))
            self._arrived.set()

    def end(self) -> None:
        """End the view: nothing follows."""
        self._ended = True
        self._arrived.set()

    async def next(self) -> Picture | None:
        """Return the next picture, None when the feed has ended."""
        while await self._has_come():
            number, frame = self._waiting.popleft()
            if isinstance(frame, EncodedFrame):
                return Picture(frame, number, behind=bool(self._waiting))
        return None

    async def next_of_both(self) -> EncodedFrame | EncodedAudio | None:
        """Return the next picture or piece of sound, None when the feed has ended."""
        return self._waiting.popleft()[1] if await self._has_come() else None

    async def _has_come(self) -> bool:
        while not self._waiting:
            if self._ended:
                return False
            self._arrived.clear()
            await self._arrived.wait()
        return True


class LiveFeed:
    """The newest group of pictures of one camera, and its viewers.

    `offer` and `lost` are the reading thread's; all else belongs to the loop. Memory: one group of pictures, at most
    MOST_GROUP_BYTES; a longer one is not kept, and a viewer then waits for the next keyframe.
    """

    def __init__(self, *, loop: asyncio.AbstractEventLoop, wake: Callable[[], Awaitable[str]] | None = None) -> None:
        """`wake`: asks for frames where none come before somebody watches; it tells why none do, "" when they do."""
        self._loop = loop
        self._wake = wake
        self._lock = threading.Lock()
        self._group: list[tuple[int, EncodedFrame]] = []
        self._bytes = 0
        self._number = 0
        self._shown = 0
        self._plain_groups = _PLAIN_GROUPS
        self._watched = False
        self._views: set[LiveView] = set()
        self._ended = False
        self.sound: AudioFormat | None = None
        """The AAC that comes with the pictures; the reading thread says so when it connects."""

    def offer_sound(self, sound: EncodedAudio) -> None:
        """Take in a piece of AAC from the camera. Never blocks for long."""
        with self._lock:
            if self._watched:
                self._loop.call_soon_threadsafe(self._publish_sound, sound)

    def offer(self, frame: EncodedFrame) -> None:
        """Take in a frame from the camera. Never blocks for long."""
        with self._lock:
            self._number += 1
            item = (self._number, frame)
            if frame.keyframe and (frame.entry is Entry.IDR or not self._begins_with_idr):
                self._group = []
                self._bytes = 0
                self._plain_groups = min(self._plain_groups + 1, _PLAIN_GROUPS)
                self._shown = frame.pts
            if frame.pts < self._shown:
                self._plain_groups = 0
            self._shown = max(self._shown, frame.pts)
            if frame.keyframe or self._group:
                self._keep(item)
            if self._watched:
                self._loop.call_soon_threadsafe(self._publish, item)

    @property
    def _begins_with_idr(self) -> bool:
        """Return whether the group kept is one that browsers can begin at: a recovery point within it ends none."""
        return bool(self._group) and self._group[0][1].entry is Entry.IDR

    def lost(self) -> None:
        """Drop the kept frames: the camera's stream broke, so they are not live any more."""
        with self._lock:
            self._group = []
            self._bytes = 0

    def group(self) -> tuple[tuple[int, EncodedFrame], ...]:
        """Return the frames since the newest keyframe, each with its number; none while nothing is live."""
        with self._lock:
            return tuple(self._group)

    @property
    def reorders(self) -> bool:
        """True while the camera sent B-frames lately: the group that runs may be too young to show it."""
        return self._plain_groups < _PLAIN_GROUPS

    async def awake(self) -> str:
        """Have frames come, for a viewer who is about to watch; why there are none, where that is known."""
        return "" if self._wake is None else await self._wake()

    @property
    def watched(self) -> bool:
        """True while anybody watches; callable from any thread."""
        return self._watched

    @property
    def viewers(self) -> int:
        """Number of viewers."""
        return len(self._views)

    @contextmanager
    def watch(self, *, sound: bool = False) -> Iterator[LiveView]:
        """Add a viewer for the length of the block; `sound`: with sound."""
        view = LiveView(self, sound=sound)
        self._views.add(view)
        with self._lock:
            self._watched = True
        view.restart()
        if self._ended:
            view.end()
        try:
            yield view
        finally:
            self._views.discard(view)
            with self._lock:
                self._watched = bool(self._views)

    def end(self) -> None:
        """End every viewer's stream: the camera is no longer read."""
        self._ended = True
        for view in self._views:
            view.end()

    def _keep(self, item: tuple[int, EncodedFrame]) -> None:
        self._bytes += len(item[1].data)
        if self._bytes > MOST_GROUP_BYTES or len(self._group) >= MOST_GROUP_FRAMES:
            self._group = []
            self._bytes = 0
            return
        self._group.append(item)

    def _publish_sound(self, sound: EncodedAudio) -> None:
        for view in self._views:
            view.hear(sound)

    def _publish(self, item: tuple[int, EncodedFrame]) -> None:
        for view in self._views:
            view.take(*item)


def why_not_live(group: tuple[tuple[int, EncodedFrame], ...], *, reorders: bool = False) -> str:
    """Return the reason why browsers cannot play this group of pictures by WebRTC; "" when they can. Pure.

    `reorders`: the camera is known to send B-frames.
    """
    if any(frame.codec is VideoCodec.H265 for _, frame in group):
        return "the camera sends H.265, which browsers do not take by WebRTC: set a live_url that gives H.264"
    if group and group[0][1].entry is not Entry.IDR:
        return (
            "the camera sends no IDR pictures, at which browsers begin: turn off open groups of pictures or intra "
            "refresh in the camera, or set a live_url"
        )
    shown = [frame.pts for _, frame in group]
    if reorders or shown != sorted(shown):
        return "the camera sends B-frames, which WebRTC cannot carry: turn them off in the camera, or set a live_url"
    return ""
