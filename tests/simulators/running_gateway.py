"""The program as people type it, and a gateway of it that runs on a small site file."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from forked import Forked, done

PROGRAM = Path(sys.executable).with_name("edge-gateway")
BARE_SITE = """
[site]
name = "Small"
[api]
port = 0
"""
PASSWORD = "hunter2-hunter2"
SITE = f"""{BARE_SITE}
[[api.accounts]]
username = "chief"
password = "chief"
"""
"""With an account, whose password is PASSWORD."""
SECRETS = {"EDGE_GATEWAY_SECRET_CHIEF": PASSWORD}
_ENVIRON = {"PATH": os.environ["PATH"], "COLUMNS": "120"}
_SECONDS = 30


def typed(*arguments: str | Path, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    """Type a command, wait for its end, and have what it says."""
    return done("gateway", *arguments, cwd=cwd, env=_ENVIRON, **environ)


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
