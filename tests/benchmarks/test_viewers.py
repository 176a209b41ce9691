"""Processor time of WebRTC viewers beside that of recording, in the same run of one camera worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from figures import show
from processes import cpu_seconds
from waiting import wait_until

from tests.benchmarks.test_video import SIMULATORS, cameras

CAMERAS = 4
VIEWERS = tuple(int(word) for word in os.environ.get("BENCH_VIEWERS", "1,8,20,50").split(","))
SECONDS = float(os.environ.get("BENCH_SECONDS", "15"))


class Worker:
    """A camera worker."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "worker.sock"
        self.media = folder / "media"
        self.media.mkdir()
        words = ("--socket", str(self.socket), "--media", str(self.media))
        self.process = subprocess.Popen([sys.executable, "-m", "gateway.camera_worker", *words])

    def record(self, port: int, count: int) -> None:
        wait_until(self.socket.exists)
        body = {
            "media": str(self.media),
            "cameras": [{"camera_id": n, "url": f"rtsp://127.0.0.1:{port}/{n}"} for n in range(1, count + 1)],
            "live": {"addresses": ["127.0.0.1"], "viewers_per_camera": 100},
        }
        words = ["curl", "-sf", "-X", "PUT", "--unix-socket", str(self.socket), "http://worker/cameras"]
        subprocess.run([*words, "-H", "Content-Type: application/json", "-d", json.dumps(body)], check=True, timeout=20)
        wait_until(lambda: len(list(self.media.glob("*/*/*.ts"))) >= 2 * count)

    def cost(self, seconds: float = SECONDS) -> float:
        """Return the share of a core that it takes, in percent."""
        before, began = cpu_seconds([self.process.pid]), time.monotonic()
        time.sleep(seconds)
        return (cpu_seconds([self.process.pid]) - before) / (time.monotonic() - began) * 100


@contextmanager
def worker(folder: Path) -> Iterator[Worker]:
    started = Worker(folder)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


class Watchers:
    """A process of viewers that only count."""

    def __init__(self, worker: Worker, count: int) -> None:
        words = [sys.executable, str(SIMULATORS / "counting_viewers.py"), str(worker.socket), "1", str(count)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.first_picture = json.loads(self.process.stdout.readline())

    def counted(self) -> dict[str, int]:
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        finally:
            self.process.kill()
            self.process.stdout.close()


@pytest.mark.benchmark
@pytest.mark.timeout(600)
def test_a_viewer_beside_a_recording(tmp_path):
    with cameras(CAMERAS) as port, worker(tmp_path) as each:
        wait_until(each.socket.exists)
        idle = each.cost(3)
        each.record(port, CAMERAS)
        for count in VIEWERS:
            recording = each.cost()
            watchers = Watchers(each, count)
            try:
                time.sleep(3)
                before, began = watchers.counted(), time.monotonic()
                watched = each.cost()
                after, seconds = watchers.counted(), time.monotonic() - began
            finally:
                watchers.end()
            of_camera, of_viewer = (recording - idle) / CAMERAS, (watched - recording) / count
            show(
                "a WebRTC viewer", of_viewer, "% of a core", peer=of_camera, beside="recording its camera", aim=1,
                at=count,
            )  # fmt: skip
            first = watchers.first_picture["median"] * 1000
            show("first picture of a WebRTC viewer after the answer", first, "ms", aim=200, at=count)
            rate = (after["bytes"] - before["bytes"]) * 8 / seconds / count / 1e6
            print(f"  {rate:.2f} Mbit/s each, {after['lost']} datagrams lost")
            assert after["pictures"] > before["pictures"]
