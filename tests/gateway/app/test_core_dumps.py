"""No core dump is written: memory holds passwords and keys."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from pathlib import Path

from lacks import cannot
from running_gateway import SITE, RunningGateway


def test_the_limit_is_zero_whatever_it_was():
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        cannot("it allows no core dumps to begin with")
    program = (
        "import resource as r\n"
        "from gateway.runtime.process_settings import write_no_core_dump\n"
        "hard = r.getrlimit(r.RLIMIT_CORE)[1]\n"
        "r.setrlimit(r.RLIMIT_CORE, (hard, hard))\n"
        "write_no_core_dump()\n"
        "print(*r.getrlimit(r.RLIMIT_CORE))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout.split() == ["0", "0"]


async def test_a_running_gateway_has_that_limit(tmp_path):
    (tmp_path / "site.toml").write_text(SITE)
    with RunningGateway(tmp_path, "--data", "data") as running:
        await asyncio.to_thread(running.serves)
        limits = Path(f"/proc/{running.process.pid}/limits").read_text()
        assert await asyncio.to_thread(running.end) == 0
    (line,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
    assert line.split()[4:6] == ["0", "0"]
