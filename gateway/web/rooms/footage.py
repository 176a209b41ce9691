"""The footage as the web layer knows it: cameras, storage, live views, files that people add."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from gateway.domain.evidence import Exhibit, Labels
from gateway.domain.footage import Missing
from gateway.domain.passages import CameraEvent
from gateway.domain.viewing import ViewOpened
from gateway.store import Segment


class CameraView(Protocol):
    """A camera as it is now. Times are wall micros UTC."""

    @property
    def camera_id(self) -> int:
        """Its id, which is central's."""
        ...

    @property
    def name(self) -> str:
        """Its name in the site file."""
        ...

    @property
    def condition(self) -> str:
        """What it is doing: starting, recording, unreachable, refused, stalled or disk_failed."""
        ...

    @property
    def detail(self) -> str:
        """Why, in one sentence without secrets; "" when all is well."""
        ...

    @property
    def since(self) -> int:
        """Since when."""
        ...

    @property
    def last_segment_at(self) -> int | None:
        """When its newest footage ends, None before the first."""
        ...

    @property
    def bits_per_second(self) -> int:
        """What it sends."""
        ...

    @property
    def reconnects(self) -> int:
        """How often it had to be connected anew."""
        ...


class StorageView(Protocol):
    """How much footage there is."""

    @property
    def footage_bytes(self) -> int:
        """Of footage that is kept."""
        ...

    @property
    def cap_bytes(self) -> int:
        """Of footage that may be kept."""
        ...

    @property
    def free_bytes(self) -> int:
        """Free on its disk."""
        ...

    @property
    def bytes_per_day(self) -> int:
        """What came in lately."""
        ...

    @property
    def full_in_days(self) -> float | None:
        """When there will be no more room, None for never."""
        ...

    @property
    def text(self) -> str:
        """All of that in a few words."""
        ...

    @property
    def short(self) -> bool:
        """Whether cameras pause for want of room."""
        ...


class Viewing(Protocol):
    """Cameras watched live by WebRTC.

    Each method raises NotShown when a request cannot be met, NotFoundError for a camera that is not of the site, and
    CameraUnavailable when it cannot be had now.
    """

    async def expect(self, camera_id: int) -> None:
        """Somebody has asked where to watch this camera, and may do so in a moment. Never raises, never waits long."""
        ...

    async def open(self, camera_id: int, offer: str) -> ViewOpened:
        """Begin a view by a viewer's SDP offer."""
        ...

    async def trickle(self, camera_id: int, view: str, *, tags: tuple[str, ...], fragment: str) -> None:
        """Further candidates of a viewer; `tags` name the ICE session they are for."""
        ...

    async def look(self, camera_id: int, view: str) -> None:
        """Return if the view is open; NotShown if it has ended."""
        ...

    async def end(self, camera_id: int, view: str) -> None:
        """End a view."""
        ...


class LiveFootage(Protocol):
    """What the cameras record now, by HLS. Each method raises NotFoundError, CameraUnavailable."""

    async def master(self, camera_id: int) -> str:
        """The HLS multivariant playlist of a camera; it refers to `index.m3u8`."""
        ...

    async def playlist(self, camera_id: int) -> str:
        """The live HLS media playlist of a camera; it refers to `<number>.ts`."""
        ...

    async def segment(self, camera_id: int, number: int) -> Path:
        """One MPEG-TS segment of a camera."""
        ...


class Incoming(Protocol):
    """A file that is being received."""

    async def write(self, data: bytes) -> None:
        """Take more of it. Raises TooLarge, StoreError when the disk takes no more."""
        ...

    @property
    def sha256(self) -> str:
        """Of what was taken, once it was finished."""
        ...

    async def finish(self) -> None:
        """All of it is here. Raises StoreError."""
        ...

    async def keep(self, camera_event: CameraEvent, labels: Labels) -> Exhibit:
        """Keep it, finished; on return it is on disk. Raises NotFoundError, TooMany, StoreError."""
        ...


class ExhibitShelf(Protocol):
    """Files that people add to camera events."""

    def receive(self) -> AbstractAsyncContextManager[Incoming]:
        """A place for one file; what is not kept leaves nothing behind. Raises CameraUnavailable."""
        ...

    def path(self, exhibit: Exhibit) -> Path:
        """Its file. Raises NotFoundError, CameraUnavailable."""
        ...


class Recording(Protocol):
    """The footage, and what can be made of it.

    Each method raises NotFoundError when there is no such camera or no footage, CameraUnavailable when it cannot be
    had now. Paths are of durable files.
    """

    @property
    def viewing(self) -> Viewing:
        """Live views of the cameras."""
        ...

    @property
    def live(self) -> LiveFootage:
        """What the cameras record now."""
        ...

    @property
    def exhibits(self) -> ExhibitShelf:
        """Files that people added to camera events."""
        ...

    def cameras(self) -> tuple[CameraView, ...]:
        """Every camera of the site file, in its order. Never waits."""
        ...

    def storage(self) -> StorageView | None:
        """How much footage there is and how long the storage lasts; None until it was looked at. Never waits."""
        ...

    async def clip(self, camera_event: CameraEvent) -> Path:
        """The MP4 of an event."""
        ...

    async def parts(self, camera_event: CameraEvent) -> tuple[tuple[Path, Segment], ...]:
        """The segments that an event's clip is made from, each with its file."""
        ...

    async def leaves(self, camera_id: int, *, after: int, before: int) -> tuple[str, ...] | None:
        """What links two segments of a camera's chain, by their numbers; None when that is not known any more."""
        ...

    async def missing(self, camera_events: Iterable[CameraEvent]) -> dict[int, tuple[Missing, ...]]:
        """What of each camera event's time its clip does not show, and why, by the event's id. Raises StoreError."""
        ...

    async def event_thumbnail(self, camera_event: CameraEvent) -> Path:
        """A JPEG of an event."""
        ...

    async def forget(self, camera_event_id: int) -> None:
        """A camera event was deleted: what was made of it and added to it goes too."""
        ...

    async def camera_thumbnail(self, camera_id: int) -> Path:
        """A JPEG of a camera's newest footage."""
        ...

    async def vod_master(self, camera_event: CameraEvent) -> str:
        """The HLS multivariant playlist of an event; it refers to `index.m3u8`."""
        ...

    async def vod_media(self, camera_event: CameraEvent) -> str:
        """The HLS media playlist of an event; it refers to `<segment id>.ts`."""
        ...

    async def vod_segment(self, camera_event: CameraEvent, segment_id: int) -> Path:
        """One MPEG-TS segment that belongs to the event."""
        ...
