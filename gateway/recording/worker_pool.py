"""Supervision of camera workers: one child process for every few cameras, restarted when it crashes or hangs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import structlog

from drivers.child_process import ChildProcess, start_child
from drivers.listening.places import Crowd
from gateway.domain.errors import CameraUnavailable
from gateway.domain.footage import (
    Pin,
    PinnedFootage,
    RtspServing,
    WorkerAssignment,
    WorkerBeat,
    WorkerCamera,
    WorkerReport,
)
from gateway.domain.viewing import LiveViewing
from gateway.recording.worker_client import WorkerClient, WorkerSilent
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Backoff, Progress

log = structlog.get_logger(__name__)

MOVES_WITHIN_SECONDS = 60.0
_START_SECONDS = 15.0
_POLL_SECONDS = 0.03
_END_SECONDS = 2.0
_SETTLED_SECONDS = 60.0
_LOSSES = 3
_LOSSES_WITHIN_SECONDS = 2 * _SETTLED_SECONDS

_LONGEST_LINE = 4096
_CHILD_SECONDS = 3.0
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR, "critical": logging.CRITICAL}
_OF_THE_LINE = ("event", "level", "timestamp", "worker")
_NOT_HANDED_ON = ("EDGE_GATEWAY_SECRET_", "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_")


@dataclass(frozen=True, slots=True)
class RestartingWorker:
    """A worker that stops repeatedly.

    Attributes:
        name: the worker's name.
        reason: why it stopped last, as a clause without a subject ("killed by SIGKILL").
        cameras: the ids of its cameras, in order.
    """

    name: str
    reason: str
    cameras: tuple[int, ...]


class WorkerListener(Protocol):
    """Receiver of a worker's reports and losses, on the loop."""

    def worker_reported(self, worker: CameraWorker, report: WorkerReport) -> None:
        """React to a report of the worker, without waiting."""
        ...

    async def worker_lost(self, worker: CameraWorker, reason: str) -> None:
        """React to a worker that died or was killed. It is started again after this returns."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """Parts that all workers of the site share.

    Attributes:
        media: the media folder.
        marker: the file without which nothing is written to it.
        clock: the clock.
        progress: the heartbeats of the workers.
        listener: receives their reports and losses.
        live: how live views are served.
    """

    media: Path
    marker: str
    clock: Clock
    progress: Progress
    listener: WorkerListener
    live: LiveViewing


class WorkerProcess:
    """A worker process that lives within this context; leaving the context kills it if it still runs."""

    def __init__(self, *, name: str, socket: Path, media: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._name = name
        self._socket = socket
        self._media = media
        self._environ = environ
        self._process: ChildProcess | None = None
        self._listening: asyncio.TaskGroup | None = None
        self._listener: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start the process. Raises OSError if it cannot be started."""
        self._socket.unlink(missing_ok=True)
        where = ("--socket", str(self._socket), "--media", str(self._media), "--parent", str(os.getpid()))
        self._process = await start_child(
            (sys.executable, "-m", "gateway.camera_worker", *where),
            stderr=subprocess.PIPE,
            environ={key: value for key, value in self._environ.items() if not key.startswith(_NOT_HANDED_ON)},
        )
        self._listening = await asyncio.TaskGroup().__aenter__()
        self._listener = self._listening.create_task(self._listen(self._process), name=f"{self._name} stderr")
        log.info("camera_worker_started", worker=self._name, pid=self._process.pid)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not await self.killed(within=_CHILD_SECONDS):
                log.error("camera_worker_does_not_die", worker=self._name, pid=self.pid)
            elif self._listener is not None:
                await asyncio.wait({self._listener}, timeout=_CHILD_SECONDS)  # its last words
        finally:
            if self._listener is not None:
                self._listener.cancel()
        if self._listening is not None:
            await self._listening.__aexit__(None, None, None)
        self._socket.unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        """The process id, 0 before it was started."""
        return self._process.pid if self._process else 0

    @property
    def has_ended(self) -> bool:
        """True before the start and after the end of the process."""
        return self._process is None or self._process.returncode is not None

    async def ending(self) -> str:
        """Return how the process ended ("killed by SIGKILL"), "" if it still runs after half a second."""
        if self._process is None:
            return ""
        code = await self._process.ended(within=0.5)
        if code is None:
            return ""
        return f"killed by {_signal_name(-code)}" if code < 0 else f"ended with status {code}"

    def terminate(self) -> None:
        """Ask the process to end (SIGTERM); it finishes its open segments first."""
        self._signal(signal.SIGTERM)

    async def killed(self, *, within: float) -> bool:
        """Kill the process and return whether it has ended within that many seconds; a hung disk may delay it."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            await self._process.ended(within=within)
        return self.has_ended

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    async def _listen(self, process: ChildProcess) -> None:
        """Log each line of stderr, cut at 4096 bytes. Reading continues in any case, so the worker is never held up."""
        if process.stderr is None:
            return
        rest = b""
        while data := await process.stderr.read(65_536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._log(line)
            rest = rest[:_LONGEST_LINE]
        self._log(rest)

    def _log(self, line: bytes) -> None:
        """Log a line of stderr: the worker's own log lines with their level and fields, any other line as text."""
        text = line[:_LONGEST_LINE].decode("utf-8", "replace").strip()
        if not text:
            return
        try:
            said = json.loads(text)
        except ValueError:
            said = None
        if isinstance(said, dict) and said.get("level") in _LEVELS and isinstance(said.get("event"), str):
            fields = {key: value for key, value in said.items() if key not in _OF_THE_LINE}
            log.log(_LEVELS[said["level"]], said["event"], worker=self._name, **fields)
        else:
            log.info("camera_worker_said", worker=self._name, line=text)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class CameraWorker:
    """One worker and its cameras. Keep `run` alive as a task; it ends only by cancellation.

    After a first crash the worker is restarted at once, after further crashes in a row with a backoff.
    """

    def __init__(
        self,
        context: WorkerContext,
        *,
        name: str,
        cameras: frozenset[int],
        socket: Path,
        rtsp: RtspServing | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """`cameras`: the ids of its cameras, assigned or not; they may change later."""
        self.name = name
        self.cameras = cameras
        self.pid = 0
        self.viewers = 0
        self.rtsp_crowd: Crowd | None = None
        self._context = context
        self._socket = socket
        self._rtsp = rtsp
        self._backoff = backoff or Backoff()
        self._assigned: tuple[WorkerCamera, ...] = ()
        self._may_write = True
        self._pinned = PinnedFootage(pins=())
        self._client: WorkerClient | None = None
        self._losses = deque[float](maxlen=_LOSSES)
        self._reason = ""

    @property
    def restarting(self) -> RestartingWorker | None:
        """The worker's state if it stops repeatedly, that is three times within two minutes; else None.

        It becomes None again a minute after the last stop, so that crashes at a steady pace are reported once.
        """
        now = self._context.clock.monotonic()
        if len(self._losses) < _LOSSES or now - self._losses[-1] > _SETTLED_SECONDS:
            return None
        if self._losses[-1] - self._losses[0] > _LOSSES_WITHIN_SECONDS:
            return None
        return RestartingWorker(self.name, self._reason, tuple(sorted(self.cameras)))

    @property
    def client(self) -> WorkerClient | None:
        """The client of the living worker, None while there is none."""
        return self._client

    async def assign(self, cameras: Sequence[WorkerCamera], *, may_write: bool = True) -> None:
        """Set the cameras to record, for this worker and its successors.

        Without `may_write`, the worker holds footage in memory; only cameras that are recorded for events only may be
        assigned then.
        """
        self._assigned = tuple(cameras)
        self._may_write = may_write
        if self._client is not None:
            with contextlib.suppress(CameraUnavailable):  # a restarted worker gets them anyway
                await self._client.assign(self._assignment())

    async def pin(self, pins: Sequence[Pin]) -> None:
        """Set the time spans to keep of cameras recorded for events only, for this worker and its successors."""
        if tuple(pins) == self._pinned.pins:
            return
        self._pinned = PinnedFootage(pins=tuple(pins))
        if self._client is not None:
            with contextlib.suppress(CameraUnavailable):  # a restarted worker gets them anyway
                await self._client.pin(self._pinned)

    async def run(self) -> None:
        """Keep the worker alive until cancelled; then let it finish its open segments."""
        failures = 0
        self._context.progress.expect(self.name, within=MOVES_WITHIN_SECONDS)
        try:
            while True:
                self._context.progress.beat(self.name)
                started = self._context.clock.monotonic()
                self._reason = reason = await self._live()
                self._losses.append(self._context.clock.monotonic())
                failures = 1 if self._context.clock.monotonic() - started > _SETTLED_SECONDS else failures + 1
                log.error("camera_worker_lost", worker=self.name, reason=reason, failures=failures)
                self._context.progress.beat(self.name)
                await self._context.listener.worker_lost(self, reason)
                if failures > 1:
                    await asyncio.sleep(self._backoff.wait(failures - 1))
        finally:
            self._context.progress.forget(self.name)

    async def _live(self) -> str:
        """Start the process and follow it until it has ended; return why it ended."""
        process = WorkerProcess(name=self.name, socket=self._socket, media=self._context.media)
        try:
            async with process:
                self.pid = process.pid
                reason = await self._talk(process)
                # No successor while this one cannot die: on a hung disk there would only be more hanging processes.
                while not await process.killed(within=1.0):
                    self._context.progress.beat(self.name)
                return reason
        except OSError as error:
            return f"it cannot be started: {error.strerror or error}"

    async def _talk(self, process: WorkerProcess) -> str:
        async with WorkerClient(socket=self._socket) as client:
            try:
                await self._begin(process, client)
                await self._follow(process, client)
            except WorkerSilent as error:
                return f"it hung: {error}"
            except CameraUnavailable as error:
                return await process.ending() or str(error)
            finally:
                self._client = None
                self.pid = 0
                self.viewers = 0
            return await process.ending() or "it closed its reports"

    async def _begin(self, process: WorkerProcess, client: WorkerClient) -> None:
        """Wait until the worker's socket exists, and give it its cameras and pins."""
        deadline = self._context.clock.monotonic() + _START_SECONDS
        while not self._socket.exists():
            if process.has_ended or self._context.clock.monotonic() > deadline:
                raise CameraUnavailable(f"it did not serve within {_START_SECONDS:g} s")
            await asyncio.sleep(_POLL_SECONDS)
        sent = None
        while sent != (now := self._assignment()):  # it may change while it is being sent
            sent = now
            await client.assign(sent)
        self._client = client
        if self._pinned.pins:
            await client.pin(self._pinned)

    async def _follow(self, process: WorkerProcess, client: WorkerClient) -> None:
        """Take the worker's reports until it ends, including those of its last segments when it is stopped."""
        async with asyncio.TaskGroup() as group:
            hearing = group.create_task(self._hear(client), name=f"{self.name} reports")
            try:
                failure = await asyncio.shield(hearing)
            except asyncio.CancelledError:
                process.terminate()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_END_SECONDS):
                        await asyncio.shield(hearing)
                hearing.cancel()
                raise
        if failure is not None:
            raise failure

    async def _hear(self, client: WorkerClient) -> WorkerSilent | CameraUnavailable | None:
        """Pass its reports on until they end; return the error that ended them, None for an orderly end."""
        try:
            async for report in client.reports():
                self._context.progress.beat(self.name)
                if isinstance(report, WorkerBeat):
                    self.viewers, self.rtsp_crowd = report.viewers, report.rtsp_crowd
                self._context.listener.worker_reported(self, report)
        except (WorkerSilent, CameraUnavailable) as error:
            return error
        return None

    def _assignment(self) -> WorkerAssignment:
        return WorkerAssignment(
            media=str(self._context.media),
            marker=self._context.marker,
            may_write=self._may_write,
            cameras=self._assigned,
            live=self._context.live,
            rtsp=self._rtsp,
        )
