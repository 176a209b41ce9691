"""Live views by HLS, from the newest recorded segments, some seconds behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.recording import playlists
from gateway.recording.file_cache import FoundFiles
from gateway.recording.live_playlist import MOST_SEGMENTS, fitting, listed, live_media, live_target
from gateway.runtime.clock import Clock
from gateway.store import Segment
from gateway.store.footage.chain_links import ChainLinks
from gateway.store.footage.segments import Segments

_STALE_MICROS = 60_000_000
_PLAYED_SECONDS = 60.0
"""A playlist that was not requested for this long has no player any more."""


@dataclass(frozen=True, slots=True)
class _Promise:
    """The target duration of a camera's playlist, which must not change while a player uses it (RFC 8216, 6.2.1).

    Attributes:
        target: the duration in seconds.
        until: monotonic seconds until which the promise holds.
        ended: whether the playlist has ended, because segments became too long for it.
    """

    target: int
    until: float
    ended: bool = False


@dataclass(frozen=True, slots=True)
class _Live:
    """Live segments of a camera. `ended`: the playlist ends, because later segments are longer than was promised."""

    segments: tuple[Segment, ...]
    target: int
    ended: bool


class LiveHls:
    """Live playlists and segments of the cameras.

    All methods raise NotFoundError for an unknown camera or segment. Playlists raise CameraUnavailable while nothing
    new is recorded, so that nobody takes old footage for live.
    """

    def __init__(
        self,
        *,
        segments: Segments,
        links: ChainLinks,
        media: Path,
        clock: Clock,
        cameras: Callable[[], frozenset[int]],
        refuse: Callable[[], None] = lambda: None,
    ) -> None:
        """Keep the collaborators. `refuse` raises CameraUnavailable while a thread that touched a file would hang."""
        self._refuse = refuse
        self._segments = segments
        self._links = links
        self._media = media
        self._clock = clock
        self._cameras = cameras
        self._found = FoundFiles(monotonic=clock.monotonic)
        self._promised: dict[int, _Promise] = {}

    async def master(self, camera_id: int) -> str:
        """Write the master playlist; it refers to `index.m3u8`."""
        live = await self._newest(camera_id)
        return playlists.master(live.segments, target=live.target)

    async def playlist(self, camera_id: int) -> str:
        """Write the media playlist; it refers to `<number>.ts`."""
        live = await self._newest(camera_id)
        return live_media(live.segments, target=live.target, ended=live.ended)

    async def segment(self, camera_id: int, number: int) -> Path:
        """Return the MPEG-TS file of the segment with this number in the camera's chain."""
        self._refuse()
        if (known := self._found.get((camera_id, number))) is not None:
            return known
        found = await self._segments.numbered(camera_id, number) if camera_id in self._cameras() else None
        if found is None:
            raise NotFoundError(f"camera {camera_id} has no segment {number} (any more)")
        return self._found.note((camera_id, number), self._media / found.path)

    async def _newest(self, camera_id: int) -> _Live:
        if camera_id not in self._cameras():
            raise NotFoundError(f"this site has no camera {camera_id}")
        wanted = live_target(await self._links.longest(camera_id))
        newest = await self._segments.newest(camera_id, most=MOST_SEGMENTS)
        target = self._target(camera_id, wanted)
        segments = listed(newest, target=target)
        if not segments:
            raise CameraUnavailable(f"camera {camera_id} has no footage yet")
        if self._clock.wall().micros - segments[-1].ended_at > _STALE_MICROS:
            raise CameraUnavailable(f"camera {camera_id} records nothing now; its footage ends earlier")
        fit = fitting(segments, target=target)
        ended = len(fit) < len(segments)
        if ended and not fit:  # nothing of the ended playlist is left, so that a new one can begin
            target = self._promise(camera_id, wanted)
            return _Live(listed(newest, target=target), target, ended=False)
        if ended and not self._promised[camera_id].ended:
            until = self._clock.monotonic() + 2 * target  # by then each player has asked again and seen the end
            self._promised[camera_id] = _Promise(target, until, ended=True)
        return _Live(fit, target, ended)

    def _target(self, camera_id: int, wanted: int) -> int:
        """Return the promised target duration; make a new promise if there is no player or the playlist has ended."""
        promised = self._promised.get(camera_id)
        if promised is None or self._clock.monotonic() >= promised.until:
            return self._promise(camera_id, wanted)
        if not promised.ended:
            self._promise(camera_id, promised.target)
        return promised.target

    def _promise(self, camera_id: int, target: int) -> int:
        self._promised[camera_id] = _Promise(target, self._clock.monotonic() + _PLAYED_SECONDS)
        return target
