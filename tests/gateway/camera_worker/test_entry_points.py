"""Streams without IDR pictures, joined late: recorded from their recovery points, as libav copies them."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import av
import pytest
from hostile_camera import RATE, film
from waiting import until

from drivers.rtsp import h264, h265
from drivers.rtsp.frames import Entry
from drivers.rtsp.server.fanout import Fanout
from drivers.rtsp.server.server import RtspServer, ServedStream
from gateway.domain.footage import GapReason, StreamFault, WorkerCamera

pytestmark = pytest.mark.long("minutes of real streams")

OPEN_GOP = {"b_frames": 2, "options": "open-gop=1:bframes=2:b-adapt=0"}
INTRA_REFRESH = {"options": "intra-refresh=1"}
LATE = 60
"""So many pictures were sent before anybody joins."""

Coded = tuple[bool, str]
"""A coded picture: whether libav takes it for a keyframe, and its hash."""


def coded(packet: av.Packet) -> Coded:
    """Hash what a packet holds of the picture itself, whatever stands around it."""
    units = list(h264.nal_units(bytes(packet)))
    if packet.stream.codec_context.name == "hevc":
        slices = [unit for unit in units if h265.is_slice(h265.nal_type(unit))]
    else:
        slices = [unit for unit in units if h264.SLICE <= h264.nal_type(unit) <= h264.IDR]
    return packet.is_keyframe, hashlib.sha256(b"".join(slices)).hexdigest()


@asynccontextmanager
async def copying(url: str):
    """libavformat reads the camera, as `ffmpeg -c copy` does: yields the pictures read so far, the first a keyframe."""
    found: list[Coded] = []
    leave = threading.Event()

    def read() -> None:
        with av.open(url, "r", options={"rtsp_transport": "tcp", "analyzeduration": "1000000"}, timeout=10) as source:
            for packet in source.demux(video=0):
                if leave.is_set():
                    return
                if packet.size and (found or packet.is_keyframe):
                    found.append(coded(packet))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield found
    finally:
        leave.set()
        await asyncio.to_thread(thread.join, 10)


def pictures(file: Path) -> list[Coded]:
    with av.open(str(file), "r", format="mpegts") as source:
        return [coded(packet) for packet in source.demux(video=0) if packet.size]


@asynccontextmanager
async def sending(frames):
    """A camera that has been sending for a while: yields its address. Whoever joins gets what is sent from then on."""
    feed = Fanout()

    async def send() -> None:
        begun = asyncio.get_running_loop().time()
        for number, frame in enumerate(frames):
            feed.publish(replace(frame, keyframe=True))
            due = begun + max(0, number - LATE) / RATE
            await asyncio.sleep(due - asyncio.get_running_loop().time())  # the pace of the camera

    async with RtspServer(streams={"/late": ServedStream(feed=feed)}) as server, asyncio.TaskGroup() as group:
        task = group.create_task(send())
        yield server.url("/late")
        task.cancel()


@pytest.mark.parametrize(
    ("codec", "made"),
    [("h264", OPEN_GOP), ("h264", INTRA_REFRESH), ("h265", OPEN_GOP)],
    ids=["open_gop", "intra_refresh", "h265_open_gop"],
)
async def test_recovery_points_are_where_libav_finds_them(start_worker, codec, made):
    async with sending(film(codec, frames=600, gop=30, **made)) as url, copying(url) as copied:
        await until(lambda: copied)
        worker = await start_worker()
        await worker.assign(WorkerCamera(camera_id=1, url=url, segment_seconds=1.0))
        await worker.until(lambda: len(worker.segments()) >= 4)
        segments = worker.segments()
    assert [segment.gap for segment in segments] == [GapReason.STARTED, *[GapReason.NONE] * (len(segments) - 1)]
    assert all(before.started_at + before.duration == after.started_at for before, after in pairwise(segments))
    assert {segment.duration for segment in segments} == {1_200_000}
    assert {segment.entry for segment in segments} == {Entry.RECOVERY}
    assert worker.conditions()[-1] == "recording"
    recorded = [pictures(worker.media / segment.path) for segment in segments]
    assert all(held[0] in copied and held[0][0] for held in recorded)
    ours = [picture for held in recorded for picture in held]
    begin = copied.index(ours[0])
    together = min(len(ours), len(copied) - begin)
    assert together >= 90
    assert ours[:together] == copied[begin : begin + together], "no picture is missing, and none is added"
    if made is OPEN_GOP:
        assert {segment.whole_after for segment in segments} == {0}
    else:
        assert all(0 < segment.whole_after <= 2_000_000 for segment in segments)


async def test_a_stream_without_any_entry_point_is_cut_by_time_and_says_so(start_worker):
    async with sending(film(frames=760, gop=1_000)) as url:
        worker = await start_worker()
        await worker.assign(WorkerCamera(camera_id=1, url=url, segment_seconds=1.0, stall_seconds=5.0))
        await worker.until(lambda: len(worker.segments()) >= 1)
        (segment,) = worker.segments()
        states = [report for report in worker.reports if report.kind == "camera"]
    assert (segment.gap, segment.entry) == (GapReason.STARTED, Entry.NONE)
    assert 9_900_000 < segment.duration < 10_200_000
    assert len(pictures(worker.media / segment.path)) == segment.frames > 245
    assert {state.condition for state in states} == {"starting", "recording"}
    assert states[-1].faults == (StreamFault.NO_ENTRY_POINTS,)
