"""The HTTP listener that cameras push to, one for all cameras of a port.

Cameras send `POST /plates/<device id>`, some `PUT`. The token, where a camera has one, is the query parameter `token`
or the word after the scheme in Authorization. Each part of a message is reported as soon as it is whole, before the
pictures behind it have come. The content of messages is neither stored nor logged, but for the begin of a refused one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from functools import partial

import structlog
from aiohttp import web

from drivers.backoff import Reconnects
from drivers.contract import LinkError, ProtocolViolation
from drivers.listening.http import PROVED, HttpListener, HttpPlaces, PlainHandler
from drivers.listening.places import Bounds, Crowd, Places
from drivers.plates.multipart import READ_AT_ONCE, BodyPart, PartSplitter
from drivers.plates.pushed import PushedPlates
from drivers.plates.readings import PlateReading, UnreadPlate

log = structlog.get_logger(__name__)

_LARGEST_MESSAGE = 16 * 1024 * 1024
_LARGEST_WHOLE = 4 * 1024 * 1024
_MOST_PARTS = 200
"""Cameras send some ten parts. Each costs time, however small it is."""
_READ_IN_THREAD = 32 * 1024
_IDLE_SECONDS = 10.0
_GOOD, _BAD, _NOT_RUNNING = 200, 400, 503
_BOUNDS = Bounds(most=64, per_address=16, for_known=8, for_configured=32)
"""The places of a port; configured are the sources of its cameras. Some cameras leave connections open."""
_NO_PATH = "its push came to another path than /plates/ and its id"
_SHUTDOWN_SECONDS = 0.3
_LONGEST_WAIT = 5.0


class PushListener:
    """The listener on one port. It must run for as long as the drivers of its cameras.

    Args:
        host: the address to listen on.
        port: the port to listen on; 0 takes a free one.
        cameras: the cameras that may push here.
        idle_seconds: the longest silence within a message. Its total time is not limited, because cameras push pictures
            over slow radio links.
    """

    def __init__(
        self, *, host: str, port: int, cameras: Iterable[PushedPlates], idle_seconds: float = _IDLE_SECONDS
    ) -> None:
        self._host = host
        self._port = port
        self._cameras = {str(camera.device_id): camera for camera in cameras}
        self._idle_seconds = idle_seconds
        self._bound_port = 0
        self._turned_away = 0
        self._places = Places(bounds=_BOUNDS, monotonic=time.monotonic, is_configured=self._is_source)

    @property
    def port(self) -> int:
        """The port in use; 0 while it does not listen."""
        return self._bound_port

    @property
    def crowd(self) -> Crowd | None:
        """The callers for whom there was no room in the last minute, None for none."""
        return self._places.crowd

    async def run(self) -> None:
        """Listen until cancelled. While the port cannot be opened, the cameras count as lost."""
        reconnects = Reconnects(longest=_LONGEST_WAIT)
        while True:
            try:
                await self._listen()
            except OSError as error:
                reconnects.failed()
                fault = f"cannot listen on {self._host} port {self._port}: {error.strerror}"
                log.error("listener_failed", reason=fault)  # noqa: TRY400 (the sentence says it all)
                self._tell(fault)
            await asyncio.sleep(reconnects.wait())

    async def _listen(self) -> None:
        places = HttpPlaces(self._places, monotonic=time.monotonic)
        app = web.Application(middlewares=[places.asking], client_max_size=_LARGEST_MESSAGE)
        for method in ("POST", "PUT"):
            app.router.add_route(method, "/plates/{device:[^/]+}{end:/?}", self._answer)
        app.router.add_route("*", "/{path:.*}", self._answer_elsewhere)
        runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=_SHUTDOWN_SECONDS,
            lingering_time=_SHUTDOWN_SECONDS,
        )
        await runner.setup()
        try:
            answering = runner.server
            if answering is None:
                raise AssertionError("the runner was set up")

            handler = partial(
                PlainHandler,
                answering,
                loop=asyncio.get_running_loop(),
                headers={},
                access_log=None,
                lingering_time=_SHUTDOWN_SECONDS,
            )
            await HttpListener(places=places, answering=handler).run(
                host=self._host, port=self._port, started=self._started
            )
        finally:
            self._bound_port = 0
            await runner.cleanup()

    def _started(self, port: int) -> None:
        self._bound_port = port
        self._tell("")

    def _is_source(self, address: str) -> bool:
        return any(camera.comes_from(address) for camera in self._cameras.values())

    def _tell(self, fault: str) -> None:
        for camera in self._cameras.values():
            camera.listening(fault=fault)

    async def _answer(self, request: web.Request) -> web.Response:
        camera = self._cameras.get(request.match_info["device"])
        objection = camera.objection(address=request.remote or "", token=_token(request)) if camera else ""
        if camera is None or objection:
            if camera is not None:
                camera.refuse(objection)
            else:
                self._tell_source(request)
            return self._turned(request)
        request[PROVED] = True
        status = await _take(request, camera, idle=self._idle_seconds)
        return web.Response(status=status, text="OK" if status == _GOOD else None)

    async def _answer_elsewhere(self, request: web.Request) -> web.Response:
        self._tell_source(request)
        return self._turned(request)

    def _tell_source(self, request: web.Request) -> None:
        """Tell the cameras at this address that they push to a path of no camera."""
        for camera in self._cameras.values():
            if camera.comes_from(request.remote or ""):
                camera.refuse(_NO_PATH, f"{request.method} {request.rel_url.raw_path}".encode())

    def _turned(self, request: web.Request) -> web.Response:
        """Turn a request away, with one answer for all: a stranger must not learn which cameras there are."""
        self._turned_away += 1
        log.warning("push_turned_away", source=request.remote, count=self._turned_away)
        return web.Response(status=403)


async def _take(request: web.Request, camera: PushedPlates, *, idle: float) -> int:
    """Report the parts of a message as they come; return the status of its answer."""
    splitter = PartSplitter(
        element=camera.dialect.element,
        content_type=request.headers.get("Content-Type", "").strip().lower(),
        largest_text=_LARGEST_WHOLE,
    )
    message = _PushedMessage(camera)
    fault = ""
    try:
        async for chunk in _chunks(request, idle=idle):
            await message.take(splitter.feed(chunk))
        await message.take(splitter.end())
    except LinkError as error:
        fault = str(error)
        await message.take(splitter.end(cut=True))
    except ProtocolViolation as violation:
        fault = str(violation)
    if message.is_untaken:
        return _NOT_RUNNING
    if not message.parts and not fault:
        fault = "a message without a whole part"
    if fault and not message.is_good:
        camera.refuse(fault)
    return _GOOD if message.is_good else _BAD


async def _chunks(request: web.Request, *, idle: float) -> AsyncIterator[bytes]:
    """Yield the bytes of a message. Raises LinkError when it ends early, ProtocolViolation when it is too large."""
    size = 0
    while True:
        try:
            async with asyncio.timeout(idle):
                chunk = await request.content.read(READ_AT_ONCE)
        except TimeoutError as error:
            raise LinkError(f"a message that stood still for {idle:g} s") from error
        except (web.RequestPayloadError, OSError) as error:
            raise LinkError("a message that was cut off") from error
        if not chunk:
            return
        size += len(chunk)
        if size > _LARGEST_MESSAGE:
            raise ProtocolViolation(f"a message of more than {_LARGEST_MESSAGE} bytes")
        yield chunk
        await asyncio.sleep(0)  # what has come already gives no turn to others


class _PushedMessage:
    """The findings in one message so far.

    Attributes:
        parts: how many parts were whole.
        is_untaken: True when the camera's driver does not run.
    """

    def __init__(self, camera: PushedPlates) -> None:
        self._camera = camera
        self._unread = 0
        self._read = 0
        self.parts = 0
        self.is_untaken = False

    @property
    def is_good(self) -> bool:
        """True when a reading was found, or everything that came was read."""
        return bool(self._read or (self.parts and not self._unread))

    async def take(self, parts: Iterable[BodyPart]) -> None:
        """Report what is in these parts. Raises ProtocolViolation when the message has too many."""
        for part in parts:
            if self.parts >= _MOST_PARTS:
                self._unread += 1
                raise ProtocolViolation(f"a message of more than {_MOST_PARTS} parts")
            if len(part.body) > _READ_IN_THREAD:  # JSON with pictures inside would hold up the event loop
                found = await asyncio.to_thread(self._camera.read, part)
            else:
                found = self._camera.read(part)
            self.is_untaken = not self._camera.take(found, part)
            self.parts += 1
            self._unread += sum(isinstance(one, UnreadPlate) for one in found)
            self._read += sum(isinstance(one, PlateReading) for one in found)


def _token(request: web.Request) -> str:
    given = request.query.get("token")
    return given if given is not None else request.headers.get("Authorization", "").partition(" ")[2].strip()
