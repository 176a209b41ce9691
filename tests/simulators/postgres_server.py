"""A real PostgreSQL in a temporary folder, under a user of its own where the tests run as root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from free_ports import free_port
from lacks import lacks
from waiting import wait_until

_SECONDS = 60
_USER = "nobody"
_FOLDERS = ("/usr/local/bin", *(str(one) for one in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)))


class PostgresServer:
    """The server. Everybody on this machine may do everything at it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"postgresql://tests@127.0.0.1:{self.port}/postgres"
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Make an empty cluster."""
        words = [
            *_as_user(),
            _program("initdb"),
            "-D",
            self._folder / "data",
            "-U",
            "tests",
            "-A",
            "trust",
            "--no-sync",
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=self._folder)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        options = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "off",
            "shared_buffers": "16MB",
        }
        words = [_program("postgres"), "-D", self._folder / "data"]
        for name, value in options.items():
            words += ["-c", f"{name}={value}"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_as_user(), *words], stdout=log, stderr=log, cwd=self._folder, start_new_session=True
            )
        wait_until(self._answers, "PostgreSQL answers")

    def kill(self) -> None:
        """Kill all of its processes with SIGKILL."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=_SECONDS)
            self._process = None

    def ask(self, sql: str) -> str:
        """Return what psql prints for a statement."""
        done = subprocess.run(
            [_program("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, self.url],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{sql}\n{done.stderr}"
        return done.stdout.strip()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        words = [_program("psql"), "-X", "-q", "-c", "SELECT 1", self.url]
        return subprocess.run(words, capture_output=True, timeout=_SECONDS, check=False).returncode == 0


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """An empty server that runs while the context lasts."""
    _program("postgres")
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, _USER)
        server = PostgresServer(folder)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder)


def _as_user() -> list[str]:
    """PostgreSQL does not run as root."""
    return ["setpriv", f"--reuid={_USER}", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=":".join(_FOLDERS))
    return found or lacks(f"{name} of PostgreSQL is missing: `make debian` installs it")
