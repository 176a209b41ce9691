"""Cameras: rules, models and handlers, and the record in answers (central's, overlaid by the site's own fields)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.domain.errors import NotFoundError
from gateway.domain.writes import CAMERA_CREATE as WRITE_CREATE
from gateway.domain.writes import CAMERA_DELETE as WRITE_DELETE
from gateway.domain.writes import CAMERA_UPDATE as WRITE_UPDATE
from gateway.domain.writes import WaitingWrite
from gateway.recording import CameraSnapshot
from gateway.recording.live_hls import TooFarAhead
from gateway.recording.playlists import PlaylistReload
from gateway.runtime.clock import iso_utc
from gateway.site import Camera
from gateway.store import KnownRecord
from gateway.texts import text
from gateway.web.answers import Answer, Listed, Status
from gateway.web.auth.callers import Caller
from gateway.web.auth.view_tokens import TokenView
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, ById, Id, Line, Number, SentChange, ShortName, Word, WriteBody, Yes
from gateway.web.http.errors import RequestRefused, success, success_listed
from gateway.web.http.files import JPEG, as_file, as_part, as_playlist, as_segment, in_time
from gateway.web.operation import UNCONFIRMED, VIEW_CAMERAS, ViewKind, needs
from gateway.web.operations.records import Record, central_record, sync_state, text_of
from gateway.web.operations.whep import PREFIX

LIVE_PREFIX = "/v1/camera/live/"
_KIND = "camera"
_OF_THE_SITE_FILE = frozenset(Camera.model_fields) - {"id", "name"}
_SEGMENT_FILE = re.compile(r"([0-9]{1,18})\.ts")
_PART_FILE = re.compile(r"([0-9]{1,18})\.([0-9]{1,6})\.ts")


class CameraFields(WriteBody):
    """The fields of a camera that can be written; others are ignored. null empties a text."""

    null_means: ClassVar[Mapping[str, JsonValue]] = MappingProxyType({"description": "", "location": ""})

    name: ShortName | None = None
    type: Number | Word | None = None
    description: Line | None = None
    location: Line | None = None
    enabled: Yes | None = None


class NewCamera(CameraFields):
    """A camera to be created at central."""

    name: ShortName


class ChangedCamera(CameraFields):
    """Changed fields of a camera."""

    id: Id


class CameraRecord(BaseModel):
    """A camera: central's own fields, overlaid by the site's.

    `stream` is its address for WebRTC (WHEP), `hls_url` for HLS; both are "" for a camera of another site. Both
    addresses hold a token, so that players need no session.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int
    name: str
    stream: str
    hls_url: str
    status: str
    at_site: bool
    sync: Literal["in_step", "waiting", "refused", "taken_back"] = "in_step"


class CameraAnswer(Answer):
    """One camera."""

    camera: CameraRecord


class CamerasAnswer(Listed):
    """Every camera."""

    cameras: tuple[CameraRecord, ...]


class CameraStatus(BaseModel):
    """The present state of a camera."""

    model_config = ConfigDict(frozen=True)

    id: int
    name: str
    status: Status
    condition: str
    detail: str
    since: str
    last_segment_at: str | None
    bits_per_second: int
    reconnects: int


class CameraStatusAnswer(Answer):
    """The present state of a camera."""

    status: CameraStatus


class LiveQuery(BaseModel):
    """The delivery directives of HLS (RFC 8216bis, 6.2.5): wait until `index.m3u8` has this segment, or part of it."""

    model_config = ConfigDict(frozen=True)

    number: Annotated[int, Field(ge=0, lt=2**63)] | None = Field(default=None, alias="_HLS_msn")
    part: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(default=None, alias="_HLS_part")


