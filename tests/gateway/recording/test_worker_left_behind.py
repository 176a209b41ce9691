"""A worker whose gateway dies while the worker is still starting."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from waiting import until

DIES_AT_ONCE = """
import asyncio, os, signal, sys
from pathlib import Path
from gateway.recording.worker_pool import WorkerProcess

async def main():
    async with WorkerProcess(name="w", socket=Path(sys.argv[1]), media=Path(sys.argv[1]).parent) as worker:
        print(worker.pid, flush=True)
        os.kill(worker.pid, signal.SIGSTOP)  # before it has asked for its parent
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_worker_ends_whose_gateway_was_killed_before_it_looked(tmp_path):
    def start() -> int:
        gateway = subprocess.run(
            [sys.executable, "-c", DIES_AT_ONCE, str(tmp_path / "w.sock")], stdout=subprocess.PIPE, check=False
        )
        assert gateway.returncode == -signal.SIGKILL
        return int(gateway.stdout.splitlines()[-1])

    pid = await asyncio.to_thread(start)
    try:
        os.kill(pid, signal.SIGCONT)
        await until(lambda: not is_there(pid), within=120)
    finally:
        if is_there(pid):
            os.kill(pid, signal.SIGKILL)
