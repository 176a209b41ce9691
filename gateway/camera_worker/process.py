"""The worker process. It serves until it is stopped or its parent is gone."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import structlog

from gateway.camera_worker.connection_budget import ConnectionBudget
from gateway.camera_worker.cutters import Cutters
from gateway.camera_worker.http_server import HttpServer
from gateway.camera_worker.reports import ReportBuffer
from gateway.camera_worker.rtsp_server import CameraRtspServer
from gateway.camera_worker.sandbox import another_disk, confine_worker
from gateway.camera_worker.server import WorkerServer
from gateway.camera_worker.views import Views
from gateway.camera_worker.worker import CameraWorker
from gateway.runtime.clock import SystemClock
from gateway.runtime.process_settings import give_memory_back
from gateway.runtime.unix_sockets import listen

_PARENT_CHECK_SECONDS = 0.5
_END_SECONDS = 0.7
_LAST_REPORTS_SECONDS = 0.2
_CUTTERS_SECONDS = 0.1


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
    worker = CameraWorker(clock=clock, reports=reports, budget=budget)
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
