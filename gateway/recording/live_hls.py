"""Cameras live by HLS: their newest recorded segments, some seconds behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gateway.clock import Clock
from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.recording import playlists
from gateway.recording.found_files import FoundFiles
from gateway.recording.live_playlist import MOST_SEGMENTS, listed, live_media, live_target
from gateway.store import Segment, Store

_STALE_MICROS = 60_000_000


class LiveHls:
    """Playlists and segments of what a camera sends now.

    Everything raises NotFoundError for what there is not, and CameraUnavailable while nothing new is recorded: old
    footage must not be taken for the present.
    """

    def __init__(
        self,
        *,
        store: Store,
        media: Path,
        clock: Clock,
        cameras: Callable[[], frozenset[int]],
        refuse: Callable[[], None] = lambda: None,
    ) -> None:
        """`refuse` raises CameraUnavailable while whoever touched a file would hang."""
        self._refuse = refuse
        self._store = store
        self._media = media
        self._clock = clock
        self._cameras = cameras
        self._found = FoundFiles(monotonic=clock.monotonic)

    async def master(self, camera_id: int) -> str:
        """The master playlist; it refers to `index.m3u8`."""
        segments, target = await self._newest(camera_id)
        return playlists.master(segments, target=target)

    async def playlist(self, camera_id: int) -> str:
        """The media playlist; it refers to `<number>.ts`."""
        segments, target = await self._newest(camera_id)
        return live_media(segments, target=target)

    async def segment(self, camera_id: int, number: int) -> Path:
        """The file of a segment, MPEG-TS, for as long as it is kept."""
        self._refuse()
        if (known := self._found.get((camera_id, number))) is not None:
            return known
        found = await self._store.segments.numbered(camera_id, number) if camera_id in self._cameras() else None
        if found is None:
            raise NotFoundError(f"camera {camera_id} has no segment {number} (any more)")
        return self._found.note((camera_id, number), self._media / found.path)

    async def _newest(self, camera_id: int) -> tuple[tuple[Segment, ...], int]:
        if camera_id not in self._cameras():
            raise NotFoundError(f"this site has no camera {camera_id}")
        target = live_target(await self._store.footage_links.longest(camera_id))
        segments = listed(await self._store.segments.newest(camera_id, most=MOST_SEGMENTS), target=target)
        if not segments:
            raise CameraUnavailable(f"camera {camera_id} has no footage yet")
        if self._clock.wall().micros - segments[-1].ended_at > _STALE_MICROS:
            raise CameraUnavailable(f"camera {camera_id} records nothing now; its footage ends earlier")
        return segments, target
