"""Live frames of a camera for its viewers: the present group of pictures, and each frame that follows.

The reading thread offers all frames. While nobody watches, that costs only a lock, and an append for each.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from drivers.rtsp.frames import AudioFormat, EncodedAudio, EncodedFrame, Entry, VideoCodec

MOST_GROUP_BYTES = 16_000_000
MOST_GROUP_FRAMES = 1_500
MOST_QUEUED = 300
_PLAIN_GROUPS = 20
"""Number of groups of pictures without a B-frame that must pass until a camera counts as sending none."""


@dataclass(frozen=True, slots=True)
class LivePicture:
    """A frame on its way to one viewer.

    Attributes:
        frame: the frame.
        number: the frame's number, counted for the camera.
        behind: whether newer frames wait already, so that this one need not be shown for its full duration.
    """

    frame: EncodedFrame
    number: int
    behind: bool


class LiveView:
    """The frames of one viewer. They begin at the present group's keyframe, and after a loss at the next keyframe.

    Belongs to the event loop.
    """

    def __init__(self, feed: LiveFeed, *, sound: bool = False) -> None:
        """Make a view of a feed. With `sound` it takes sound too, which `next_of_both` returns."""
        self._feed = feed
        self._takes_sound = sound
        self._waiting: deque[tuple[int, EncodedFrame | EncodedAudio]] = deque()
        self._arrived = asyncio.Event()
        self._last = -1
        self._needs_keyframe = True
        self._ended = False
        self.dropped = 0
        """The number of frames dropped because this viewer was too slow."""

    def restart(self) -> None:
        """Begin again at the newest keyframe, because the viewer has lost a part of the frames."""
        self._waiting.clear()
        self._needs_keyframe = True
        self._last = -1
        for number, frame in self._feed.group():
            self.take(number, frame)

    def take(self, number: int, frame: EncodedFrame) -> None:
        """Queue a frame, unless it came before. When the queue is full, drop it up to the next keyframe."""
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
        """Queue a piece of sound behind the pictures before it. It is dropped while pictures are missing."""
        if self._takes_sound and not self._needs_keyframe and len(self._waiting) < MOST_QUEUED:
            self._waiting.append((self._last, sound))
            self._arrived.set()

    def end(self) -> None:
        """End the view; what waits is still returned."""
        self._ended = True
        self._arrived.set()

    async def next(self) -> LivePicture | None:
        """Return the next picture, None when the feed has ended."""
        while await self._has_come():
            number, frame = self._waiting.popleft()
            if isinstance(frame, EncodedFrame):
                return LivePicture(frame, number, behind=bool(self._waiting))
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

    `offer`, `offer_sound` and `lost` are for the reading thread; everything else belongs to the event loop. The feed
    keeps one group of pictures of at most MOST_GROUP_BYTES. A larger one is not kept, and a new viewer then waits for
    the next keyframe.
    """

    def __init__(self, *, loop: asyncio.AbstractEventLoop, wake: Callable[[], Awaitable[str]] | None = None) -> None:
        """Make a feed for viewers on this loop.

        `wake` starts a camera that is only read while somebody watches. It returns why no frames come, "" if they do.
        """
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
        self.hurried = False
        """True if frames are wanted as they come although there may be no viewer here; set from any thread."""
        self.sound: AudioFormat | None = None
        """The format of the AAC that comes with the pictures, None for none; set by the reading thread."""

    def offer_sound(self, sound: EncodedAudio) -> None:
        """Pass a piece of AAC to the viewers. Never blocks for long."""
        with self._lock:
            if self._watched:
                self._loop.call_soon_threadsafe(self._publish_sound, sound)

    def offer(self, frames: Sequence[EncodedFrame]) -> None:
        """Keep frames with their group, and pass them to the viewers. Never blocks for long."""
        with self._lock:
            items = []
            for frame in frames:
                self._number += 1
                items.append((self._number, frame))
                if frame.keyframe and (frame.entry is Entry.IDR or not self._begins_with_idr):
                    self._group = []
                    self._bytes = 0
                    self._plain_groups = min(self._plain_groups + 1, _PLAIN_GROUPS)
                    self._shown = frame.pts
                if frame.pts < self._shown:
                    self._plain_groups = 0
                else:
                    self._shown = frame.pts
                if frame.keyframe or self._group:
                    self._keep(items[-1])
            if self._watched:
                self._loop.call_soon_threadsafe(self._publish, items)

    @property
    def _begins_with_idr(self) -> bool:
        """True when the kept group begins with an IDR picture, as browsers need; recovery points do not end it then."""
        return bool(self._group) and self._group[0][1].entry is Entry.IDR

    def lost(self) -> None:
        """Drop the kept frames: the camera's stream broke, so they are not live any more."""
        with self._lock:
            self._group = []
            self._bytes = 0

    def group(self) -> tuple[tuple[int, EncodedFrame], ...]:
        """Return the frames of the present group, each with its number; none while nothing is live."""
        with self._lock:
            return tuple(self._group)

    @property
    def reorders(self) -> bool:
        """True when the camera sent B-frames recently, even if the present group has none yet."""
        return self._plain_groups < _PLAIN_GROUPS

    async def awake(self) -> str:
        """Start the camera's frames for a viewer; return why none come, "" when they do or no reason is known."""
        return "" if self._wake is None else await self._wake()

    @property
    def watched(self) -> bool:
        """True while anybody watches; callable from any thread."""
        return self._watched or self.hurried

    @property
    def viewers(self) -> int:
        """The number of viewers."""
        return len(self._views)

    @contextmanager
    def watch(self, *, sound: bool = False) -> Iterator[LiveView]:
        """Add a viewer for the length of the block. With `sound` it gets sound too."""
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
        """End every viewer's stream, because the camera is no longer read."""
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

    def _publish(self, items: list[tuple[int, EncodedFrame]]) -> None:
        for view in self._views:
            for number, frame in items:
                view.take(number, frame)


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
