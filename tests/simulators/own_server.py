"""A server of another project as a process of this test's, which can be killed, hung and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from free_ports import free_port
from lacks import lacks

SECONDS = 20


class OwnServer:
    """The server on a free port, with its configuration and log in a folder.

    Args:
        folder: is made if it is not there.
        program: the name of its program, which takes its configuration with `-c`.
        greeting: the bytes that it sends to whoever connects once it is ready.
    """

    def __init__(self, folder: Path, program: str, *, greeting: bytes = b"") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.folder = folder
        self._program = program
        self._greeting = greeting
        self._config = folder / f"{program}.conf"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        path = self.folder / f"{self._program}.log"
        with path.open("ab") as log:
            self._process = subprocess.Popen(
                [program(self._program), "-c", str(self._config)], stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + SECONDS
        while not self._answers():
            assert self._process.poll() is None, path.read_text()
            assert time.monotonic() < end, f"{self._program} does not answer"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill it; what it has acknowledged as kept must be there after `start`."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it as an administrator does."""
        self._end(signal.SIGTERM)

    def reload(self) -> None:
        """Have it read its configuration again."""
        self._signal(signal.SIGHUP)

    def hang(self) -> None:
        """Let it keep its connections and say nothing, until `wake`."""
        self._signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def wake(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(number)
            self._process.wait(timeout=SECONDS)
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
                return not self._greeting or line.recv(len(self._greeting)) == self._greeting
        except OSError:
            return False


def program(name: str) -> str:
    """Return where a program of Debian's is; the test lacks it otherwise."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/local/bin")
    return found or lacks(f"{name} is missing: `make debian` installs it")
