"""The worker process. It serves until it is stopped or its parent is gone.

It parses what cameras and viewers send, so it runs in a sandbox. It opens the program, the system's libraries and
settings of the network, and its media folder. It opens neither the databases, nor the site file, nor secrets.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import structlog

import drivers
import gateway
from gateway.camera_worker.connection_budget import ConnectionBudget
from gateway.camera_worker.cutters import Cutters
from gateway.camera_worker.reports import ReportBuffer
from gateway.camera_worker.rtsp_server import CameraRtspServer
from gateway.camera_worker.server import HttpServer, WorkerServer
from gateway.camera_worker.views import Views
from gateway.camera_worker.worker import AssignedCameras
from gateway.runtime import landlock
from gateway.runtime.clock import SystemClock
from gateway.runtime.process_settings import give_memory_back
from gateway.runtime.unix_sockets import listen

_PARENT_CHECK_SECONDS = 0.5
_END_SECONDS = 0.7
_LAST_REPORTS_SECONDS = 0.2
_CUTTERS_SECONDS = 0.1

log = structlog.get_logger(__name__)

Identity = tuple[int, int]
"""Device and inode of a folder."""
_LOOK_SECONDS = 2.0
_OF_ETC = (
    *("alternatives", "ca-certificates", "crypto-policies", "gai.conf", "host.conf", "hosts", "ld.so.cache"),
    *("ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "pki", "protocols", "resolv.conf"),
    *("services", "ssl", "timezone"),
)
_OF_RUN = ("NetworkManager", "edge-gateway-clock", "resolvconf", "systemd/resolve", "systemd/timesync")
_READABLE = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/sys"),
    *(f"/etc/{name}" for name in _OF_ETC),
    *(f"/run/{name}" for name in _OF_RUN),
)
_WRITABLE = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/proc")
"""`/proc`: clip cutters set their own place among those that the kernel ends when memory runs out."""


def confine_worker(*, media: Path, turn: Path) -> Identity:
    """Confine this process to its work, where the kernel can; else the log says so. Return which folder `media` is.

    `turn` is shared with other workers. Call it once the worker's socket listens, and before threads are started.
    """
    turn.touch(mode=0o600)
    # Not all of `sys.path`: it begins with the present folder, which is / in a unit.
    program = [Path(each) for each in (sys.prefix, sys.base_prefix, *gateway.__path__, *drivers.__path__)]
    readable = [path for path in program if not media.is_relative_to(path)] + [Path(name) for name in _READABLE]
    found = _identity(media)
    try:
        known = landlock.confine(readable=readable, writable=[Path(name) for name in _WRITABLE] + [media, turn])
    except OSError as error:
        log.warning("camera_worker_not_confined", error=error.strerror)
        return found
    if known:
        log.info("camera_worker_confined", landlock=known)
    else:
        log.warning("camera_worker_not_confined", error="the kernel has no Landlock")
    return found


async def another_disk(media: Path, before: Identity, ended: Callable[[], None]) -> None:
    """End the worker when another folder takes the place of its media folder: its rights are for the one before."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        if await asyncio.to_thread(_identity, media) != before:
            log.info("camera_worker_media_changed")
            ended()
            return


def _identity(media: Path) -> Identity:
    try:
        found = media.stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


async def serve(socket: Path, *, media: Path, parent: int) -> None:
    """Serve at `socket` until SIGTERM or SIGINT, or until `parent` is not this process's parent any more."""
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # only for the gateway, but sometimes sent to all its processes
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    listening = listen(socket)
    turn = socket.with_name("connections.turn")  # workers have their sockets in one folder, and so share this file
    disk = confine_worker(media=media, turn=turn)
    reports = ReportBuffer()
    clock = SystemClock()
    budget = ConnectionBudget(path=turn, monotonic=clock.monotonic)
    worker = AssignedCameras(clock=clock, reports=reports, budget=budget)
    async with asyncio.TaskGroup() as tasks:
        views = Views(feed_of=worker.live, tasks=tasks)
        rtsp_server = CameraRtspServer(feed_of=worker.recorded)
        cutters = Cutters()
        server = WorkerServer(worker=worker, views=views, rtsp_server=rtsp_server, cutters=cutters, reports=reports)
        connections = HttpServer(answer=server.answer, tasks=tasks)
        await connections.serve(listening)
        watching = tasks.create_task(another_disk(media, disk, ending.set), name="media folder")
        while not ending.is_set() and os.getppid() == parent:
            try:
                async with asyncio.timeout(_PARENT_CHECK_SECONDS):
                    await ending.wait()
            except TimeoutError:
                continue
        watching.cancel()
        await worker.stop(_END_SECONDS)
        await server.end(_LAST_REPORTS_SECONDS)
        connections.end()
        await rtsp_server.end()
        await cutters.end(_CUTTERS_SECONDS)
        views.end_all()


def run(socket: Path, *, media: Path, parent: int) -> NoReturn:
    """Run the worker process until it ends."""
    give_memory_back()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )

    async def serve_and_end() -> NoReturn:
        await serve(socket, media=media, parent=parent)
        # threads may still wait for a camera or a slow disk: they must not delay the end, and the interpreter must not
        # free memory that they use
        sys.stderr.flush()
        os._exit(0)

    asyncio.run(serve_and_end())