class Cameras(Family):
    """The handlers of `/v1/camera`."""

    @operation(
        "POST", "/v1/camera/list", VIEW_CAMERAS, "cameras", purpose="List cameras", answer=CamerasAnswer, reads=True
    )
    async def _list(self, _: Body, request: web.Request, caller: Caller) -> web.StreamResponse:
        known = await self.context.store.cameras.all()
        waiting = defaultdict[int, list[WaitingWrite]](list)
        for write in await self.context.store.pending_writes.waiting(_KIND):
            waiting[write.record_id].append(write)
        cameras = (self._record(item, request, caller, waiting[item.id]) for item in known)
        return await success_listed(request, "cameras", cameras, count=len(known))

    @operation(
        "POST", "/v1/camera", VIEW_CAMERAS, "camera", purpose="One camera by its id", answer=CameraAnswer, reads=True
    )
    async def _get(self, wanted: ById, request: web.Request, caller: Caller) -> web.StreamResponse:
        known = await self._known(wanted.id)
        await self.context.recording.viewing.expect(known.id)
        return success(camera=await self._shown(known, request, caller))

    @operation(
        "PUT",
        "/v1/camera",
        needs("can_add_cameras"),
        "camera",
        purpose="Create a camera of central's",
        answer=CameraAnswer,
    )
    async def _create(self, wanted: NewCamera, request: web.Request, caller: Caller) -> web.StreamResponse:
        """Add a camera at central. The gateway does not record it: it records only the cameras of the site file."""
        written = await self.context.writes.write(WRITE_CREATE, wanted.fields)
        known = None if written.record_id is None else await self.context.store.cameras.get(written.record_id)
        return success(camera=written.record if known is None else await self._shown(known, request, caller))

    @operation(
        "PATCH", "/v1/camera", needs("can_edit_cameras"), "camera", purpose="Update a camera", answer=CameraAnswer
    )
    async def _change(
        self, change: SentChange[ChangedCamera], request: web.Request, caller: Caller
    ) -> web.StreamResponse:
        known = await self._known(change.id)
        shown = await self._shown(known, request, caller)
        wanted = change.to(shown)
        if known.at_site:
            for name in sorted(_OF_THE_SITE_FILE & change.names):
                if not change.leaves(name, shown):
                    raise RequestRefused(409, f"{name}: the site file says what it is for camera {known.id}")
        await self.context.writes.write(WRITE_UPDATE, {**wanted.fields, "id": known.id})
        return success(camera=await self._shown(await self._known(known.id), request, caller))

    @operation(
        "DELETE",
        "/v1/camera",
        needs("can_delete_cameras"),
        "camera",
        purpose="Delete a camera of central's",
        answer=CameraAnswer,
    )
    async def _delete(self, wanted: ById, request: web.Request, caller: Caller) -> web.StreamResponse:
        known = await self._known(wanted.id)
        if known.at_site:
            raise RequestRefused(
                409, f"camera {known.id} is recorded by this site; take it out of the site file before it is deleted"
            )
        shown = await self._shown(known, request, caller)
        written = await self.context.writes.write(WRITE_DELETE, {"id": known.id})
        shown.pop("sync_error", None)
        return success(camera={**shown, "sync": written.sync_of_deleted})

    # The specification does not confirm this permission; a camera's state needs the same one as the camera itself.
    @operation(
        "GET",
        "/v1/camera/status/{id}",
        UNCONFIRMED & VIEW_CAMERAS,
        "status",
        purpose="What a camera of the site does now",
    )
    async def _status(self, camera_id: int) -> CameraStatusAnswer:
        snapshot = self._snapshot(camera_id)
        if snapshot is None:
            raise NotFoundError(text("refused.camera_unknown", camera=str(camera_id)))
        return CameraStatusAnswer(status=camera_status(snapshot))

    @operation(
        "GET",
        "/v1/camera/thumbnail/{id}",
        VIEW_CAMERAS,
        "thumbnail",
        head=True,
        purpose="A camera's newest picture",
        answer_type="image/jpeg",
    )
    async def _thumbnail(self, camera_id: int) -> web.StreamResponse:
        async with in_time():
            return as_file(await self.context.recording.camera_thumbnail(camera_id), JPEG)

    @operation(
        "GET",
        "/v1/camera/live/{id}/{file}",
        VIEW_CAMERAS,
        "live",
        head=True,
        purpose="What is recorded now as HLS: master.m3u8 and what it names",
        answer_type="application/vnd.apple.mpegurl",
        other_types=("video/MP2T",),
        refuses=(403,),
        view=ViewKind.LIVE,
    )
    async def _live(self, camera_id: int, file: str, wanted: LiveQuery, request: web.Request) -> web.StreamResponse:
        if segment := _SEGMENT_FILE.fullmatch(file):
            return await as_segment(await self.context.recording.live.segment(camera_id, int(segment[1])))
        async with in_time():
            if file == "master.m3u8":
                return await as_playlist(request, await self.context.recording.live.master(camera_id))
            if file == "index.m3u8":
                return await as_playlist(request, await self._live_playlist(camera_id, wanted))
            if file == "classic.m3u8":
                return await as_playlist(request, await self.context.recording.live.classic(camera_id))
            if named := _PART_FILE.fullmatch(file):
                part = await self.context.recording.live.part(camera_id, int(named[1]), int(named[2]))
                return as_part(request, part)
        raise NotFoundError(f"camera {camera_id} has no such file")

    async def _live_playlist(self, camera_id: int, wanted: LiveQuery) -> str:
        if wanted.number is None:
            if wanted.part is not None:
                raise RequestRefused(400, "_HLS_part needs _HLS_msn beside it")
            return await self.context.recording.live.playlist(camera_id)
        try:
            return await self.context.recording.live.playlist(camera_id, PlaylistReload(wanted.number, wanted.part))
        except TooFarAhead as error:
            raise RequestRefused(400, str(error)) from error

    async def _known(self, camera_id: int) -> KnownRecord:
        known = await self.context.store.cameras.get(await self.context.store.pending_writes.site_id(_KIND, camera_id))
        if known is None:
            raise NotFoundError(f"there is no camera {camera_id}")
        return known

    async def _shown(self, known: KnownRecord, request: web.Request, caller: Caller) -> Record:
        return self._record(known, request, caller, await self.context.store.pending_writes.waiting(_KIND, known.id))

    def _record(
        self, known: KnownRecord, request: web.Request, caller: Caller, waiting: Sequence[WaitingWrite]
    ) -> Record:
        snapshot = self._snapshot(known.id)
        if snapshot is None:
            return camera_record(known, None, waiting=waiting)
        watch, live = TokenView(ViewKind.WATCH, known.id), TokenView(ViewKind.LIVE, known.id)
        return camera_record(
            known,
            snapshot,
            stream=self.context.auth.viewers.address(request, f"{PREFIX}{known.id}", watch, caller),
            hls_url=self.context.auth.viewers.address(request, f"{LIVE_PREFIX}{known.id}/master.m3u8", live, caller),
            waiting=waiting,
        )

    def _snapshot(self, camera_id: int) -> CameraSnapshot | None:
        return next((item for item in self.context.recording.cameras() if item.camera_id == camera_id), None)


