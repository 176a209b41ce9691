"""The worker's HTTP interface for the gateway, on a Unix socket that only the gateway's user can open.

It is HTTP/1.1: requests with a length, answers, and answers that go on. A framework's server would take 11 MB of each
worker.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import unquote

import structlog
from pydantic import BaseModel, ValidationError

from gateway.camera_worker.cut_orders import BadRequest, MediaMissing
from gateway.camera_worker.cutters import CutterLost, Cutters
from gateway.camera_worker.reports import ReportBuffer
from gateway.camera_worker.rtsp_server import CameraRtspServer
from gateway.camera_worker.views import Views
from gateway.camera_worker.worker import AssignedCameras
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

JSON = "application/json"
_LONGEST_HEAD = 32_768
_LARGEST_BODY = 4_000_000
_IDLE_SECONDS = 75.0
_READ_SECONDS = 10.0
_WRITE_SECONDS = 10.0


class InvalidRequest(ValueError):
    """A request that cannot be read; the text says why. Its answer ends the connection."""

    def __init__(self, text: str, *, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """A request with its whole body. `path` is as it was sent, percent-encoded."""

    method: str
    path: str
    body: bytes
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request. A body of pieces is sent as they come, and ends the connection."""

    status: int = 204
    body: bytes | AsyncGenerator[bytes, None] = b""
    content_type: str = JSON


