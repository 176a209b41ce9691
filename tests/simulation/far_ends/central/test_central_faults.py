"""Each fault of the simulated central, set over its control route."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys

import aiohttp
import pytest


async def set_faults(ask, **faults):
    status, body = await ask("POST", "/demo/faults", faults, headers={})
    assert status == 200, body


async def test_faults_are_shown_and_unknown_ones_refused(ask):
    await set_faults(ask, latency_seconds=0.01)
    assert (await ask("GET", "/demo/faults", headers={}))[1]["latency_seconds"] == 0.01
    assert (await ask("POST", "/demo/faults", {"flood": True}, headers={}))[0] == 400


async def test_down_resets_connections(ask):
    await set_faults(ask, down=True)
    with pytest.raises((aiohttp.ClientError, OSError)):
        await ask("POST", "/v1/device/list", {})
    await set_faults(ask)
    assert (await ask("POST", "/v1/device/list", {}))[0] == 200


async def test_stopped_refuses_connections_and_comes_back_on_its_port(ask, central):
    port = central.port
    await central.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    await central.start()
    assert central.port == port
    assert (await ask("POST", "/v1/device/list", {}))[0] == 200


async def test_both_kinds_of_500(ask, http, central):
    await set_faults(ask, error="json", paths="/v1/device", error_times=1)
    status, body = await ask("POST", "/v1/device/list", {})
    assert (status, body["success"]) == (500, False)
    assert (await ask("POST", "/v1/device/list", {}))[0] == 200
    await set_faults(ask, error="text")
    async with http.post(central.url + "/v1/device/list") as answer:
        assert (answer.status, answer.content_type) == (500, "text/plain")


async def test_wrong_count_and_truncated_pages(ask):
    await set_faults(ask, count_off_by=3, truncate_to=5)
    _, body = await ask("POST", "/v1/access/list", {})
    assert (body["count"], len(body["access_cards"])) == (63, 5)


async def test_a_lost_answer_was_carried_out(ask, central):
    await set_faults(ask, lost_answers=1, paths="/v1/access")
    with pytest.raises((aiohttp.ClientError, OSError)):
        await ask("PATCH", "/v1/access", {"id": 4001, "note": "lost"})
    assert central.cards[4001]["note"] == "lost"
    assert central.requests[-1].status == 0


async def test_slow_body_trickles(ask):
    await set_faults(ask, slow_body_seconds=0.2)
    loop = asyncio.get_running_loop()
    began = loop.time()
    status, body = await ask("POST", "/v1/access/list", {})
    assert (status, len(body["access_cards"])) == (200, 25)
    assert loop.time() - began >= 0.19


async def test_a_denied_permission(ask):
    await set_faults(ask, deny="can_view_devices")
    status, body = await ask("POST", "/v1/device/list", {})
    assert (status, "can_view_devices" in body["error"]) == (500, True)


async def test_expired_sessions(ask):
    assert (await ask("POST", "/demo/expire-sessions", {}, headers={}))[0] == 200
    assert (await ask("POST", "/v1/device/list", {}))[1]["error"] == "authentication required"


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