def camera_record(
    known: KnownRecord,
    snapshot: CameraSnapshot | None,
    *,
    stream: str = "",
    hls_url: str = "",
    waiting: Sequence[WaitingWrite] = (),
) -> Record:
    """Return a camera as a record of the interface.

    `snapshot` is None for a camera that is not recorded here. `stream` is its WHEP address and `hls_url` that of its
    live playlist; both are "" for such a camera. The name is central's, which people can change; the site file's name
    is shown as long as central has none.
    """
    central = central_record(known)
    name = text_of(central, "name").strip() or known.name
    record: Record = {**central, "id": known.id, "name": name, "at_site": known.at_site}
    record |= {"stream": stream, "hls_url": hls_url}
    record |= sync_state(waiting)
    record["status"] = camera_status_word(snapshot.condition) if snapshot else text_of(central, "status") or "unknown"
    return record


def camera_status(snapshot: CameraSnapshot) -> CameraStatus:
    """Return a camera's state as the interface's model."""
    return CameraStatus(
        id=snapshot.camera_id,
        name=snapshot.name,
        status=camera_status_word(snapshot.condition),
        condition=str(snapshot.condition),
        detail=snapshot.detail,
        since=iso_utc(snapshot.since),
        last_segment_at=None if snapshot.last_segment_at is None else iso_utc(snapshot.last_segment_at),
        bits_per_second=snapshot.bits_per_second,
        reconnects=snapshot.reconnects,
    )


def camera_status_word(condition: str) -> Status:
    """Return the interface's word for a camera's condition."""
    return "online" if condition == "recording" else "unknown" if condition == "starting" else "offline"
