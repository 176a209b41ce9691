"""A month of a camera in some seconds: thousands of connections and of pictures leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from functools import partial
from pathlib import Path

import pytest
from hostile_camera import HostileCamera, Script, film, sound
from waiting import until
from whep_camera import WhepCamera, WhepScript

from drivers.rtsp.client.connection import ReadBuffers
from gateway.camera_worker import reader
from gateway.camera_worker.connection_budget import ConnectionBudget
from gateway.camera_worker.live_feed import LiveFeed
from gateway.camera_worker.recorder import CameraRecorder, RecorderStart
from gateway.domain.footage import GapReason, SegmentFinished, WorkerCamera
from gateway.runtime.clock import SystemClock

pytestmark = pytest.mark.long("thousands of connections and pictures")

RECONNECTS, WEBRTC_RECONNECTS = 2_000, 25
PICTURES = 8_000


def left_behind() -> tuple[int, int, int]:
    """Count this process's files and sockets, threads and objects."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), len(gc.get_objects())


def resident_megabytes(pid: str | int = "self") -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


class Recording:
    """One camera being recorded here, with no wait between its connections."""

    def __init__(self, tmp_path, monkeypatch, url: str) -> None:
        monkeypatch.setattr(reader, "reconnect_wait", lambda _failures: 0.0)
        clock = SystemClock()
        self.segments: list[SegmentFinished] = []
        self.recorder = CameraRecorder(
            camera=WorkerCamera(camera_id=1, url=url, segment_seconds=0.5, stall_seconds=2.0, audio=True),
            media=tmp_path,
            clock=clock,
            reader=partial(
                reader.CameraReader,
                reader.ReaderContext(
                    clock,
                    ConnectionBudget(path=tmp_path / "turn", monotonic=clock.monotonic, per_second=1e6),
                    ReadBuffers(),
                ),
            ),
            live=LiveFeed(loop=asyncio.get_running_loop()),
            report=lambda told: self.segments.append(told) if isinstance(told, SegmentFinished) else None,
            start=RecorderStart(salvage_first=False),
        )

    async def __aenter__(self):
        self.recorder.start()
        return self

    async def __aexit__(self, *_):
        self.recorder.stop()
        assert await asyncio.to_thread(self.recorder.join, 5.0)
        await until(lambda: not [each for each in threading.enumerate() if each.name == "camera-1-read"])


async def test_thousands_of_reconnects_leave_nothing_behind(tmp_path, monkeypatch):
    ends = ["close", "reset", "mid_frame"]  # a BYE counts only behind a picture
    told = Script(film=film(gop=2), pace=400.0, ends_after=3, sound=sound("pcmu"), most_sessions=10**6)
    async with HostileCamera(told) as camera, Recording(tmp_path, monkeypatch, camera.url()) as recording:
        # a picture on one connection in eight: this is about connections, not about the disk
        told.packets = lambda index, packets: [] if camera.connections % 8 and index < 3 else packets

        def turned(count: int) -> bool:
            told.ends_by = ends[camera.connections % len(ends)]
            return camera.connections >= count

        await until(lambda: turned(RECONNECTS // 4))
        before, megabytes = left_behind(), resident_megabytes()
        await until(lambda: turned(RECONNECTS), within=50)
        files, threads, objects = left_behind()
        recorded = len(recording.segments)
        assert files <= before[0] + 8
        assert threads <= before[1] + 1
        # what grows is the test's own list of segments, and the requests that the camera remembers
        assert objects < before[2] + 3_000 + 3 * recorded
        assert resident_megabytes() < megabytes + 12
        told.ends_after, told.pace, told.packets = 0, 1.0, lambda _index, packets: packets
        await until(lambda: [segment.gap for segment in recording.segments[-2:]] == [GapReason.NONE] * 2)
    assert recorded > RECONNECTS // 30
    assert {segment.gap for segment in recording.segments[1:recorded]} <= {GapReason.CAMERA, GapReason.NETWORK}


async def test_webrtc_sessions_leave_nothing_behind(tmp_path, monkeypatch):
    told = WhepScript(film=film(gop=2), pace=4.0, ends_after=4)
    async with WhepCamera(told) as camera, Recording(tmp_path, monkeypatch, camera.url()) as recording:
        await until(lambda: camera.offers >= 6)
        files, threads, _ = left_behind()
        await until(lambda: camera.offers >= 6 + WEBRTC_RECONNECTS, within=50)
        # the camera's own side of sessions that are just ending is among them
        assert left_behind()[0] <= files + 16
        assert left_behind()[1] <= threads + 3
    assert {segment.gap for segment in recording.segments[1:]} == {GapReason.CAMERA}


async def test_memory_stays_flat_over_thousands_of_pictures(start_worker):
    """A thousand pictures a second through a whole worker."""
    pace = 40.0
    told = Script(film=film(), pace=pace, timestamp=lambda _index, pts: round(pts / pace))
    async with HostileCamera(told) as camera:
        worker = await start_worker()
        await worker.assign(WorkerCamera(camera_id=1, url=camera.url(), segment_seconds=0.5))

        def pictures() -> int:
            return sum(segment.frames for segment in worker.segments())

        await worker.until(lambda: pictures() >= PICTURES // 4, 30.0)
        before = resident_megabytes(worker.process.pid)
        await worker.until(lambda: pictures() >= PICTURES, 60.0)
        assert resident_megabytes(worker.process.pid) < before + 6
        assert {segment.gap for segment in worker.segments()[1:]} <= {GapReason.NONE}
