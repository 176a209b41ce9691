"""The worker as a process: recording real streams through everything that happens to cameras, disks and processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from processes import children_of
from stopwatch import Stopwatch
from waiting import until

from drivers.rtsp.server.messages import Credentials
from gateway.domain.footage import GapReason, WorkerCamera


def camera(url: str, camera_id: int = 1, **more: object) -> WorkerCamera:
    return WorkerCamera(camera_id=camera_id, url=url, **{"segment_seconds": 0.5, "stall_seconds": 1.0, **more})


@pytest.mark.long("GStreamer's RTSP server")
async def test_records_contiguous_segments_that_decode_alone_and_together(start_worker, gst_camera, judge):
    # a camera for each: GStreamer loses packets of one viewer while another with another transport joins
    plain, datagrams, reordering = gst_camera(), gst_camera(), gst_camera("--b-frames", "2")
    worker = await start_worker()
    await worker.assign(
        camera(plain.url(), 1), camera(datagrams.url(), 2, transport="udp"), camera(reordering.url(), 3)
    )
    await worker.until(lambda: all(len(worker.segments(camera_id)) >= 3 for camera_id in (1, 2, 3)))
    now = time.time_ns() // 1_000
    for camera_id in (1, 2, 3):
        assert_contiguous_and_playable(worker, worker.segments(camera_id), judge, now)


def assert_contiguous_and_playable(worker, segments, judge, now):
    assert segments[0].gap is GapReason.STARTED
    for before, after in pairwise(segments):
        assert after.gap is GapReason.NONE
        assert after.started_at == before.started_at + before.duration
    files = [worker.media / segment.path for segment in segments]
    for segment, file in zip(segments, files, strict=True):
        assert judge.decode(file) == ""
        probed = judge.probe(file)
        assert len(probed["packets"]) == segment.frames
        assert "K" in probed["packets"][0]["flags"]
        assert file.stat().st_size == segment.size
        assert (segment.width, segment.height, segment.codec[:5]) == (320, 240, "avc1.")
    assert judge.decode(*files) == ""
    covered = segments[-1].started_at + segments[-1].duration - segments[0].started_at
    assert sum(segment.duration for segment in segments) == covered
    assert abs(now - (segments[-1].started_at + segments[-1].duration)) < 1_500_000


@pytest.mark.long("GStreamer's RTSP server")
async def test_kill_9_loses_no_whole_frame_and_video_resumes(start_worker, gst_camera, judge):
    source = gst_camera()
    worker = await start_worker()
    await worker.assign(camera(source.url(), segment_seconds=1.0))
    await worker.until(lambda: bool(worker.segments()))
    parts = worker.media.rglob("*.part")
    await worker.until(lambda: any(part.stat().st_size > 6_000 for part in worker.media.rglob("*.part")))
    worker.kill()
    assert list(parts)
    watch = Stopwatch(children=True)
    again = await start_worker()
    await again.assign(camera(source.url(), segment_seconds=1.0))
    await again.until(lambda: len(again.segments()) >= 2)
    assert watch.seconds() < 5.0
    salvaged, resumed = again.segments()[:2]
    last = worker.segments()[-1]
    assert salvaged.started_at == last.started_at + last.duration
    assert salvaged.codec == last.codec
    assert resumed.gap is GapReason.WORKER
    assert resumed.started_at >= salvaged.started_at + salvaged.duration
    for segment in (salvaged, resumed):
        assert judge.decode(worker.media / segment.path) == ""
    assert len(list(worker.media.rglob("*.part"))) <= 1


@pytest.mark.long("GStreamer's RTSP server")
async def test_a_camera_that_goes_off_and_comes_back_leaves_a_gap_with_its_reason(start_worker, gst_camera):
    source = gst_camera()
    worker = await start_worker()
    await worker.assign(camera(source.url()))
    await worker.until(lambda: bool(worker.segments()))
    source.off()
    await worker.until(lambda: "unreachable" in worker.conditions())
    recorded = len(worker.segments())
    source.on()
    await worker.until(lambda: len(worker.segments()) > recorded)
    assert worker.segments()[recorded].gap in (GapReason.CAMERA, GapReason.NETWORK)
    before, after = worker.segments()[recorded - 1 : recorded + 1]
    assert after.started_at > before.started_at + before.duration


async def test_a_wrong_password_is_refused_and_never_told(start_worker, own_camera, capfd):
    source = await own_camera(Credentials(user="cam", password="right"))
    worker = await start_worker()
    await worker.assign(camera(source.url.replace("//", "//cam:wr0ng-w0rd@")))
    await worker.until(lambda: "refused" in worker.conditions())
    _status, health = await worker.ask("GET", "/health")
    assert "wr0ng" not in "".join(report.model_dump_json() for report in worker.reports) + str(health)
    await worker.assign(camera(source.url.replace("//", "//cam:right@")))
    await worker.until(lambda: bool(worker.segments()))
    worker.terminate()
    captured = capfd.readouterr()
    assert "wr0ng" not in captured.out + captured.err


@pytest.mark.long("the second after which a silent camera has stalled, and its return")
async def test_a_stalled_camera_is_told_and_recovers(start_worker, own_camera):
    source = await own_camera()
    worker = await start_worker()
    await worker.assign(camera(source.url))
    await worker.until(lambda: bool(worker.segments()))
    source.stream.stalled = True
    await worker.until(lambda: "stalled" in worker.conditions())
    source.stream.stalled = False
    recorded = len(worker.segments())
    await worker.until(lambda: len(worker.segments()) > recorded)
    assert worker.segments()[recorded].gap is GapReason.CAMERA


async def test_a_camera_that_hangs_holds_up_no_other_and_no_request(start_worker, own_camera):
    source = await own_camera()
    worker = await start_worker()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        await worker.assign(camera(f"rtsp://127.0.0.1:{silent.getsockname()[1]}/x", 2), camera(source.url))
        await worker.until(worker.segments)
        await worker.assign(camera(source.url))
        recorded = len(worker.segments())
        await worker.until(lambda: len(worker.segments()) > recorded)
    assert all(segment.gap is GapReason.NONE for segment in worker.segments()[1:])
    worker.terminate()


@pytest.mark.long("ffmpeg")
async def test_a_full_disk_is_told_and_recording_goes_on_when_there_is_room(start_worker, own_camera, judge):
    source = await own_camera()
    worker = await start_worker()
    await worker.assign(camera(source.url))
    await worker.until(lambda: bool(worker.segments()))
    hard = resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, (1_000, hard))
    await worker.until(lambda: "disk_failed" in worker.conditions())
    resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
    recorded = len(worker.segments())
    await worker.until(lambda: len(worker.segments()) > recorded)
    await worker.until(lambda: worker.conditions()[-1] == "recording")
    after = worker.segments()[recorded]
    assert after.gap is GapReason.DISK
    assert judge.decode(worker.media / after.path) == ""
    reported = {segment.path for segment in worker.segments()}
    written = {str(file.relative_to(worker.media)) for file in worker.media.rglob("*.ts")}
    assert reported <= written


@pytest.mark.long("ffmpeg")
async def test_ends_within_a_second_with_its_open_segment_reported(start_worker, own_camera, judge):
    source = await own_camera()
    worker = await start_worker()
    assert stat.S_IMODE(worker.socket.stat().st_mode) == 0o600
    await worker.assign(camera(source.url, segment_seconds=20.0))
    await worker.until(lambda: any(part.stat().st_size > 5_000 for part in worker.media.rglob("*.part")))
    assert await asyncio.to_thread(worker.terminate) < 1.0
    await worker.until(lambda: bool(worker.segments()))
    assert judge.decode(worker.media / worker.segments()[0].path) == ""
    assert not list(worker.media.rglob("*.part"))


async def test_reports_wait_for_a_reader(start_worker, own_camera):
    source = await own_camera()
    worker = await start_worker(read_reports=False)
    await worker.assign(camera(source.url))
    await worker.until(lambda: len(list(worker.media.rglob("*.ts"))) >= 2)
    async with worker.session() as session, session.get("/reports") as response:
        lines = [await response.content.readline() for _ in range(2)]
        while b'"segment"' not in lines[-1]:  # in between only what the camera is like, once a second
            assert len(lines) == 2 or b'"kind":"camera"' in lines[-1]
            lines.append(await response.content.readline())
    assert b'"camera"' in lines[0]
    assert b'"gap":"started"' in lines[1]


@pytest.mark.long("ffmpeg")
async def test_clips_and_thumbnails_over_the_socket(start_worker, own_camera, judge):
    source = await own_camera()
    worker = await start_worker()
    assert (await worker.ask("POST", "/clips", {"segments": ["1/2026010100/1_1.ts"], "output": "a.mp4"}))[0] == 409
    await worker.assign(camera(source.url))
    await worker.until(lambda: len(worker.segments()) >= 2)
    paths = [segment.path for segment in worker.segments()[:2]]
    status, cut = await worker.ask("POST", "/clips", {"segments": paths, "output": "clips/9/a.mp4"})
    assert (status, cut["output"]) == (200, "clips/9/a.mp4")
    assert judge.decode(worker.media / cut["output"]) == ""
    status, taken = await worker.ask("POST", "/thumbnails", {"segments": paths[:1], "output": "t.jpg", "width": 100})
    assert status == 200
    assert judge.probe(worker.media / taken["output"])["streams"][0]["width"] == 100
    for body, wanted in (
        ({"segments": ["../../etc/passwd"], "output": "x.mp4"}, 400),
        ({"segments": paths, "output": "../x.mp4"}, 400),
        ({"segments": ["1/2026010100/1_1.ts"], "output": "x.mp4"}, 404),
        ({"segments": []}, 400),
    ):
        status, failed = await worker.ask("POST", "/clips", body)
        assert status == wanted
        assert failed["error"]
    secret = {"media": 5, "cameras": [{"camera_id": "x", "url": "rtsp://u:s3cret@h/"}]}
    status, failed = await worker.ask("PUT", "/cameras", secret)
    assert status == 400
    assert "s3cret" not in failed["error"]


async def test_an_orphan_ends_by_itself(tmp_path):
    script = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-m', 'gateway.camera_worker', '--socket',"
        " sys.argv[1], '--media', '/nowhere']); print(p.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "s")], stdout=subprocess.PIPE)
    pid = int(parent.stdout.readline())
    parent.stdout.close()
    await until((tmp_path / "s").exists)
    parent.kill()
    parent.wait()
    await until(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def libraries(pid: int) -> set[str]:
    """The libraries that a process has loaded."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {Path(line.split(maxsplit=5)[5]).name.partition(".")[0].partition("-")[0] for line in lines if ".so" in line}


