"""The program as people type it, and a gateway of it that runs on a small site file."""

from __future__ import annotations

import contextlib
import io
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from forked import Forked, done

from gateway.cli import main
from gateway.cli.users.register import made
from gateway.web.auth.accounts import hash_password
from gateway.web.register.changes import AddAccount

PROGRAM = Path(sys.executable).with_name("edge-gateway")
SITE = """
[site]
name = "Small"
[api]
port = 0
"""
PASSWORD = "hunter2-hunter2"
_ENVIRON = {"PATH": os.environ["PATH"], "COLUMNS": "120"}
_SECONDS = 30


_OWN_PROCESS = ("run", "demo")
"""Commands that handle signals and set limits of their process."""
_ONE_AT_A_TIME = threading.Lock()
_BY_A_COMMAND: ContextVar[bool] = ContextVar("by_a_command", default=False)


def give_account(data: Path, username: str = "chief", password: str = PASSWORD) -> None:
    """Put an administrator into the register of a data folder, which may be new and on which no gateway runs."""
    change = AddAccount(username=username, password_hash=hash_password(password), role="administrator")
    with ThreadPoolExecutor(1) as thread:  # one without a loop, which a command makes itself
        thread.submit(made, change, data, new=True).result()


class _Said(io.TextIOBase):
    """A standard stream: a command's own text is kept, and that of a gateway in this process goes where it went."""

    encoding, errors = "utf-8", "strict"

    def __init__(self, elsewhere: TextIO) -> None:
        self.buffer = io.BytesIO()
        self._elsewhere = elsewhere

    def write(self, text: str, /) -> int:
        """Keep the text if the command writes it, also in a task or thread of its own."""
        if _BY_A_COMMAND.get():
            self.buffer.write(text.encode())
            return len(text)
        return self._elsewhere.write(text)

    def writable(self) -> bool:
        return True


@contextlib.contextmanager
def _surroundings(arguments: tuple[str | Path, ...], folder: Path, environ: dict[str, str]) -> Iterator[None]:
    """Give the command its folder, environment, arguments and empty input; have this process's own again."""
    kept = os.environ.copy(), Path.cwd(), sys.argv, sys.stdin, os.umask(0o022)
    os.umask(kept[-1])
    token = _BY_A_COMMAND.set(True)
    try:
        os.environ.clear()
        os.environ.update(environ)
        os.chdir(folder)
        sys.argv = ["edge-gateway", *map(str, arguments)]
        sys.stdin = io.TextIOWrapper(io.BytesIO())
        yield
    finally:
        before, folder, sys.argv, sys.stdin, mask = kept
        os.umask(mask)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(before)
        _BY_A_COMMAND.reset(token)


def typed(*arguments: str | Path, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    """Type a command, wait for its end, and have what it says. One that makes a process its own gets one."""
    if arguments and arguments[0] in _OWN_PROCESS:
        return done("gateway", *map(str, arguments), cwd=cwd, env=_ENVIRON, **environ)
    return typed_here(*arguments, cwd=cwd, **environ)


def typed_here(*arguments: str | Path, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    """Type a command that runs in this process: the start of one would take longer than most commands.

    An asynchronous test calls it in a thread.
    """
    status: object = 0
    with _ONE_AT_A_TIME, _surroundings(arguments, cwd or Path.cwd(), _ENVIRON | environ):
        output, errors = _Said(sys.stdout), _Said(sys.stderr)
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                main()
            except SystemExit as ended:
                status = ended.code
    assert status is None or isinstance(status, int), status
    said = (stream.buffer.getvalue().decode() for stream in (output, errors))
    return subprocess.CompletedProcess(arguments, status or 0, *said)


class RunningGateway:
    """A gateway that runs by `site.toml` of a folder, which the caller has written there."""

    def __init__(self, folder: Path, *options: str | Path, **environ: str) -> None:
        self.site = folder / "site.toml"
        self._log, errors = os.pipe()
        words = ("gateway", "run", "site.toml", *options)
        try:
            self.process = Forked(*words, output=1, errors=errors, cwd=folder, env=_ENVIRON | environ)
        finally:
            os.close(errors)
        self.heard = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self._ended()
        os.close(self._log)

    def hears(self, pattern: str, *, times: int = 1) -> str:
        """Wait for this in its log; the last of it."""
        deadline = time.monotonic() + _SECONDS
        while len(found := re.findall(pattern, self.heard)) < times:
            assert time.monotonic() < deadline, self.heard
            if select.select([self._log], [], [], 1)[0]:
                assert self._hear(), f"the gateway ended: {self.heard}"
        return str(found[-1])

    def serves(self) -> int:
        """Wait until it answers; its port."""
        return int(self.hears(r'"port": (\d+), "event": "interface_served"'))

    def end(self) -> int:
        """Stop it as systemd does; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        """Hear all that it still says; its exit status."""
        while self._hear():
            pass
        return self.process.wait(timeout=_SECONDS)

    def _hear(self) -> bool:
        read = os.read(self._log, 65536)
        self.heard += read.decode(errors="replace")
        return bool(read)
