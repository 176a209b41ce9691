"""The launcher of the demo: it runs the simulated field and the real gateway, each in its own process.

A gateway that dies is started again, as systemd would do, because users of the demo may try to kill it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

import aiohttp
from pydantic import ValidationError
from rich.console import Console
from rich.panel import Panel

from gateway.domain.errors import GatewayError
from simulation.demo.scene import (
    ACCOUNT,
    GATEWAY_FOLDER,
    MANAGER_SECRET,
    MISCONFIGURED,
    SITE_FOLDER,
    FieldReady,
    add_account,
    write_site,
)

_FIELD_SECONDS = 20.0
_GATEWAY_SECONDS = 40.0
_STOP_SECONDS = 10.0
_RESTART_SECONDS = 0.5
_SHOWN_LINES = 12
_PR_SET_PDEATHSIG = 1


def launch(*, data: Path | None, port: int, central_port: int, traffic: bool) -> int:
    """Run the demo until interrupted and return its exit status. Without `data` a temporary folder is used."""
    try:
        folder = data.absolute() if data else Path(tempfile.mkdtemp(prefix="edge-demo-"))
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "demo.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise GatewayError(
            f"the demo cannot keep its data in {data or tempfile.gettempdir()}: {error.strerror}"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise GatewayError(f"another demo runs in {folder}; give this one another --data") from error
    try:
        wanted = _free_port(port)
        return asyncio.run(_Demo(folder=folder, port=wanted, central_port=central_port, traffic=traffic).run())
    finally:
        os.close(lock)
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)


def _free_port(port: int) -> int:
    """Return `port`, or a free port for 0. Raises GatewayError when another program has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise GatewayError(f"port {port} is in use; give the demo another with --port") from error
        return int(probe.getsockname()[1])


class _Demo:
    """One run of the demo."""

    def __init__(self, *, folder: Path, port: int, central_port: int, traffic: bool) -> None:
        self._folder = folder
        self._port = port
        self._central_port = central_port
        self._traffic = traffic
        self._console = Console()
        self._log = folder / "gateway.log"
        self._log_begins = self._log.stat().st_size if self._log.exists() else 0
        self._ended = asyncio.Event()

    async def run(self) -> int:
        """Start field and gateway, and wait for an interruption; return the exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._ended.set)
        self._console.print("Starting the simulated barriers, readers, cameras and central …")
        field = await self._start_field()
        try:
            ready = await self._field_ready(field)
            site = write_site(self._folder / SITE_FOLDER, ready, port=self._port)
            await asyncio.to_thread(add_account, self._folder / GATEWAY_FOLDER)
            self._console.print("Starting the gateway …")
            await self._keep_gateway(site, ready)
        finally:
            await _stop(field)
        return 0

    async def _start_field(self) -> Process:
        words = ["--folder", str(self._folder / "field"), "--central-port", str(self._central_port)]
        if not self._traffic:
            words.append("--no-traffic")
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "simulation.demo.field", *words, stdin=PIPE, stdout=PIPE, start_new_session=True
        )

    async def _field_ready(self, field: Process) -> FieldReady:
        line = b""
        if field.stdout is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIELD_SECONDS):
                    line = await field.stdout.readline()
        try:
            return FieldReady.model_validate_json(line)
        except ValidationError as error:
            raise GatewayError("the simulated field did not start; its own words are above") from error

    async def _keep_gateway(self, site: Path, ready: FieldReady) -> None:
        shown = False
        while not self._ended.is_set():
            gateway = await self._start_gateway(site, ready)
            try:
                up = await self._gateway_up(gateway)
                ended = gateway.returncode
                refused = ended == MISCONFIGURED or ((ended is None or ended > 0) and not up and not shown)
                if refused and not self._ended.is_set():
                    raise GatewayError(f"the gateway did not start:\n{self._last_words()}")
                if not shown and up:
                    self._show(ready)
                    shown = True
                await self._ended_or(gateway)
            finally:
                await _stop(gateway)
            if not self._ended.is_set():
                self._console.print(f"The gateway ended ({gateway.returncode}); starting it again …")
                await asyncio.sleep(_RESTART_SECONDS)

    async def _start_gateway(self, site: Path, ready: FieldReady) -> Process:
        with self._log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "simulation.demo.gateway",
                str(site),
                "--data",
                str(self._folder / GATEWAY_FOLDER),
                "--control",
                ready.control_url,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    async def _gateway_up(self, gateway: Process) -> bool:
        """Wait until the gateway is ready; return False when it ends first or the time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _GATEWAY_SECONDS
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as client:
            while loop.time() < until and gateway.returncode is None and not self._ended.is_set():
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with client.get(f"http://127.0.0.1:{self._port}/health/ready") as answer:
                        if answer.status == 200:
                            return gateway.returncode is None
                await asyncio.sleep(0.2)
        return False

    async def _ended_or(self, gateway: Process) -> None:
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(self._ended.wait())
            died = group.create_task(gateway.wait())
            await asyncio.wait({ended, died}, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            died.cancel()

    def _show(self, ready: FieldReady) -> None:
        lines = [
            f"Page       http://127.0.0.1:{self._port}/status/",
            f"Account    user [b]{ACCOUNT}[/b], password [b]demo[/b]",
            f"Central    {ready.central_url} (simulated), with users guard and manager (password demo),",
            f"           manager with a second factor: {MANAGER_SECRET}",
            f"Data       {self._folder}",
            f"Log        {self._log}",
            "",
            "Vehicles come by themselves." if self._traffic else "Send a vehicle with the page's buttons.",
            "Ctrl-C ends it.",
        ]
        self._console.print(Panel("\n".join(lines), title="edge-gateway demo", expand=False))

    def _last_words(self) -> str:
        with self._log.open("rb") as log:
            log.seek(self._log_begins)
            lines = log.read().decode("utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_SHOWN_LINES:]) or "it said nothing"


def _die_with_parent() -> None:
    """Tie the gateway's process to the launcher, before it runs its program: it ends whenever the launcher does."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


async def _stop(process: Process) -> None:
    """Stop a child and wait for its end; kill one that does not end."""
    if process.stdin is not None:
        process.stdin.close()
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