@pytest.mark.long("ffmpeg")
async def test_what_takes_memory_is_not_where_cameras_are_recorded_and_may_die_without_them(
    start_worker, own_camera, judge
):
    source = await own_camera()
    worker = await start_worker()
    await worker.assign(camera(source.url))
    await worker.until(lambda: len(worker.segments()) >= 2)
    paths = [segment.path for segment in worker.segments()[:2]]
    assert children_of(worker.process.pid) == []
    assert (await worker.ask("POST", "/thumbnails", {"segments": paths[:1], "output": "t.jpg"}))[0] == 200
    (cutter,) = children_of(worker.process.pid)
    assert "libavcodec" in libraries(cutter)
    # a segment that cannot be read to its end: the cutter hangs in it, and is killed there
    endless = "1/2026010100/1767225600000000_2000000.ts"
    (worker.media / endless).parent.mkdir()
    os.mkfifo(worker.media / endless)
    writing: list[int] = []

    def is_read() -> bool:
        with contextlib.suppress(OSError):
            writing.append(os.open(worker.media / endless, os.O_WRONLY | os.O_NONBLOCK))
        return bool(writing)

    async def kill_it() -> None:
        await worker.until(is_read)
        os.kill(cutter, signal.SIGKILL)
        os.close(writing[0])

    ordered = worker.ask("POST", "/thumbnails", {"segments": [endless], "output": "e.jpg"})
    (status, failed), _ = await asyncio.gather(ordered, kill_it())
    assert (status, "recording went on" in failed["error"]) == (500, True)
    status, cut = await worker.ask("POST", "/clips", {"segments": paths, "output": "clips/a.mp4"})
    assert status == 200
    assert judge.decode(worker.media / cut["output"]) == ""
    known = len(worker.segments())
    await worker.until(lambda: len(worker.segments()) > known)
    assert {segment.gap for segment in worker.segments()[1:]} == {GapReason.NONE}
    assert not {name for name in libraries(worker.process.pid) if name.startswith(("libav", "libx26"))}
    (after,) = children_of(worker.process.pid)
    worker.terminate()
    await worker.until(lambda: not Path(f"/proc/{after}/maps").exists() or not libraries(after))


async def test_what_viewers_need_is_loaded_when_one_is_expected(start_worker):
    worker = await start_worker(read_reports=False)
    assert "libavcodec" not in libraries(worker.process.pid)
    for _ in range(2):
        assert await worker.ask("POST", "/views/expected") == (204, {})
    await worker.until(lambda: "libavcodec" in libraries(worker.process.pid))
