"""The HTTP listener that cameras push to, one for all cameras of a port.

Cameras send `POST /plates/<device id>`. The token, where a camera has one, is the query parameter `token` or the word
after the scheme in Authorization. Every message is answered at once; its content is neither stored nor logged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from functools import partial

import structlog
from aiohttp import web

from drivers.contract import ProtocolViolation
from drivers.link import reconnect_wait
from drivers.listening.http import PROVED, HttpListener, HttpPlaces, PlainHandler
from drivers.listening.places import Bounds, Crowd, Places
from drivers.plates.multipart import Part, PartSplitter
from drivers.plates.pushed import PushedPlates
from drivers.plates.readings import PlateReading

log = structlog.get_logger(__name__)

_JUST_BYTES = "application/octet-stream"
_LARGEST_MESSAGE = 16 * 1024 * 1024
_LARGEST_WHOLE = 4 * 1024 * 1024
_READ_IN_THREAD = 32 * 1024
_MESSAGE_SECONDS = 5.0
_BOUNDS = Bounds(most=64, per_address=16, for_known=8, for_configured=32)
"""The places of a port; configured are the sources of its cameras. Some cameras leave connections open."""
_SHUTDOWN_SECONDS = 0.3
_LONGEST_WAIT = 5.0


class PushListener:
    """The listener on one port. It must run for as long as the drivers of its cameras.

    Args:
        host: the address to listen on.
        port: the port to listen on; 0 takes a free one.
        cameras: the cameras that may push here.
    """

    def __init__(self, *, host: str, port: int, cameras: Iterable[PushedPlates]) -> None:
        self._host = host
        self._port = port
        self._cameras = {str(camera.device_id): camera for camera in cameras}
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
        failures = 0
        while True:
            try:
                await self._listen()
            except OSError as error:
                failures += 1
                fault = f"cannot listen on {self._host} port {self._port}: {error.strerror}"
                log.error("listener_failed", reason=fault)  # noqa: TRY400 (the sentence says it all)
                self._tell(fault)
            await asyncio.sleep(reconnect_wait(failures, longest=_LONGEST_WAIT))

    async def _listen(self) -> None:
        places = HttpPlaces(self._places, monotonic=time.monotonic)
        app = web.Application(middlewares=[places.asking], client_max_size=_LARGEST_MESSAGE)
        app.router.add_post("/plates/{device}", self._answer)
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
            # The same answer for both, so that a stranger cannot learn which cameras there are.
            self._turned_away += 1
            log.warning("push_turned_away", source=request.remote, count=self._turned_away)
            return web.Response(status=403)
        request[PROVED] = True
        try:
            async with asyncio.timeout(_MESSAGE_SECONDS):
                parts = await _parts(request, camera)
                readings = [reading for part in parts for reading in await _read(part, camera)]
        except TimeoutError:
            return web.Response(status=408)
        except ProtocolViolation as violation:
            camera.refuse(str(violation))
            return web.Response(status=400)
        return web.Response(text="OK") if camera.take(readings) else web.Response(status=503)


async def _parts(request: web.Request, camera: PushedPlates) -> list[Part]:
    """Return the message's parts, those of a multipart message without the bytes of pictures.

    Raises ProtocolViolation when it has no whole part or is too large.
    """
    content_type = request.content_type.lower()
    if not content_type.startswith("multipart/"):
        whole = bytearray()
        async for chunk in request.content.iter_any():
            whole += chunk
            if len(whole) > _LARGEST_WHOLE:
                raise ProtocolViolation(f"a message of more than {_LARGEST_WHOLE} bytes")
        # A body declared as bytes, or not at all, may be text all the same, and must not be skipped as a picture.
        return [Part("" if content_type == _JUST_BYTES else content_type, bytes(whole))]
    splitter = PartSplitter(closing=camera.dialect.closing)
    parts: list[Part] = []
    size = 0
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size > _LARGEST_MESSAGE:
            raise ProtocolViolation(f"a message of more than {_LARGEST_MESSAGE} bytes")
        parts += splitter.feed(chunk)
    if not parts:
        raise ProtocolViolation("a message without a whole part")
    return parts


async def _read(part: Part, camera: PushedPlates) -> tuple[PlateReading, ...]:
    if len(part.body) > _READ_IN_THREAD:  # JSON with pictures inside would hold up the event loop
        return await asyncio.to_thread(camera.dialect.read, part)
    return camera.dialect.read(part)


def _token(request: web.Request) -> str:
    given = request.query.get("token")
    return given if given is not None else request.headers.get("Authorization", "").partition(" ")[2].strip()
