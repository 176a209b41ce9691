"""One camera worker as a process of its own: started, listened to, ended. What it writes to stderr goes to the log."""

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
    """A worker process for as long as this context lasts; leaving it kills the process if it still runs."""

    def __init__(self, *, name: str, socket: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._name = name
        self._socket = socket
        self._environ = environ
        self._process: ChildProcess | None = None
        self._listening: asyncio.TaskGroup | None = None
        self._listener: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start it. Raises OSError when the machine cannot."""
        self._socket.unlink(missing_ok=True)
        where = ("--socket", str(self._socket), "--parent", str(os.getpid()))
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
        """True once the process is no more."""
        return self._process is None or self._process.returncode is not None

    async def ending(self) -> str:
        """Say how the process ended, as half a sentence; "" while it runs. An end under way is waited for a moment."""
        if self._process is None:
            return ""
        code = await self._process.ended(within=0.5)
        if code is None:
            return ""
        return f"killed by {_signal_name(-code)}" if code < 0 else f"ended with status {code}"

    def terminate(self) -> None:
        """Ask it to end; it finishes the segments it has open."""
        self._signal(signal.SIGTERM)

    async def killed(self, *, within: float) -> bool:
        """End it at once; whether it is gone within that many seconds. A process that waits for a disk may not be."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            await self._process.ended(within=within)
        return self.has_ended

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    async def _listen(self, process: ChildProcess) -> None:
        """Log each line; one too long is cut, none holds the worker up."""
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
        """Log what the worker said: its own lines at their level, with their fields; all else as it is."""
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