class HttpServer:
    """The connections at a listening socket. `answer` translates its own errors."""

    def __init__(self, *, answer: Handler, tasks: asyncio.TaskGroup) -> None:
        self._answer = answer
        self._tasks = tasks
        self._connections: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    async def serve(self, listening: socket.socket) -> None:
        """Accept connections until `end`."""
        self._listener = await asyncio.start_unix_server(self._accept, sock=listening, limit=_LONGEST_HEAD)

    def end(self) -> None:
        """Accept no more connections, and end all there are."""
        if self._listener is not None:
            self._listener.close()
        for connection in self._connections:
            connection.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._tasks.create_task(self._converse(reader, writer), name="worker's connection")
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            return  # the gateway left, or is stopped
        except Exception:  # a fault of the program in one connection must not end the recording of all cameras
            log.exception("worker_connection_failed")
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Take a request and answer it; return whether another may follow."""
        try:
            request = await _received(reader)
        except InvalidRequest as error:
            refusal = json.dumps({"error": str(error)}).encode()
            await _send(writer, Response(status=error.status, body=refusal))
            return False
        answer = await self._answer(request)
        await _send(writer, answer)
        return isinstance(answer.body, bytes) and not request.is_last


async def _received(reader: asyncio.StreamReader) -> Request:
    """Read a request.

    Raises:
        InvalidRequest: it cannot be read.
        IncompleteReadError: the connection ended.
        TimeoutError: nothing came for too long.
    """
    try:
        async with asyncio.timeout(_IDLE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise InvalidRequest("the head of the request is too long", status=431) from error
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    path, _, version = rest.partition(" ")
    if not version.startswith("HTTP/1."):
        raise InvalidRequest("this is not a request of HTTP/1.1")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "transfer-encoding" in headers:
        raise InvalidRequest("the body must have a Content-Length", status=411)
    told = headers.get("content-length", "0")
    if not (told.isascii() and told.isdecimal()):
        raise InvalidRequest("the Content-Length is not a number")
    if len(told) > len(str(_LARGEST_BODY)) or int(told) > _LARGEST_BODY:
        raise InvalidRequest("the body is too large", status=413)
    async with asyncio.timeout(_READ_SECONDS):
        body = await reader.readexactly(int(told))
    is_last = version != "HTTP/1.1" or headers.get("connection", "").lower() == "close"
    return Request(method=method, path=path, body=body, is_last=is_last)


async def _send(writer: asyncio.StreamWriter, answer: Response) -> None:
    """Send an answer. Raises ConnectionError, TimeoutError."""
    head = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: {answer.content_type}\r\n"
    if isinstance(answer.body, bytes):
        length = "" if answer.status == HTTPStatus.NO_CONTENT else f"Content-Length: {len(answer.body)}\r\n"
        await _write(writer, f"{head}{length}\r\n".encode() + answer.body)
        return
    async with aclosing(answer.body) as pieces:
        await _write(writer, f"{head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        async for piece in pieces:
            await _write(writer, b"%x\r\n%b\r\n" % (len(piece), piece))
        await _write(writer, b"0\r\n\r\n")


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    async with asyncio.timeout(_WRITE_SECONDS):
        await writer.drain()


log = structlog.get_logger(__name__)

BEAT_SECONDS = 1.0
_VIEW = "/views/"
_MOST_WAITING_JOBS = 16
_MOST_JOBS_AT_ONCE = 2

Asked = TypeVar("Asked", bound=BaseModel)
Handler = Callable[[Request], Awaitable[Response]]


class WorkerRefused(Exception):
    """A request that this worker does not carry out: the status of the answer, and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class WorkerServer:
    """The handlers of the worker's requests, and of its single stream of reports."""

    def __init__(
        self,
        *,
        worker: AssignedCameras,
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
        self._handlers: Mapping[tuple[str, str], Handler] = MappingProxyType(
            {
                ("PUT", "/cameras"): self._put_cameras,
                ("PUT", "/pins"): self._put_pins,
                ("POST", "/parts"): self._post_parts,
                ("GET", "/reports"): self._get_reports,
                ("POST", "/clips"): self._post_clip,
                ("POST", "/thumbnails"): self._post_thumbnail,
                ("GET", "/health"): self._get_health,
                ("POST", "/views"): self._post_view,
                ("POST", "/views/expected"): self._post_expected_view,
                ("GET", _VIEW): self._get_view,
                ("PATCH", _VIEW): self._patch_view,
                ("DELETE", _VIEW): self._delete_view,
            }
        )

    async def answer(self, request: Request) -> Response:
        """Carry out a request and answer it, with the reason if it cannot be carried out."""
        try:
            return await self._handler(request)(request)
        except NotShown as error:
            return _json(ViewRefused(refusal=error.refusal, error=str(error)), status=409)
        except ValidationError as error:
            status, text = 400, _places(error)  # its own text may quote a camera's URL
        except BadRequest as error:
            status, text = 400, str(error)
        except MediaMissing as error:
            status, text = 404, str(error)
        except WorkerRefused as error:
            status, text = error.status, str(error)
        except OSError as error:
            status, text = 507, f"the media folder takes no data: {error.strerror}"
        except Exception:  # a fault of the program in one request must not end the recording of all cameras
            log.exception("worker_request_failed", method=request.method)
            status, text = 500, "the camera worker failed; its log says why"
        return _json(WorkerFailed(error=text), status=status)

    def _handler(self, request: Request) -> Handler:
        handler = self._handlers.get((request.method, request.path))
        if handler is None and request.path.startswith(_VIEW):
            handler = self._handlers.get((request.method, _VIEW))
        if handler is None:
            raise WorkerRefused(404, "a camera worker has no such request")
        return handler

    async def end(self, seconds: float) -> None:
        """Send the remaining reports to the reader and end its stream; give up after `seconds`."""
        self._ending = True
        self._reports.wake()
        if self._reader is not None:
            await asyncio.wait([self._reader], timeout=seconds)

    async def _put_cameras(self, request: Request) -> Response:
        assignment = _asked(request, WorkerAssignment)
        self._views.allow(assignment.live)
        await self._worker.assign(assignment)
        await self._rtsp_server.serve(assignment.rtsp)
        return Response()

    async def _put_pins(self, request: Request) -> Response:
        self._worker.pin((_asked(request, PinnedFootage)).pins)
        return Response()

    async def _post_parts(self, request: Request) -> Response:
        self._worker.want_parts(_asked(request, WantParts))
        return Response()

    async def _post_clip(self, request: Request) -> Response:
        return await self._job(_asked(request, CutClip))

    async def _post_thumbnail(self, request: Request) -> Response:
        return await self._job(_asked(request, TakeThumbnail))

    async def _post_view(self, request: Request) -> Response:
        return _json(await self._views.open(_asked(request, OpenView)), status=201)

    async def _post_expected_view(self, _request: Request) -> Response:
        self._views.expect()
        return Response()

    async def _get_view(self, request: Request) -> Response:
        self._views.look(_view(request))
        return Response()

    async def _patch_view(self, request: Request) -> Response:
        await self._views.trickle(_view(request), _asked(request, TrickleView))
        return Response()

    async def _delete_view(self, request: Request) -> Response:
        self._views.end(_view(request))
        return Response()

    async def _get_health(self, _request: Request) -> Response:
        health = WorkerHealth(
            cameras=tuple(self._worker.states()), unreported_segments=self._reports.unreported_segments
        )
        return _json(health)

    async def _get_reports(self, _request: Request) -> Response:
        """Answer with reports and heartbeats as NDJSON until the worker ends. A new reader replaces the one before."""
        return Response(status=200, body=self._reports_as_they_come(), content_type="application/x-ndjson")

    async def _reports_as_they_come(self) -> AsyncGenerator[bytes, None]:
        if self._reader is not None:
            self._reader.cancel()
        self._reader = me = asyncio.current_task()
        try:
            if states := self._worker.states():
                yield _lines(states)
            while True:
                beat = WorkerBeat(
                    cameras=self._worker.cameras,
                    viewers=self._views.count,
                    unreported_segments=self._reports.unreported_segments,
                    rtsp_crowd=self._rtsp_server.crowd,
                )
                yield _lines([*self._reports.take(), beat])
                if self._ending:
                    break
                try:
                    async with asyncio.timeout(BEAT_SECONDS):
                        await self._reports.wait()
                except TimeoutError:
                    continue
        except GeneratorExit:
            log.info("reports_reader_left")
            raise
        finally:
            if self._reader is me:
                self._reader = None

    def _media(self) -> Path:
        if self._worker.media is None:
            raise WorkerRefused(409, "no cameras are assigned yet")
        return self._worker.media

    async def _job(self, job: CutClip | TakeThumbnail) -> Response:
        media = self._media()
        if self._jobs >= _MOST_WAITING_JOBS:
            raise WorkerRefused(503, "too many clips and thumbnails are waiting")
        self._jobs += 1
        try:
            async with self._slots:
                return _json(await self._cutters.make(media, job))
        except CutterLost as error:
            raise WorkerRefused(500, str(error)) from error
        finally:
            self._jobs -= 1


def _view(request: Request) -> str:
    return unquote(request.path.removeprefix(_VIEW))


def _asked(request: Request, model: type[Asked]) -> Asked:
    return model.model_validate_json(request.body)


def _lines(reports: Sequence[BaseModel]) -> bytes:
    return "".join(report.model_dump_json() + "\n" for report in reports).encode()


def _json(body: BaseModel, status: int = 200) -> Response:
    return Response(status=status, body=body.model_dump_json().encode())


def _places(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(str(part) for part in fault['loc']) or 'body'}: {fault['msg']}" for fault in faults)
