"""Each fault of the simulated central, set over its control route."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys


async def set_faults(ask, **faults):
    status, body = await ask("POST", "/demo/faults", faults, headers={})
    assert status == 200, body


async def test_faults_are_shown_and_unknown_ones_refused(ask):
    await set_faults(ask, latency_seconds=0.01)
    assert (await ask("GET", "/demo/faults", headers={}))[1]["latency_seconds"] == 0.01
    assert (await ask("POST", "/demo/faults", {"flood": True}, headers={}))[0] == 400


async def test_it_runs_by_itself(http, tmp_path):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "simulation.far_ends.central",
        "--port",
        "0",
        "--data",
        str(tmp_path / "central.json"),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"CENTRAL_PASSWORD": "from outside"},
    )
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
        url = re.search(r"http://\S+:\d+", line)[0]
        async with http.post(
            url + "/v1/auth/login", json={"username": "gateway", "password": "from outside"}
        ) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
        assert (tmp_path / "central.json").stat().st_size > 1000
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
