"""What the gateway may ask of this worker: HTTP on a Unix socket that only the gateway's user can open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from gateway.camera_worker.cutting_room import CutterLost, CuttingRoom
from gateway.camera_worker.local_http import Request, Response, serve_connection
from gateway.camera_worker.media_paths import BadRequest, MediaMissing
from gateway.camera_worker.reports import ReportBuffer
from gateway.camera_worker.reserving import Reserving
from gateway.camera_worker.views import Views
from gateway.camera_worker.worker import CameraWorker
from gateway.domain.footage import (
    CutClip,
    PinnedFootage,
    TakeThumbnail,
    WorkerAssignment,
    WorkerBeat,
    WorkerFailed,
    WorkerHealth,
)
from gateway.domain.viewing import NotShown, OpenView, TrickleView, ViewRefused

BEAT_SECONDS = 1.0
_MOST_WAITING_JOBS = 16
_MOST_JOBS_AT_ONCE = 2

Asked = TypeVar("Asked", bound=BaseModel)
Handler = Callable[[Request], Awaitable[Response]]


class WorkerServer:
    """The worker's requests and its one stream of reports."""

    def __init__(
        self,
        *,
        worker: CameraWorker,
        views: Views,
        reserving: Reserving,
        cutting_room: CuttingRoom,
        reports: ReportBuffer,
    ) -> None:
        self._worker = worker
        self._cutting_room = cutting_room
        self._views = views
        self._reserving = reserving
        self._reports = reports
        self._reader: asyncio.Task[object] | None = None
        self._jobs = 0
        self._slots = asyncio.Semaphore(_MOST_JOBS_AT_ONCE)
        self._ending = False

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end."""
        await serve_connection(reader, writer, self._answer)

    async def end(self, seconds: float) -> None:
        """Tell the reader what is left to tell and end its stream; give up after `seconds`."""
        self._ending = True
        self._reports.wake()
        if self._reader is not None:
            await asyncio.wait([self._reader], timeout=seconds)

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._handler(request)(request)
        except _Refused as error:
            return _failed(str(error), error.status)
        except (BadRequest, ValidationError) as error:
            # a validation error's own text may quote a camera's URL
            return _failed(str(error) if isinstance(error, BadRequest) else _places(error), HTTPStatus.BAD_REQUEST)
        except NotShown as error:
            return _json(ViewRefused(refusal=error.refusal, error=str(error)), HTTPStatus.CONFLICT)
        except MediaMissing as error:
            return _failed(str(error), HTTPStatus.NOT_FOUND)
        except OSError as error:
            return _failed(f"the media folder takes no data: {error.strerror}", HTTPStatus.INSUFFICIENT_STORAGE)

    def _handler(self, request: Request) -> Handler:
        handler: Handler
        match request.method, request.path:
            case "PUT", ("cameras",):
                handler = self._put_cameras
            case "PUT", ("pins",):
                handler = self._put_pins
            case "GET", ("reports",):
                handler = self._get_reports
            case "POST", ("clips",):
                handler = self._post_clip
            case "POST", ("thumbnails",):
                handler = self._post_thumbnail
            case "GET", ("health",):
                handler = self._get_health
            case "POST", ("views",):
                handler = self._post_view
            case "POST", ("views", "expected"):
                handler = self._post_expected_view
            case "PATCH", ("views", _):
                handler = self._patch_view
            case "DELETE", ("views", _):
                handler = self._delete_view
            case _:
                raise _Refused("there is nothing of that name here", HTTPStatus.NOT_FOUND)
        return handler

    async def _put_cameras(self, request: Request) -> Response:
        assignment = _asked(request, WorkerAssignment)
        self._views.allow(assignment.live)
        await self._worker.assign(assignment)
        await self._reserving.serve(assignment.rtsp)
        return Response(HTTPStatus.NO_CONTENT)

    async def _put_pins(self, request: Request) -> Response:
        self._worker.pin(_asked(request, PinnedFootage).pins)
        return Response(HTTPStatus.NO_CONTENT)

    async def _post_clip(self, request: Request) -> Response:
        return await self._job(_asked(request, CutClip))

    async def _post_thumbnail(self, request: Request) -> Response:
        return await self._job(_asked(request, TakeThumbnail))

    async def _post_view(self, request: Request) -> Response:
        return _json(await self._views.open(_asked(request, OpenView)), HTTPStatus.CREATED)

    async def _post_expected_view(self, _request: Request) -> Response:
        self._views.expect()
        return Response(HTTPStatus.NO_CONTENT)

    async def _patch_view(self, request: Request) -> Response:
        await self._views.trickle(request.path[1], _asked(request, TrickleView))
        return Response(HTTPStatus.NO_CONTENT)

    async def _delete_view(self, request: Request) -> Response:
        self._views.end(request.path[1])
        return Response(HTTPStatus.NO_CONTENT)

    async def _get_health(self, _request: Request) -> Response:
        health = WorkerHealth(
            cameras=tuple(self._worker.states()), unreported_segments=self._reports.unreported_segments
        )
        return _json(health)

    async def _get_reports(self, _request: Request) -> Response:
        """NDJSON without end. A new reader takes over from the one before."""
        if self._reader is not None:
            self._reader.cancel()
        self._reader = asyncio.current_task()
        return Response(HTTPStatus.OK, lines=self._reported())

    async def _reported(self) -> AsyncGenerator[bytes, None]:
        me = asyncio.current_task()
        try:
            for state in self._worker.states():
                yield _line(state)
            while True:
                for report in self._reports.take():
                    yield _line(report)
                yield _line(
                    WorkerBeat(
                        cameras=self._worker.cameras,
                        viewers=self._views.count,
                        unreported_segments=self._reports.unreported_segments,
                    )
                )
                if self._ending:
                    return
                with contextlib.suppress(TimeoutError):  # nothing to tell but that it lives
                    async with asyncio.timeout(BEAT_SECONDS):
                        await self._reports.wait()
        finally:
            if self._reader is me:
                self._reader = None

    def _media(self) -> Path:
        if self._worker.media is None:
            raise _Refused("no cameras are assigned yet", HTTPStatus.CONFLICT)
        return self._worker.media

    async def _job(self, job: CutClip | TakeThumbnail) -> Response:
        media = self._media()
        if self._jobs >= _MOST_WAITING_JOBS:
            raise _Refused("too many clips and thumbnails are waiting", HTTPStatus.SERVICE_UNAVAILABLE)
        self._jobs += 1
        try:
            async with self._slots:
                return _json(await self._cutting_room.make(media, job))
        except CutterLost as error:
            raise _Refused(str(error), HTTPStatus.INTERNAL_SERVER_ERROR) from error
        finally:
            self._jobs -= 1


class _Refused(Exception):
    """This cannot be done; the text says why."""

    def __init__(self, text: str, status: HTTPStatus) -> None:
        super().__init__(text)
        self.status = status


def _asked(request: Request, model: type[Asked]) -> Asked:
    return model.model_validate_json(request.body)


def _line(report: BaseModel) -> bytes:
    return report.model_dump_json().encode() + b"\n"


def _json(body: BaseModel, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(status, body.model_dump_json().encode())


def _failed(text: str, status: HTTPStatus) -> Response:
    return _json(WorkerFailed(error=text), status)


def _places(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(str(part) for part in fault['loc']) or 'body'}: {fault['msg']}" for fault in faults)
