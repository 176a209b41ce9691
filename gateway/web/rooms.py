"""What the web layer knows of the rooms beside it: the narrow faces of recording and central, and small values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aiohttp import web

from gateway.domain.accounts import CentralAdmission
from gateway.domain.exhibits import Exhibit, Labels
from gateway.domain.passages import CameraEvent
from gateway.domain.relaying import RelayedAnswer, RelayedRequest
from gateway.domain.viewing import ViewOpened
from gateway.domain.writes import JsonObject, WriteOperation, Written
from gateway.site.running import Reloaded
from gateway.store import OutboxRow, Segment, Webhook

Readiness = Callable[[], tuple[str, ...]]
"""What is not ready, one sentence each; empty when the gateway is ready."""


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

    async def open(self, camera_id: int, offer: str) -> ViewOpened:
        """Begin a view by a viewer's SDP offer."""
        ...

    async def trickle(self, camera_id: int, view: str, *, tags: tuple[str, ...], fragment: str) -> None:
        """Further candidates of a viewer; `tags` name the ICE session they are for."""
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


class CentralView(Protocol):
    """How the site and central stand. Times are wall micros UTC."""

    @property
    def reachable(self) -> bool | None:
        """Whether central answers; None before the first try."""
        ...

    @property
    def since(self) -> int:
        """Since when that is so."""
        ...

    @property
    def error(self) -> str:
        """Why it does not, in one sentence; "" while it does."""
        ...

    @property
    def last_sign_in(self) -> int | None:
        """When the gateway last signed in, None for never."""
        ...

    @property
    def pulled_at(self) -> int | None:
        """When central's lists were last fetched, None for never."""
        ...

    @property
    def pulled(self) -> str:
        """What was fetched then, in words."""
        ...

    @property
    def progress(self) -> str:
        """How far a fetch under way is; "" between them."""
        ...

    @property
    def refreshing(self) -> bool:
        """Whether everything is, or will be, fetched anew."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What a technician should know, a sentence each."""
        ...

    @property
    def clock_ahead(self) -> float | None:
        """By how many seconds its clock is ahead of this machine's at most; None while it does not say."""
        ...


class CentralWrites(Protocol):
    """The one way of writing what central also keeps."""

    @property
    def alone(self) -> bool:
        """Whether there is no central, so that what is written stays at the site."""
        ...

    async def write(self, operation: WriteOperation, body: JsonObject) -> Written:
        """Carry a write out: at central while it answers, otherwise held at the site until it does.

        `body` is as the interface has it, with the `id` of a record that exists. Raises CentralRefused with central's
        status and words, StoreError when the disk takes nothing, NoRoom when too much waits for central.
        """
        ...

    async def room(self) -> None:
        """Raises NoRoom while too much waits for central, for what is written by another way."""
        ...


class KnownKey(Protocol):
    """A program's key."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def permissions(self) -> frozenset[str]:
        """What it may do, by the interface's names."""
        ...


class Keys(Protocol):
    """Keys of programs, for the legacy family."""

    async def of(self, request: web.Request) -> KnownKey | None:
        """The key that a request carries; None without one that counts."""
        ...


class OutboxDesk(Protocol):
    """What is done with what waits for central. Numbers that there are not raise NotFoundError; whatever is done with
    a row that central has not refused raises CommandRefused.
    """

    async def page(self, *, after: int, limit: int, refused: bool) -> tuple[OutboxRow, ...]:
        """Rows above a number, oldest first; those that central refused, or all."""
        ...

    async def get(self, row_id: int) -> OutboxRow:
        """One row."""
        ...

    async def retry(self, row_id: int, *, by: str) -> OutboxRow:
        """Send it again as it is."""
        ...

    async def edit(self, row_id: int, fields: JsonObject, *, by: str) -> OutboxRow:
        """Send it again with other fields; null takes one out."""
        ...

    async def drop(self, row_id: int, *, by: str) -> OutboxRow:
        """Let go of it."""
        ...


class WebhookDesk(Protocol):
    """What is done with webhooks. Ids that there are not raise NotFoundError."""

    async def create(self, *, url: str, types: Sequence[str], secret: str | None, by: str) -> Webhook:
        """Register a receiver; a secret is drawn where none is given.

        Raises ReceiverRefused, SecretRefused and CommandRefused.
        """
        ...

    async def all(self) -> tuple[Webhook, ...]:
        """Every webhook, the oldest first."""
        ...

    async def remove(self, webhook_id: str) -> None:
        """Forget one with all that waits for it."""
        ...

    async def enable(self, webhook_id: str, *, by: str) -> Webhook:
        """Send to one again."""
        ...

    async def replay(self, webhook_id: str, *, since: int | None, until: int | None) -> int:
        """Send again what was given up, or all that happened in a time (wall micros). Raises CommandRefused."""
        ...

    async def test(self, webhook_id: str) -> str:
        """Send a message to try it out; "" when it was taken, else why not."""
        ...


class SiteFile(Protocol):
    """The site file of the gateway that runs."""

    def notices(self) -> tuple[str, ...]:
        """What people must know of it, a sentence each. Never waits."""
        ...

    async def reload(self) -> Reloaded:
        """Read it again, and take what can be taken."""
        ...


class Central(Protocol):
    """The service above."""

    def snapshot(self) -> CentralView:
        """How the two stand now. Never waits."""
        ...

    def refresh(self, *, by: str) -> None:
        """Fetch everything anew, now or as soon as central answers. Never waits."""
        ...


class Relay(Protocol):
    """The way to central for what only central answers."""

    @property
    def largest(self) -> int:
        """How many bytes a body may have."""
        ...

    def away(self) -> bool:
        """Whether central is known not to answer. Never waits."""
        ...

    def answer(self, asked: RelayedRequest) -> AbstractAsyncContextManager[RelayedAnswer]:
        """Carry a request; central's answer, whose body is to be read inside. Raises NotRelayed."""
        ...


class CentralAccounts(Protocol):
    """Central's accounts. What is refused to a person says nothing of the gateway's own standing with central."""

    async def sign_in(self, username: str, password: str) -> CentralAdmission:
        """A session at central. Raises CentralRefused, and CentralUnavailable when central does not say."""
        ...

    async def prove(self, token: str, code: str) -> None:
        """Prove a session's second factor. Raises CentralRefused for a wrong code, CentralUnavailable."""
        ...

    async def sign_out(self, token: str) -> None:
        """End a session, within 2 s. Never raises: one that cannot be ended now ends by central's own time."""
        ...


@dataclass(frozen=True, slots=True)
class DemoCard:
    """A card that the demo's page can present: what the reader would send, and what to call it."""

    card: str
    label: str
