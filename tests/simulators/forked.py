"""Processes of the gateway and of the simulated field, forked from one that has imported both.

Two thirds of what a start costs are imports. A site that a test begins is a process of its own all the same, with the
program's own `main`, pipes, terminal, environment and signals, and so is a command. Tests of what a start itself does
(packages, the demo) start the program by its name instead.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path

from simulation.demo.scene import FieldReady

_MAINS = {
    "gateway": ("gateway.cli", "gateway.app.gateway"),
    "simulation.demo.gateway": ("simulation.demo.gateway",),
    "simulation.demo.field": ("simulation.demo.field", "drivers.rtsp.server.testcard"),
}
"""Of each program the module that has its `main`, and what that imports only when it runs."""

_NAMES = {"gateway": "edge-gateway"}
"""What a program is called on its command line, where that is another name."""

_SECONDS = 50
"""As long as a command may take, on a machine with other work."""

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([module for modules in _MAINS.values() for module in modules])


def import_beforehand() -> None:
    """Start the process that is forked, without waiting for its imports."""
    multiprocessing.forkserver.ensure_running()


class Forked:
    """A process as `subprocess.Popen` has it, with one of the programs above in it."""

    def __init__(
        self,
        program: str,
        *words: str | Path,
        output: int,
        errors: int,
        source: int | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start it with copies of these descriptors as its standard streams."""
        ends = [os.open(os.devnull, os.O_RDONLY) if source is None else os.dup(source), os.dup(output), os.dup(errors)]
        handed = [Connection(end, writable=place > 0, readable=place == 0) for place, end in enumerate(ends)]
        environ = dict(os.environ if env is None else env)
        given = (program, [str(word) for word in words], str(cwd or Path.cwd()), environ, handed)
        self._process = _FORKS.Process(target=_become, args=given, daemon=True)  # ended with its starter at the latest
        self._process.start()
        for end in handed:
            end.close()
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; its exit status. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Signal it, unless it has ended: the fork server reaps it before this process hears of it."""
        with contextlib.suppress(ProcessLookupError), os.fdopen(os.pidfd_open(self.pid), "rb", buffering=0) as process:
            if self.poll() is None:
                signal.pidfd_send_signal(process.fileno(), number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def done(
    program: str, *words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run it to its end, as `subprocess.run` does, with these variables added to the environment."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        ends = {"output": output.fileno(), "errors": errors.fileno()}
        process = Forked(program, *words, **ends, cwd=cwd, env={**(os.environ if env is None else env), **environ})
        try:
            status = process.wait(timeout=_SECONDS)
        finally:
            process.kill()
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(words, status, output.read(), errors.read())


def _become(program: str, words: list[str], folder: str, environ: dict[str, str], handed: list[Connection]) -> None:
    """Run the program in the child, with its own folder, environment, arguments and standard streams."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    for place, end in enumerate(handed):
        os.dup2(end.fileno(), place)
        end.close()
    if os.isatty(0):  # also what the program opens as /dev/tty, to ask for a password
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (the process's own)
    sys.argv = [_NAMES.get(program, program), *words]
    sys.exit(importlib.import_module(_MAINS[program][0]).main())


class Field:
    """A simulated field that is up; it ends with its standard input."""

    def __init__(self, *words: str | Path, errors: int = 2) -> None:
        source, hold = os.pipe()
        told, output = os.pipe()
        self._hold, self._told = os.fdopen(hold, "wb"), os.fdopen(told, "rb")
        try:
            self._process = Forked("simulation.demo.field", *words, source=source, output=output, errors=errors)
        finally:
            os.close(source)
            os.close(output)
        self.ready = FieldReady.model_validate_json(self._told.readline())

    def end(self) -> None:
        """End it in order, and see that its line was all that it printed: nobody reads more. May be called twice."""
        if self._told.closed:
            return
        self._hold.close()
        self._process.wait(timeout=_SECONDS)
        with self._told:
            more = self._told.read()
        assert not more, more

    def lose(self) -> None:
        """Kill it; `end` frees what its starter still holds of it."""
        self._process.kill()
        self._process.wait()
