"""The process of one camera worker. Its output on stderr goes to the gateway's log."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from drivers.child_process import ChildProcess, start_child

log = structlog.get_logger(__name__)

_LONGEST_LINE = 4096
_END_SECONDS = 3.0
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR, "critical": logging.CRITICAL}
_OF_THE_LINE = ("event", "level", "timestamp", "worker")
_NOT_HANDED_ON = ("EDGE_GATEWAY_SECRET_", "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_")


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
            if not await self.killed(within=_END_SECONDS):
                log.error("camera_worker_does_not_die", worker=self._name, pid=self.pid)
            elif self._listener is not None:
                await asyncio.wait({self._listener}, timeout=_END_SECONDS)  # its last words
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
