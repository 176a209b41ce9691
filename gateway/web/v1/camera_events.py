"""Camera events: the footage that proves an event, as a picture, an MP4 and an HLS playlist."""

from __future__ import annotations

import re

from aiohttp import web

from gateway.domain.errors import NotFoundError
from gateway.domain.passages import CameraEvent
from gateway.store import Store
from gateway.web.admission import Route
from gateway.web.bodies import ById, Paged, path_id, read_body
from gateway.web.catalogue.camera_events import (
    CAMERA_EVENT,
    CAMERA_EVENT_CLIP,
    CAMERA_EVENT_LIST,
    CAMERA_EVENT_THUMBNAIL,
    CAMERA_EVENT_VOD,
)
from gateway.web.envelope import success
from gateway.web.media import JPEG, MP4, SEGMENT, as_file, as_lasting_file, as_playlist, in_time
from gateway.web.rooms import Recording
from gateway.web.sessions import Caller
from gateway.web.v1.records import camera_event_record

_SEGMENT_FILE = re.compile(r"([0-9]{1,18})\.ts")


class CameraEventsFamily:
    """`/v1/camera/event`. Each id may be the site's or central's."""

    def __init__(self, *, store: Store, recording: Recording) -> None:
        self._store = store
        self._recording = recording

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (
            Route(CAMERA_EVENT_LIST, self._list),
            Route(CAMERA_EVENT, self._get),
            Route(CAMERA_EVENT_THUMBNAIL, self._thumbnail),
            Route(CAMERA_EVENT_CLIP, self._clip),
            Route(CAMERA_EVENT_VOD, self._vod),
        )

    async def _list(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, Paged)
        known, count = await self._store.camera_events.page(offset=wanted.offset, limit=wanted.limit)
        return success(events=[camera_event_record(item) for item in known], count=count)

    async def _get(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, ById)
        return success(event=camera_event_record(await self._known(wanted.id)))

    async def _thumbnail(self, request: web.Request, _: Caller) -> web.StreamResponse:
        known = await self._known(path_id(request))
        async with in_time():
            return as_file(await self._recording.event_thumbnail(known), JPEG)

    async def _clip(self, request: web.Request, _: Caller) -> web.StreamResponse:
        known = await self._known(path_id(request))
        async with in_time():
            return as_file(await self._recording.clip(known), MP4)

    async def _vod(self, request: web.Request, _: Caller) -> web.StreamResponse:
        known = await self._known(path_id(request))
        file = request.match_info["file"]
        async with in_time():
            if file == "master.m3u8":
                return as_playlist(request, await self._recording.vod_master(known))
            if file == "index.m3u8":
                text = await self._recording.vod_media(known)
                return as_playlist(request, text, lasting="#EXT-X-ENDLIST" in text)
            if segment := _SEGMENT_FILE.fullmatch(file):
                return as_lasting_file(await self._recording.vod_segment(known, int(segment[1])), SEGMENT)
        raise NotFoundError(f"camera event {known.id} has no such file")

    async def _known(self, camera_event_id: int) -> CameraEvent:
        known = await self._store.camera_events.get(camera_event_id)
        if known is None:
            raise NotFoundError(f"there is no camera event {camera_event_id}")
        return known
