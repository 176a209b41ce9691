"""Cameras served on by RTSP: from the worker that records them, to whoever knows the account."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import closing
from itertools import chain, pairwise

import pytest
from free_ports import free_port
from hostile_camera import HostileCamera, Script, film, sound

from drivers.rtsp.client.source import RtspSource
from drivers.rtsp.errors import CameraRefused
from drivers.rtsp.frames import AudioCodec, EncodedAudio, EncodedFrame
from gateway.domain.footage import RtspServing, WorkerCamera

pytestmark = pytest.mark.long("GStreamer's RTSP server")

WORD = "a word: with/odd@signs"


@pytest.fixture
async def served(start_worker, gst_camera):
    """A worker that records camera 201 and serves it on; gives the port."""
    source = gst_camera()
    worker = await start_worker()
    port = free_port()
    serving = RtspServing(host="127.0.0.1", port=port, username="recorder", password=WORD)
    await worker.assign(WorkerCamera(camera_id=201, url=source.url(), segment_seconds=0.5), rtsp=serving)
    await worker.until(lambda: bool(worker.segments(201)))
    return port


def frames_of(url: str, *, transport: str, number: int) -> list:
    with closing(RtspSource(url=url, transport=transport)) as source:
        source.open()
        return [frame for frame, _ in zip(chain.from_iterable(source.batches()), range(number), strict=False)]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_a_viewer_who_knows_the_account_gets_what_is_recorded(served, transport):
    url = f"rtsp://recorder:a%20word%3A%20with%2Fodd%40signs@127.0.0.1:{served}/camera/201"
    frames = await asyncio.to_thread(frames_of, url, transport=transport, number=12)
    assert frames[0].keyframe
    assert len(frames) == 12
    times = [frame.dts for frame in frames]
    assert times == sorted(set(times))


async def test_others_are_refused(served):
    for account in ("", "recorder:wrong@", "other:x@"):
        with pytest.raises(CameraRefused):
            await asyncio.to_thread(
                frames_of, f"rtsp://{account}127.0.0.1:{served}/camera/201", transport="tcp", number=1
            )
    known = "recorder:a%20word%3A%20with%2Fodd%40signs@"
    for path in ("/camera/202", "/camera/", "/", "/camera/201x", "/camera/\u0662\u0660\u0661"):
        with pytest.raises(CameraRefused):
            await asyncio.to_thread(frames_of, f"rtsp://{known}127.0.0.1:{served}{path}", transport="tcp", number=1)


async def test_ffmpeg_decodes_it(served, judge):
    url = f"rtsp://recorder:a%20word%3A%20with%2Fodd%40signs@127.0.0.1:{served}/camera/201"
    words = [judge.ffmpeg, "-v", "error", "-rtsp_transport", "tcp", "-i", url, "-frames:v", "20", "-f", "null", "-"]
    run = await asyncio.to_thread(subprocess.run, words, capture_output=True, timeout=30, check=False)
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.parametrize(("codec", "transport"), [("aac", "tcp"), ("pcmu", "udp")])
async def test_sound_that_is_recorded_is_served_on_in_step_with_its_pictures(start_worker, judge, codec, transport):
    async with HostileCamera(Script(film=film(), sound=sound(codec), reports=True)) as camera:
        worker = await start_worker()
        serving = RtspServing(host="127.0.0.1", port=free_port(), username="recorder", password="word")
        recorded = WorkerCamera(camera_id=201, url=camera.url(), segment_seconds=0.5, audio=True)
        await worker.assign(recorded, rtsp=serving)
        await worker.until(lambda: bool(worker.segments(201)))
        url = f"rtsp://recorder:word@127.0.0.1:{serving.port}/camera/201"

        def heard():
            with closing(RtspSource(url=url, transport=transport, audio=True)) as source:
                source.open()
                assert source.sound is not None
                found = [item for item, _ in zip(chain.from_iterable(source.batches()), range(120), strict=False)]
                return source.sound, found

        kind, items = await asyncio.to_thread(heard)
        assert kind.codec is AudioCodec.AAC
        pictures = [item.pts for item in items if isinstance(item, EncodedFrame)]
        sounds = [item for item in items if isinstance(item, EncodedAudio)]
        assert len(pictures) > 5
        assert len(sounds) > 5
        assert max(sounds[-1].pts, pictures[-1]) - min(sounds[-1].pts, pictures[-1]) < 2 * 90_000
        unit = 1024 * 90_000 // kind.rate
        assert {abs(after.pts - before.pts - unit) <= 90_000 // 100 for before, after in pairwise(sounds)} == {True}

        words = [
            judge.ffmpeg, "-v", "error", "-rtsp_transport", transport, "-i", url, "-map", "0:v", "-map", "0:a",
            "-t", "1", "-f", "null", "-",
        ]  # fmt: skip
        run = await asyncio.to_thread(subprocess.run, words, capture_output=True, timeout=30, check=False)
        assert (run.returncode, run.stderr) == (0, b"")
