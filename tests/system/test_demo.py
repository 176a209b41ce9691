"""`edge-gateway demo`, as a newcomer runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from gateway.domain.events import EventKind

pytestmark = pytest.mark.timeout(150)


@pytest.fixture
def demo(tmp_path_factory, api_of, port):
    folder = tmp_path_factory.mktemp("d")
    words = ["demo", "--data", str(folder), "--port", str(port), "--central-port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    yield process, api_of(port), folder
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
    assert process.stdout is not None
    process.stdout.close()


def test_within_a_minute_there_is_traffic_and_a_clip(demo, wait_until, ffprobe, tmp_path):
    process, api, _ = demo
    begun = time.monotonic()
    wait_until(api.is_ready, within=40, why="the demo is up")
    api.sign_in()
    passed = wait_until(lambda: api.events(types=[EventKind.VEHICLE_PASSED]), within=50, why="a passage")
    proof = wait_until(
        lambda: next((e for e in api.camera_events() if e["ready"]), None), within=50, why="footage is complete"
    )
    status, clip, _ = api.raw("GET", f"/v1/camera/event/clip/{proof['id']}")
    assert status == 200, clip
    took = time.monotonic() - begun
    (tmp_path / "clip.mp4").write_bytes(clip)
    assert ffprobe(tmp_path / "clip.mp4")["streams"][0]["codec_name"] == "h264"
    assert passed
    assert took < 60, f"it took {took:.0f} s"

    status, body, _ = api.raw("GET", "/", Accept="application/json")
    assert status == 200
    assert json.loads(body)["success"] is True

    process.send_signal(signal.SIGINT)
    words, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert f"{api.base}/status/" in words.replace("\n", " ")
    assert "Traceback" not in words


def test_a_gateway_that_is_killed_comes_back_in_the_demo(demo, wait_until):
    process, api, _ = demo
    wait_until(api.is_ready, within=40, why="the demo is up")
    (gateway,) = children(process.pid, b"run")
    os.kill(gateway, signal.SIGKILL)
    wait_until(lambda: children(process.pid, b"run") not in ([], [gateway]), within=20, why="it is started again")
    wait_until(api.is_ready, within=40, why="it serves again")


def children(parent: int, word: bytes) -> list[int]:
    from pathlib import Path

    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                owner = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if owner == parent and word in words:
                found.append(int(folder.name))
    return found
