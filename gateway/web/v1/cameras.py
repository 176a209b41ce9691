"""Cameras: their records, what they do now, and their newest picture."""

from __future__ import annotations

import re

from aiohttp import web

from gateway.domain.errors import NotFoundError
from gateway.store import KnownRecord, Store
from gateway.web.admission import Route
from gateway.web.bodies import Body, ById, path_id, read_body
from gateway.web.catalogue.cameras import CAMERA, CAMERA_LIST, CAMERA_LIVE, CAMERA_STATUS, CAMERA_THUMBNAIL
from gateway.web.envelope import success
from gateway.web.media import JPEG, SEGMENT, as_file, as_lasting_file, as_playlist, in_time
from gateway.web.rooms import CameraView, Recording
from gateway.web.sessions import Caller
from gateway.web.v1.records import Record, camera_record, camera_status
from gateway.web.v1.whep import PREFIX
from gateway.web.view_tokens import ViewTokens

_SEGMENT_FILE = re.compile(r"([0-9]{1,18})\.ts")


class Cameras:
    """`/v1/camera`."""

    def __init__(self, *, store: Store, recording: Recording, tokens: ViewTokens) -> None:
        self._store = store
        self._tokens = tokens
        self._recording = recording

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (
            Route(CAMERA_LIST, self._list),
            Route(CAMERA, self._get),
            Route(CAMERA_STATUS, self._status),
            Route(CAMERA_THUMBNAIL, self._thumbnail),
            Route(CAMERA_LIVE, self._live),
        )

    async def _list(self, request: web.Request, _: Caller) -> web.StreamResponse:
        await read_body(request, Body)
        known = await self._store.cameras.all()
        return success(cameras=[self._record(item, request) for item in known], count=len(known))

    async def _get(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, ById)
        known = await self._store.cameras.get(wanted.id)
        if known is None:
            raise NotFoundError(f"there is no camera {wanted.id}")
        return success(camera=self._record(known, request))

    async def _status(self, request: web.Request, _: Caller) -> web.StreamResponse:
        camera_id = path_id(request)
        seen = self._seen(camera_id)
        if seen is None:
            raise NotFoundError(f"this site has no camera {camera_id}")
        return success(status=camera_status(seen))

    async def _thumbnail(self, request: web.Request, _: Caller) -> web.StreamResponse:
        async with in_time():
            return as_file(await self._recording.camera_thumbnail(path_id(request)), JPEG)

    async def _live(self, request: web.Request, _: Caller) -> web.StreamResponse:
        camera_id, file = path_id(request), request.match_info["file"]
        async with in_time():
            if file == "master.m3u8":
                return as_playlist(request, await self._recording.live.master(camera_id))
            if file == "index.m3u8":
                return as_playlist(request, await self._recording.live.playlist(camera_id))
            if segment := _SEGMENT_FILE.fullmatch(file):
                return as_lasting_file(await self._recording.live.segment(camera_id, int(segment[1])), SEGMENT)
        raise NotFoundError(f"camera {camera_id} has no such file")

    def _record(self, known: KnownRecord, request: web.Request) -> Record:
        seen = self._seen(known.id)
        stream = f"{request.url.origin()}{PREFIX}{known.id}?token={self._tokens.issue(known.id)}" if seen else ""
        return camera_record(known, seen, stream=stream)

    def _seen(self, camera_id: int) -> CameraView | None:
        return next((item for item in self._recording.cameras() if item.camera_id == camera_id), None)
