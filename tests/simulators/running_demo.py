"""A demo site in processes of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.runtime.unix_sockets import INTERFACE_SOCKET

_START_SECONDS = 60


@contextmanager
def running_demo(folder: Path, *options: str) -> Iterator[Path]:
    """A demo that has just started; gives the gateway's run folder."""
    words = [sys.executable, "-m", "gateway", "demo", "--data", folder, "--port", "0", "--central-port", "0", *options]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    run = folder / "gateway" / "run"
    try:
        until = time.monotonic() + _START_SECONDS
        while not (run / INTERFACE_SOCKET).exists():
            assert time.monotonic() < until, "the demo did not start"
            time.sleep(0.2)  # noqa: TID251 (a program without a loop)
        yield run
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
