"""One worker with sixteen cameras, each of which misbehaves in its own way, and one that does not."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from hostile_camera import HostileCamera, Script, film, joined

from gateway.camera_worker.segmenter import LONGEST_SLEW_MICROS
from gateway.domain.footage import GapReason, WorkerCamera

pytestmark = pytest.mark.long("seventeen real cameras in real time-outs")

RUBBISH = b"rubbish$\x09\x00\x09" + b"$\x01\x00\x08\x80\xc8\x00\x01\0\0\0\7" * 40
HEALTHY, FAST, SLOW, LONG_GROUPS, TWO_CODECS = 1, 13, 14, 15, 17
MOST_MEGABYTES = 170


def without_keyframe(index, packets):
    return packets[:-1] if index == 30 else packets


def wild(index, pts):
    return pts + (index > 25) * 70_000_000 - (index % 7 == 0) * 3_600


def some_lost(index, packets):
    """One datagram in fifty, always the same ones."""
    return [packet for at, packet in enumerate(packets) if random.Random(1_000 * index + at).random() > 0.02]


def running(speed: float):
    return lambda _index, pts: round(pts * speed)


def misbehaving():
    """Each camera's script, its settings and the reason of its gap. Encoded here: every process of a run imports."""
    # Six seconds without a keyframe, then groups of any length.
    long = joined(film(frames=150, gop=150), *(film(frames=gop, gop=gop) for gop in (8, 3, 40, 15)))
    return {
        LONG_GROUPS: (Script(film=long), {}, None),  # first, since it takes longest
        HEALTHY: (Script(film=film()), {}, None),
        2: (Script(film=film(), ends_after=30, ends_by="stall"), {}, GapReason.CAMERA),
        3: (Script(film=film(), ends_after=30, ends_by="mid_frame"), {}, GapReason.CAMERA),
        4: (Script(film=film(), ends_after=30, ends_by="bye"), {}, GapReason.CAMERA),
        5: (Script(film=film(), packets=without_keyframe), {"transport": "udp"}, GapReason.PACKETS),
        6: (Script(film=film(), packets=without_keyframe), {}, GapReason.CAMERA),
        7: (Script(film=film(), timestamp=wild), {}, None),
        8: (Script(film=film("h265", b_frames=2)), {}, None),
        9: (Script(film=joined(film(frames=20), film(frames=20, width=320, height=192))), {}, None),
        10: (
            Script(film=film(), most_sessions=1, session_seconds=1.5, ends_after=30, ends_by="reset"), {},
            (GapReason.CAMERA, GapReason.NETWORK),
        ),
        11: (Script(film=film(gop=5), between=RUBBISH), {}, None),
        12: (Script(film=film(), sets_in="sdp"), {"transport": "udp"}, None),
        FAST: (Script(film=film(), timestamp=running(1.05)), {}, None),
        SLOW: (Script(film=film(), timestamp=running(0.95)), {}, None),
        16: (Script(film=film(), packets=some_lost), {"transport": "udp"}, GapReason.PACKETS),
        TWO_CODECS: (Script(film=joined(film(frames=20), film("h265", frames=20))), {}, None),
    }  # fmt: skip


def resident_megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


def steps_of(segments):
    """By how much each segment begins later than the one before ended, micros."""
    return [after.started_at - before.started_at - before.duration for before, after in pairwise(segments)]


async def test_each_gap_has_its_reason_and_the_healthy_camera_none(start_worker, judge):
    cameras = misbehaving()
    async with AsyncExitStack() as stack:
        served = {
            number: await stack.enter_async_context(HostileCamera(script)) for number, (script, _, _) in cameras.items()
        }
        silent = await stack.enter_async_context(HostileCamera(Script(silent=True)))
        worker = await start_worker()
        await worker.assign(
            *(
                WorkerCamera(camera_id=number, url=served[number].url(), segment_seconds=0.5, stall_seconds=1.0, **more)
                for number, (_, more, _) in cameras.items()
            ),
            WorkerCamera(camera_id=99, url=silent.url(), segment_seconds=0.5, stall_seconds=1.0),
        )

        def gaps(number):
            return [segment.gap for segment in worker.segments(number)[1:] if segment.gap is not GapReason.NONE]

        def enough(number):
            wanted = cameras[number][2]
            if number in (FAST, SLOW):
                return any(steps_of(worker.segments(number)))
            needed = 3 if number == LONG_GROUPS else 5
            return gaps(number) if wanted else len(worker.segments(number)) >= needed

        await worker.until(lambda: all(enough(number) for number in cameras), 35.0)
        for number, (_, _, wanted) in cameras.items():
            if wanted is None:
                assert gaps(number) == [], number
            else:
                assert gaps(number)[0] in (wanted if isinstance(wanted, tuple) else (wanted,)), number
        assert resident_megabytes(worker.process.pid) < MOST_MEGABYTES
        health = (await worker.ask("GET", "/health"))[1]["cameras"]
        dropped = {camera["camera_id"]: camera["dropped"] for camera in health}
        assert dropped[HEALTHY] == 0
        assert not worker.segments(99)
        healthy = worker.segments(HEALTHY)
        assert all(after.started_at == before.started_at + before.duration for before, after in pairwise(healthy))
        for number in cameras:
            segments = worker.segments(number)
            files = [worker.media / segment.path for segment in (segments[0], segments[-1])]
            assert [judge.decode(file) for file in files] == ["", ""], number
        for number in (FAST, SLOW):  # their clocks are followed, in steps that nobody sees
            segments = worker.segments(number)
            steps = steps_of(segments)
            assert max(map(abs, steps)) <= LONGEST_SLEW_MICROS + 1
            assert (sum(steps) > 0) is (number == SLOW)
        durations = [segment.duration for segment in worker.segments(LONG_GROUPS)]
        assert durations[0] == 6_000_000
        assert len(set(durations)) >= 3
        assert {segment.codec[:4] for segment in worker.segments(TWO_CODECS)} == {"avc1", "hvc1"}
        assert {segment.codec[:4] for segment in worker.segments(8)} == {"hvc1"}
        assert {segment.width for segment in worker.segments(9)} == {160, 320}
        assert worker.terminate() < 1.5


async def test_a_power_cut_brings_cameras_back_a_few_at_a_time(start_worker):
    async with AsyncExitStack() as stack:
        served = [await stack.enter_async_context(HostileCamera(Script(film=film()))) for _ in range(6)]
        workers = [await start_worker(), await start_worker()]
        for number, worker in enumerate(workers):
            mine = served[3 * number : 3 * number + 3]
            await worker.assign(
                *(WorkerCamera(camera_id=10 * number + at, url=each.url()) for at, each in enumerate(mine))
            )
        for worker in workers:
            await worker.until(
                lambda worker=worker: worker.conditions(10 * workers.index(worker) + 2)[-1:] == ["recording"]
            )
        before = sum(each.connections for each in served)
        for each in served:
            each.drop()
        took = await workers[0].until(lambda: sum(each.connections for each in served) >= before + 6)
        assert took > 5 / 4 - 0.3
