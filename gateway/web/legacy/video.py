"""`/api/v1/video`: live addresses, cameras, and recordings."""

from __future__ import annotations

from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, Field

from gateway.domain.errors import NotFoundError
from gateway.domain.passages import CameraEvent
from gateway.recording import CameraSnapshot
from gateway.runtime.clock import iso_utc
from gateway.texts import text
from gateway.web.auth.callers import Caller
from gateway.web.auth.view_tokens import TOKEN, TokenView
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.addresses import public_origin
from gateway.web.http.dates import asked_period
from gateway.web.http.files import MP4, as_file, in_time
from gateway.web.legacy.answers import (
    LegacyAnswer,
    Line,
    PageQuery,
    number_of,
)
from gateway.web.operation import VIEW_CAMERAS, VIEW_FOOTAGE, ViewKind
from gateway.web.operations.cameras import LIVE_PREFIX, camera_status_word
from gateway.web.operations.whep import PREFIX


class StreamQuery(BaseModel):
    """The protocol to watch a camera by."""

    protocol: Literal["webrtc", "hls"] = "webrtc"


class StreamAnswer(LegacyAnswer):
    """A camera's address for WHEP or HLS, which contains the token.

    `resolution` is null before the first footage.
    """

    stream_url: str
    protocol: Literal["webrtc", "hls"]
    resolution: str | None
    token: str
    expires_at: str


class LegacyCamera(LegacyAnswer):
    """A camera. `status` is `online`, `offline` or `unknown`, as for devices."""

    id: str
    name: str
    status: str
    location: str
    detail: str


class LegacyCameraList(LegacyAnswer):
    """Every camera."""

    cameras: tuple[LegacyCamera, ...]
    total: int


class RecordingsQuery(PageQuery):
    """A filter of recordings: a day, or a start and an end, in the site's time zone; and a camera."""

    date: Line = ""
    start_date: Line = ""
    end_date: Line = ""
    camera: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    camera_id: Annotated[int, Field(ge=0, lt=2**63)] | None = None


class RecordingRecord(LegacyAnswer):
    """The footage of an event. `clip_url` needs the same API key."""

    id: str
    camera_id: str
    name: str
    description: str
    started_at: str
    ended_at: str
    ready: bool
    clip_url: str


class RecordingsAnswer(LegacyAnswer):
    """Recordings, the newest first."""

    recordings: tuple[RecordingRecord, ...]
    total: int


_EVER = 2**62
_RECORDINGS = "/api/v1/video/recordings"


class LegacyVideo(Family):
    """The handlers of `/api/v1/video`, for the cameras that this gateway records."""

    def __init__(self, context: InterfaceContext) -> None:
        super().__init__(context)
        self._locations = {camera: lane.name for lane in reversed(context.site.lanes) for camera in lane.cameras}

    @operation(
        "GET",
        "/api/v1/video/stream/{camera_id}",
        VIEW_CAMERAS,
        purpose="Where a camera is watched live, by an address with a token",
    )
    async def _stream(self, wanted: StreamQuery, request: web.Request, caller: Caller) -> StreamAnswer:
        """Answer with an address with a token: for WebRTC, or with `protocol=hls` for the live playlist."""
        by_hls = wanted.protocol == "hls"
        camera_id = number_of(request.match_info["camera_id"], "camera")
        if all(seen.camera_id != camera_id for seen in self.context.recording.cameras()):
            raise NotFoundError(text("refused.camera_unknown", camera=str(camera_id)))
        newest = await self.context.store.segments.latest(camera_id)
        kind = ViewKind.LIVE if by_hls else ViewKind.WATCH
        token = self.context.auth.viewers.token(TokenView(kind, camera_id), caller)
        path = f"{LIVE_PREFIX}{camera_id}/master.m3u8" if by_hls else f"{PREFIX}{camera_id}"
        if not by_hls:
            await self.context.recording.viewing.expect(camera_id)
        return StreamAnswer(
            stream_url=f"{public_origin(request)}{path}?{TOKEN}={token.text}",
            protocol="hls" if by_hls else "webrtc",
            resolution=f"{newest.width}x{newest.height}" if newest is not None and newest.width else None,
            token=token.text,
            expires_at=iso_utc(self.context.clock.wall().micros + int(token.seconds * 1_000_000)),
        )

    @operation("GET", "/api/v1/video/cameras", VIEW_CAMERAS, purpose="Cameras and whether they record")
    async def _cameras(self) -> LegacyCameraList:
        seen = self.context.recording.cameras()
        return LegacyCameraList(cameras=tuple(map(self._camera, seen)), total=len(seen))

    @operation("GET", _RECORDINGS, VIEW_FOOTAGE, purpose="Recorded footage of events, by date and camera")
    async def _recordings(self, wanted: RecordingsQuery, request: web.Request) -> RecordingsAnswer:
        start, end = self._span(wanted)
        camera_id = wanted.camera if wanted.camera is not None else wanted.camera_id
        found, count = await self.context.store.camera_events.recorded(
            camera_id=camera_id, start=start, end=end, offset=wanted.offset, limit=wanted.limit
        )
        recordings = tuple(_recording(event, request) for event in found)
        return RecordingsAnswer(recordings=recordings, total=count)

    # Not in the specification: a program must be able to fetch the recordings that it may list.
    @operation(
        "GET",
        f"{_RECORDINGS}/{{id}}/clip",
        VIEW_FOOTAGE,
        head=True,
        purpose="A recording as MP4",
        answer_type="video/mp4",
    )
    async def _clip(self, recording_id: int) -> web.StreamResponse:
        known = await self.context.store.camera_events.get(recording_id)
        if known is None:
            raise NotFoundError("there is no such recording")
        async with in_time():
            return as_file(await self.context.recording.clip(known), MP4)

    def _camera(self, seen: CameraSnapshot) -> LegacyCamera:
        return LegacyCamera(
            id=str(seen.camera_id),
            name=seen.name,
            status=camera_status_word(seen.condition),
            location=self._locations.get(seen.camera_id, ""),
            detail=seen.detail,
        )

    def _span(self, wanted: RecordingsQuery) -> tuple[int, int]:
        """Return the period, begin inclusive and end exclusive, in wall micros. `date` takes precedence.

        Raises RequestRefused (400) with the name of the wrong field.
        """
        if wanted.date.strip():
            start, end = asked_period(wanted.date, wanted.date, self.context.zone, names=("date", "date"))
        else:
            start, end = asked_period(wanted.start_date, wanted.end_date, self.context.zone)
        return start or 0, _EVER if end is None else end


def _recording(event: CameraEvent, request: web.Request) -> RecordingRecord:
    return RecordingRecord(
        id=str(event.id),
        camera_id=str(event.camera_id),
        name=event.name,
        description=event.description,
        started_at=iso_utc(event.pinned_from),
        ended_at=iso_utc(event.pinned_until),
        ready=event.ready,
        clip_url=f"{public_origin(request)}{_RECORDINGS}/{event.id}/clip",
    )
