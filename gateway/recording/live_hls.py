"""Live views by HLS, from the newest recorded segments and the parts of the one that is being written."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from gateway.domain.errors import CameraUnavailable, GatewayError, NotFoundError
from gateway.domain.footage import WantParts
from gateway.recording import playlists
from gateway.recording.live_parts import LISTED_SEGMENTS, LiveParts, OpenPart, PartedSegment
from gateway.recording.playlists import (
    CLASSIC_START,
    MOST_SEGMENTS,
    LowLatency,
    PlaylistPart,
    PlaylistReload,
    fitting,
    is_too_far,
    listed,
    live_media,
    live_target,
    number_of,
    part_length,
    part_target,
)
from gateway.runtime.clock import Clock
from gateway.store import Segment
from gateway.store.footage.chain_links import ChainLinks
from gateway.store.footage.segments import Segments
from gateway.texts import text

_STALE_MICROS = 60_000_000
_PLAYED_SECONDS = 60.0
"""A playlist that was not requested for this long has no player any more."""
_ROWS_SECONDS = 1.0
BLOCKED_TARGETS = 3
"""A request may wait for this many target durations (RFC 8216bis, 6.2.5.2)."""
_FIRST_PARTS_SECONDS = 1.5
"""A camera that nobody watched gives its first parts within this time. A player that begins without them stalls."""
_MICROS = 1_000_000

_MOST = 1024
_REMEMBERED_SECONDS = 10.0

Place = tuple[int, ...]


class TooFarAhead(GatewayError):
    """A request for a playlist that will not exist soon."""


@dataclass(frozen=True, slots=True)
class _Promise:
    """The values that stay the same while a player uses a camera's playlist (RFC 8216, 6.2.1).

    Attributes:
        target: the target duration in seconds.
        part_length: the wanted duration of parts in micros.
        until: monotonic seconds until which the promise holds.
        ended: whether the playlist has ended, because segments became too long for it.
    """

    target: int
    part_length: int
    until: float
    ended: bool = False


@dataclass(frozen=True, slots=True)
class _Live:
    """Live segments of a camera, with what is promised of their durations.

    `ended`: the playlist ends, because later segments are longer than was promised.
    """

    segments: tuple[Segment, ...]
    target: int
    part_length: int
    ended: bool
    parts: LowLatency | None = None

    @property
    def last(self) -> int:
        """The number of the last segment."""
        return number_of(self.segments[-1])

    def text(self) -> str:
        """Write the media playlist."""
        return live_media(self.segments, target=self.target, ended=self.ended, parts=self.parts)

    def has(self, wanted: PlaylistReload) -> bool:
        """Return whether a client need not wait any more."""
        parts = self.parts or LowLatency(target=1)
        return self.ended or parts.has(wanted, last=self.last)


@dataclass(slots=True, eq=False)
class _LiveCamera:
    """One camera: its newest rows since `read_at`, its last playlist, and an event that is set when either changes."""

    rows: tuple[Segment, ...] = ()
    longest: int = 0
    read_at: float = float("-inf")
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    written: tuple[_Live, str] | None = None


class SegmentPaths:
    """Paths by the place that names them, for ten seconds: a segment never changes, but may be deleted."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._found: OrderedDict[Place, tuple[float, Path]] = OrderedDict()

    def get(self, place: Place) -> Path | None:
        """Return the path noted for `place` within the last ten seconds, or None."""
        until, path = self._found.get(place, (0.0, None))
        return path if self._monotonic() < until else None

    def note(self, place: Place, path: Path) -> Path:
        """Store the path found for `place`, and return it."""
        self._found[place] = (self._monotonic() + _REMEMBERED_SECONDS, path)
        self._found.move_to_end(place)
        if len(self._found) > _MOST:
            self._found.popitem(last=False)
        return path


