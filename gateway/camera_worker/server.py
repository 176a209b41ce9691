"""The worker's HTTP interface for the gateway, on a Unix socket that only the gateway's user can open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import structlog
from aiohttp import web
from pydantic import BaseModel, ValidationError

from gateway.camera_worker.cut_orders import BadRequest, MediaMissing
from gateway.camera_worker.cutters import CutterLost, Cutters
from gateway.camera_worker.reports import ReportBuffer
from gateway.camera_worker.rtsp_server import CameraRtspServer
from gateway.camera_worker.views import Views
from gateway.camera_worker.worker import CameraWorker
from gateway.domain.footage import (
    CutClip,
    PinnedFootage,
    TakeThumbnail,
    WantParts,
    WorkerAssignment,
    WorkerBeat,
    WorkerFailed,
    WorkerHealth,
)
from gateway.domain.viewing import NotShown, OpenView, TrickleView, ViewRefused

log = structlog.get_logger(__name__)

BEAT_SECONDS = 1.0
_WRITE_SECONDS = 10.0
_MOST_WAITING_JOBS = 16
_MOST_JOBS_AT_ONCE = 2

Asked = TypeVar("Asked", bound=BaseModel)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WorkerServer:
    """The handlers of the worker's requests, and of its single stream of reports."""

    def __init__(
        self,
        *,
        worker: CameraWorker,
        views: Views,
        rtsp_server: CameraRtspServer,
        cutters: Cutters,
        reports: ReportBuffer,
    ) -> None:
        self._worker = worker
        self._cutters = cutters
        self._views = views
        self._rtsp_server = rtsp_server
        self._reports = reports
        self._reader: asyncio.Task[object] | None = None
        self._jobs = 0
        self._slots = asyncio.Semaphore(_MOST_JOBS_AT_ONCE)
        self._ending = False

    def application(self) -> web.Application:
        """Build the aiohttp application with all its routes."""
        app = web.Application(middlewares=[_errors], client_max_size=4_000_000)
        app.router.add_put("/cameras", self._put_cameras)
        app.router.add_put("/pins", self._put_pins)
        app.router.add_post("/parts", self._post_parts)
        app.router.add_get("/reports", self._get_reports)
        app.router.add_post("/clips", self._post_clip)
        app.router.add_post("/thumbnails", self._post_thumbnail)
        app.router.add_get("/health", self._get_health)
        app.router.add_post("/views", self._post_view)
        app.router.add_post("/views/expected", self._post_expected_view)
        app.router.add_get("/views/{view}", self._get_view)
        app.router.add_patch("/views/{view}", self._patch_view)
        app.router.add_delete("/views/{view}", self._delete_view)
        return app

    async def end(self, seconds: float) -> None:
        """Send the remaining reports to the reader and end its stream; give up after `seconds`."""
        self._ending = True
        self._reports.wake()
        if self._reader is not None:
            await asyncio.wait([self._reader], timeout=seconds)

    async def _put_cameras(self, request: web.Request) -> web.StreamResponse:
        assignment = await _asked(request, WorkerAssignment)
        self._views.allow(assignment.live)
        await self._worker.assign(assignment)
        await self._rtsp_server.serve(assignment.rtsp)
        return web.Response(status=204)

    async def _put_pins(self, request: web.Request) -> web.StreamResponse:
        self._worker.pin((await _asked(request, PinnedFootage)).pins)
        return web.Response(status=204)

    async def _post_parts(self, request: web.Request) -> web.StreamResponse:
        self._worker.want_parts(await _asked(request, WantParts))
        return web.Response(status=204)

    async def _post_clip(self, request: web.Request) -> web.StreamResponse:
        return await self._job(await _asked(request, CutClip))

    async def _post_thumbnail(self, request: web.Request) -> web.StreamResponse:
        return await self._job(await _asked(request, TakeThumbnail))

    async def _post_view(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._views.open(await _asked(request, OpenView)), status=201)

    async def _post_expected_view(self, _request: web.Request) -> web.StreamResponse:
        self._views.expect()
        return web.Response(status=204)

    async def _get_view(self, request: web.Request) -> web.StreamResponse:
        self._views.look(request.match_info["view"])
        return web.Response(status=204)

    async def _patch_view(self, request: web.Request) -> web.StreamResponse:
        await self._views.trickle(request.match_info["view"], await _asked(request, TrickleView))
        return web.Response(status=204)

    async def _delete_view(self, request: web.Request) -> web.StreamResponse:
        self._views.end(request.match_info["view"])
        return web.Response(status=204)

    async def _get_health(self, _request: web.Request) -> web.StreamResponse:
        health = WorkerHealth(
            cameras=tuple(self._worker.states()), unreported_segments=self._reports.unreported_segments
        )
        return _json(health)

    async def _get_reports(self, request: web.Request) -> web.StreamResponse:
        """Stream reports and heartbeats as NDJSON until the worker ends. A new reader replaces the one before."""
        if self._reader is not None:
            self._reader.cancel()
        self._reader = me = asyncio.current_task()
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        await _send(response, self._worker.states())
        try:
            while True:
                beat = WorkerBeat(
                    cameras=self._worker.cameras,
                    viewers=self._views.count,
                    unreported_segments=self._reports.unreported_segments,
                )
                await _send(response, [*self._reports.take(), beat])
                if self._ending:
                    break
                try:
                    async with asyncio.timeout(BEAT_SECONDS):
                        await self._reports.wait()
                except TimeoutError:
                    continue
        except (ConnectionError, TimeoutError):
            log.info("reports_reader_left")
        finally:
            if self._reader is me:
                self._reader = None
        if self._ending:
            await response.write_eof()
            response.force_close()
        return response

    def _media(self) -> Path:
        if self._worker.media is None:
            raise web.HTTPConflict(text="no cameras are assigned yet")
        return self._worker.media

    async def _job(self, job: CutClip | TakeThumbnail) -> web.Response:
        media = self._media()
        if self._jobs >= _MOST_WAITING_JOBS:
            raise web.HTTPServiceUnavailable(text="too many clips and thumbnails are waiting")
        self._jobs += 1
        try:
            async with self._slots:
                return _json(await self._cutters.make(media, job))
        except CutterLost as error:
            raise web.HTTPInternalServerError(text=str(error)) from error
        finally:
            self._jobs -= 1


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except (BadRequest, ValidationError) as error:
        # a validation error's own text may quote a camera's URL
        text = str(error) if isinstance(error, BadRequest) else _places(error)
        return _json(WorkerFailed(error=text), status=400)
    except NotShown as error:
        return _json(ViewRefused(refusal=error.refusal, error=str(error)), status=409)
    except MediaMissing as error:
        return _json(WorkerFailed(error=str(error)), status=404)
    except web.HTTPException as error:
        return _json(WorkerFailed(error=error.text or error.reason), status=error.status)
    except OSError as error:
        return _json(WorkerFailed(error=f"the media folder takes no data: {error.strerror}"), status=507)


async def _asked(request: web.Request, model: type[Asked]) -> Asked:
    return model.model_validate_json(await request.read())


async def _send(response: web.StreamResponse, reports: Sequence[BaseModel]) -> None:
    lines = [report.model_dump_json() + "\n" for report in reports]
    async with asyncio.timeout(_WRITE_SECONDS):
        await response.write("".join(lines).encode())


def _json(body: BaseModel, status: int = 200) -> web.Response:
    return web.Response(status=status, body=body.model_dump_json().encode(), content_type="application/json")


def _places(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(str(part) for part in fault['loc']) or 'body'}: {fault['msg']}" for fault in faults)
