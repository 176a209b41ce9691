"""Client of one living camera worker, over its Unix socket. Every wait is limited; failures are CameraUnavailable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, TypeAdapter, ValidationError

from gateway.domain.errors import CameraUnavailable, GatewayError
from gateway.domain.footage import (
    CutClip,
    PinnedFootage,
    TakeThumbnail,
    WantParts,
    WorkerAssignment,
    WorkerFailed,
    WorkerReport,
)
from gateway.domain.viewing import NotShown, OpenView, TrickleView, ViewOpened, ViewRefused
from gateway.runtime.unix_sockets import short_path
from gateway.texts import text

HUNG_SECONDS = 3.0
"""A worker sends a heartbeat every second; one that is silent for this long hangs."""

_REPORT: TypeAdapter[WorkerReport] = TypeAdapter(WorkerReport)
_ASSIGN_SECONDS = 5.0
_JOB_SECONDS = 130.0
"""Longer than a worker's own time-out for its cutter, so that no file is requested again while it is being made."""
_JOBS_AT_ONCE = 2
_VIEW_SECONDS = 10.0
_EXPECT_SECONDS = 0.5
_LAST_LOOK_SECONDS = 0.5


class WorkerSilent(Exception):
    """The worker gave no sign of life for as long as one that works never does."""


class WorkerClient:
    """HTTP client of one worker process. Use it as a context manager."""

    def __init__(self, *, socket: Path, hung_seconds: float = HUNG_SECONDS) -> None:
        """`hung_seconds`: the silence after which the worker hangs."""
        self._socket = socket
        self._hung_seconds = hung_seconds
        self._session: aiohttp.ClientSession | None = None
        self._jobs = asyncio.Semaphore(_JOBS_AT_ONCE)
        self._address = ExitStack()

    async def __aenter__(self) -> Self:
        address = self._address.enter_context(short_path(self._socket))
        self._session = aiohttp.ClientSession(
            base_url="http://worker",
            connector=aiohttp.UnixConnector(path=address),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        with self._address:
            if session is not None:
                await session.close()

    async def assign(self, assignment: WorkerAssignment) -> None:
        """Set the worker's cameras. Raises CameraUnavailable."""
        await self._ask("PUT", "/cameras", assignment, within=_ASSIGN_SECONDS)

    async def pin(self, pinned: PinnedFootage) -> None:
        """Set all pins of cameras that are recorded for events only. Raises CameraUnavailable."""
        await self._ask("PUT", "/pins", pinned, within=_ASSIGN_SECONDS)

    async def want_parts(self, wanted: WantParts) -> None:
        """Have a camera's parts reported for some seconds. Raises CameraUnavailable."""
        await self._ask("POST", "/parts", wanted, within=_EXPECT_SECONDS)

    async def cut(self, clip: CutClip) -> None:
        """Have a clip cut, at most two jobs at a time; it is durable on return. Raises CameraUnavailable."""
        async with self._jobs:
            await self._ask("POST", "/clips", clip, within=_JOB_SECONDS)

    async def take(self, thumbnail: TakeThumbnail) -> None:
        """Have a thumbnail made, at most two jobs at a time; it is durable on return. Raises CameraUnavailable."""
        async with self._jobs:
            await self._ask("POST", "/thumbnails", thumbnail, within=_JOB_SECONDS)

    async def expect_view(self) -> None:
        """Announce that a live view may be opened soon. Raises NotShown, CameraUnavailable."""
        await self._ask("POST", "/views/expected", None, within=_EXPECT_SECONDS)

    async def open_view(self, view: OpenView) -> ViewOpened:
        """Open a live view. Raises NotShown, CameraUnavailable."""
        answer = await self._ask("POST", "/views", view, within=_VIEW_SECONDS)
        try:
            return ViewOpened.model_validate_json(answer)
        except ValidationError as error:
            raise CameraUnavailable(text("refused.worker_answer_unknown")) from error

    async def trickle_view(self, view: str, more: TrickleView) -> None:
        """Pass on a viewer's ICE candidates. Raises NotShown, CameraUnavailable."""
        await self._ask("PATCH", f"/views/{quote(view, safe='')}", more, within=_VIEW_SECONDS)

    async def look_at_view(self, view: str) -> None:
        """Check that a live view is open. Raises NotShown if it is not, CameraUnavailable."""
        await self._ask("GET", f"/views/{quote(view, safe='')}", None, within=_VIEW_SECONDS)

    async def end_view(self, view: str) -> None:
        """End a live view. Raises NotShown, CameraUnavailable."""
        await self._ask("DELETE", f"/views/{quote(view, safe='')}", None, within=_VIEW_SECONDS)

    async def reports(self) -> AsyncIterator[WorkerReport]:
        """Yield the worker's reports until it ends.

        Raises:
            WorkerSilent: the worker hangs.
            CameraUnavailable: the worker is gone, or its reports cannot be understood.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_ASSIGN_SECONDS)
        try:
            async with asyncio.timeout(self._hung_seconds):
                answer = await self._open.get("/reports", timeout=timeout)
            async with answer as response:
                if response.status != 200:
                    raise CameraUnavailable(await _failure(response))
                begun = b""
                while piece := await _next_piece(response.content, within=self._hung_seconds):
                    *lines, begun = (begun + piece).split(b"\n")
                    for line in lines:
                        yield _REPORT.validate_json(line)
        except TimeoutError as error:
            raise WorkerSilent(f"no sign of life for {self._hung_seconds:g} s") from error
        except ValidationError as error:
            raise CameraUnavailable(text("refused.worker_report_unknown")) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise CameraUnavailable(text("refused.worker_gone")) from error

    async def _ask(self, method: str, path: str, body: BaseModel | None, *, within: float) -> bytes:
        data = None if body is None else body.model_dump_json().encode()
        try:
            async with (
                asyncio.timeout(within),
                self._open.request(method, path, data=data, headers={"Content-Type": "application/json"}) as response,
            ):
                if response.status >= 400:
                    raise await _refusal(response)
                return await response.read()
        except TimeoutError as error:
            raise CameraUnavailable(text("refused.worker_silent", seconds=f"{within:g}")) from error
        except (aiohttp.ClientError, OSError) as error:
            raise CameraUnavailable(text("refused.worker_restarts")) from error

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise CameraUnavailable(text("refused.worker_restarts"))
        return self._session


async def _refusal(response: aiohttp.ClientResponse) -> GatewayError:
    if response.status == 409:
        try:
            refused = ViewRefused.model_validate_json(await response.read())
            return NotShown(refused.refusal, refused.error)
        except ValidationError:
            pass  # not of a view
    return CameraUnavailable(await _failure(response))


async def _failure(response: aiohttp.ClientResponse) -> str:
    try:
        return WorkerFailed.model_validate_json(await response.read()).error
    except ValidationError:
        return f"the camera worker answered with status {response.status}"


async def _next_piece(content: aiohttp.StreamReader, *, within: float) -> bytes:
    """Return the next bytes, b"" at the end. Raises TimeoutError after so many seconds without any.

    A second short wait follows the time-out: if the loop was held up or the process was stopped, the time-out fires
    before the bytes that arrived meanwhile are seen.
    """
    try:
        async with asyncio.timeout(within):
            return await content.readany()
    except TimeoutError:
        async with asyncio.timeout(_LAST_LOOK_SECONDS):
            return await content.readany()