class LiveHls:
    """Live playlists, segments and parts of the cameras.

    All methods raise NotFoundError for an unknown camera or segment. Playlists raise CameraUnavailable while nothing
    new is recorded, so that nobody takes old footage for live.
    """

    def __init__(
        self,
        *,
        segments: Segments,
        links: ChainLinks,
        ask_for_parts: Callable[[WantParts], Awaitable[None]],
        media: Path,
        clock: Clock,
        cameras: Callable[[], frozenset[int]],
        events_only: Callable[[], frozenset[int]] = frozenset,
        refuse: Callable[[], None] = lambda: None,
    ) -> None:
        """Keep the collaborators.

        Args:
            segments: the rows of segments.
            links: the chains of segments.
            ask_for_parts: asks a camera's worker to report parts.
            media: the media folder.
            clock: wall and monotonic time.
            cameras: returns the site's cameras.
            events_only: returns those recorded for events only, whose segments have no parts.
            refuse: raises CameraUnavailable while a thread that touched a file would hang.
        """
        self._refuse = refuse
        self._segments = segments
        self._links = links
        self._media = media
        self._clock = clock
        self._ids = cameras
        self._events_only = events_only
        self._segment_paths = SegmentPaths(monotonic=clock.monotonic)
        self._promised: dict[int, _Promise] = {}
        self._cameras = defaultdict[int, _LiveCamera](_LiveCamera)
        self._releases = 0
        self.parts = LiveParts(media=media, clock=clock, ask=ask_for_parts, changed=self._wake)

    async def master(self, camera_id: int) -> str:
        """Write the master playlist; it refers to `index.m3u8`."""
        live = await self._newest(camera_id)
        return playlists.master(live.segments, target=live.target)

    async def playlist(self, camera_id: int, wanted: PlaylistReload | None = None) -> str:
        """Write the media playlist; it refers to `<number>.ts`, and for parts to `<number>.<index>.ts`.

        With `wanted`, wait until the playlist has it. Raises TooFarAhead for what cannot come soon, and
        CameraUnavailable if it does not come within three target durations.
        """
        live = await self._newest(camera_id)
        is_first = await self._want_parts(camera_id, live)
        if wanted is None:
            if is_first:
                live = await self._until(camera_id, _has_parts, seconds=_FIRST_PARTS_SECONDS)
        elif not live.has(wanted):
            per_part = 0 if live.parts is None else live.parts.target
            if is_too_far(wanted, last=live.last, target=live.target, part_target=per_part):
                raise TooFarAhead(f"camera {camera_id} will not have that soon; its last segment is {live.last}")
            live = await self._until(camera_id, lambda now: now.has(wanted), seconds=BLOCKED_TARGETS * live.target)
            if not live.has(wanted):
                raise CameraUnavailable(f"camera {camera_id} has recorded nothing more; ask again")
        return self._text(camera_id, live)

    async def classic(self, camera_id: int) -> str:
        """Write the media playlist without parts, with a hint for players where to begin."""
        live = await self._newest(camera_id)
        return live_media(live.segments, target=live.target, ended=live.ended, start=CLASSIC_START)

    async def segment(self, camera_id: int, number: int) -> Path:
        """Return the MPEG-TS file of the segment with this number in the camera's chain."""
        self._refuse()
        if (known := self._segment_paths.get((camera_id, number))) is not None:
            return known
        found = await self._segments.numbered(camera_id, number) if camera_id in self._ids() else None
        if found is None:
            raise NotFoundError(text("refused.segment_gone", camera=str(camera_id), segment=str(number)))
        return self._segment_paths.note((camera_id, number), self._media / found.path)

    async def part(self, camera_id: int, number: int, index: int) -> OpenPart:
        """Return a part of a segment. Wait for the next one to come, which the playlist has as a hint."""
        if (known := self.parts.part(camera_id, number, index)) is not None:
            return known
        live = await self._newest(camera_id)
        growing = () if live.parts is None else live.parts.growing
        if live.parts is not None and (number, index) == (live.last + 1, len(growing)):
            await self._want_parts(camera_id, live)
            await self._until(
                camera_id,
                lambda now: now.last >= number or self.parts.part(camera_id, number, index) is not None,
                seconds=live.target,
            )
        if (known := self.parts.part(camera_id, number, index)) is None:
            raise NotFoundError(f"camera {camera_id} has no part {index} of segment {number} (any more)")
        return known

    def rows_changed(self, camera_ids: frozenset[int]) -> None:
        """Read the rows of these cameras again, because segments were added."""
        for camera_id in camera_ids & self._cameras.keys():
            self._cameras[camera_id].read_at = float("-inf")
            self._wake(camera_id)

    def release(self) -> None:
        """Answer everybody who waits now, because the gateway stops serving."""
        self._releases += 1
        for camera_id in self._cameras:
            self._wake(camera_id)

    def _wake(self, camera_id: int) -> None:
        if (camera := self._cameras.get(camera_id)) is not None:
            camera.changed.set()
            camera.changed = asyncio.Event()

    async def _until(self, camera_id: int, met: Callable[[_Live], bool], *, seconds: float) -> _Live:
        """Return the live segments once they meet a condition, or after some seconds as they are then."""
        deadline, releases = asyncio.get_running_loop().time() + seconds, self._releases
        while True:
            changed = self._cameras[camera_id].changed
            live = await self._newest(camera_id)
            if live.ended or self._releases != releases or met(live):
                return live
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                return live

    async def _want_parts(self, camera_id: int, live: _Live) -> bool:
        """Have parts reported, if the camera's segments have any; return whether they were not until now."""
        if live.parts is None or live.ended:
            return False
        return await self.parts.want(
            camera_id, part_seconds=live.part_length / _MICROS, longest_seconds=live.target + 0.5
        )

    def _text(self, camera_id: int, live: _Live) -> str:
        """Write the media playlist once for all who wait for the same one."""
        camera = self._cameras[camera_id]
        if camera.written is None or camera.written[0] != live:
            camera.written = live, live.text()
        return camera.written[1]

    async def _newest(self, camera_id: int) -> _Live:
        if camera_id not in self._ids():
            raise NotFoundError(text("refused.camera_unknown", camera=str(camera_id)))
        newest, longest = await self._rows(camera_id)
        wanted = live_target(longest)
        promise = self._target(camera_id, wanted, newest)
        segments = listed(newest, target=promise.target)
        if not segments:
            raise CameraUnavailable(text("refused.camera_without_footage", camera=str(camera_id)))
        if self._clock.wall().micros - segments[-1].ended_at > _STALE_MICROS:
            raise CameraUnavailable(text("refused.camera_records_nothing", camera=str(camera_id)))
        fit = fitting(segments, target=promise.target)
        ended = len(fit) < len(segments)
        if ended and not fit:  # nothing of the ended playlist is left, so that a new one can begin
            promise = self._promise(camera_id, wanted, part_length(newest))
            fit, ended = listed(newest, target=promise.target), False
        elif ended and not promise.ended:
            until = self._clock.monotonic() + 2 * promise.target  # by then each player has asked again and seen the end
            self._promised[camera_id] = _Promise(promise.target, promise.part_length, until, ended=True)
        parts = None if camera_id in self._events_only() else await self._parts_of(camera_id, fit, promise)
        return _Live(fit, promise.target, promise.part_length, ended, parts)

    async def _rows(self, camera_id: int) -> tuple[tuple[Segment, ...], int]:
        """Return a camera's newest segments and its longest duration, read once for all who ask within a second."""
        camera = self._cameras[camera_id]
        async with camera.reading:
            now = self._clock.monotonic()
            if now - camera.read_at >= _ROWS_SECONDS:
                camera.read_at = now  # before it is read, so that a row added meanwhile is read the next time
                try:
                    camera.longest = await self._links.longest(camera_id)
                    camera.rows = await self._segments.newest(camera_id, most=MOST_SEGMENTS)
                except BaseException:  # also when cancelled: nothing was read, so the next request reads
                    camera.read_at = float("-inf")
                    raise
            return camera.rows, camera.longest

    async def _parts_of(self, camera_id: int, segments: tuple[Segment, ...], promise: _Promise) -> LowLatency:
        last = segments[-1]
        growing = await self.parts.after(camera_id, last.path)
        if growing is not None:
            growing.number = number_of(last) + 1
        finished: dict[int, tuple[PlaylistPart, ...]] = {}
        behind = 0 if growing is None else sum(part.duration for part in growing.parts)
        for segment in reversed(segments[-LISTED_SEGMENTS:]):
            known = self.parts.of(camera_id, segment.path)
            is_near = behind <= BLOCKED_TARGETS * promise.target * _MICROS
            if is_near and known is not None and known.number == number_of(segment):
                finished[known.number] = _as_listed(known)
            behind += segment.duration
        return LowLatency(
            target=part_target(promise.part_length),
            finished=finished,
            growing=() if growing is None else _as_listed(growing),
            goes_on=number_of(last) in finished if growing is None else not growing.path,
        )

    def _target(self, camera_id: int, wanted: int, newest: tuple[Segment, ...]) -> _Promise:
        """Return what is promised; make a new promise if there is no player or the playlist has ended."""
        promised = self._promised.get(camera_id)
        if promised is None or self._clock.monotonic() >= promised.until:
            return self._promise(camera_id, wanted, part_length(newest))
        if not promised.ended:
            return self._promise(camera_id, promised.target, promised.part_length)
        return promised

    def _promise(self, camera_id: int, target: int, length: int) -> _Promise:
        promise = _Promise(target, length, self._clock.monotonic() + _PLAYED_SECONDS)
        self._promised[camera_id] = promise
        return promise


def _has_parts(live: _Live) -> bool:
    return live.parts is not None and bool(live.parts.growing)


def _as_listed(segment: PartedSegment) -> tuple[PlaylistPart, ...]:
    return tuple(PlaylistPart(part.duration, part.independent) for part in segment.parts)
