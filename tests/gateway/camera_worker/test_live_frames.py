"""What viewers get: of the recorded stream or of one of their own, and nothing of it in the recording."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from hostile_camera import HostileCamera, Script, film

from drivers.camera import formats
from gateway.camera_worker import live_frames
from gateway.camera_worker.connection_budget import ConnectionBudget
from gateway.camera_worker.live_frames import MOST_HANDED_OVER, LiveFrames
from gateway.camera_worker.reports import ReportBuffer
from gateway.camera_worker.worker import CameraWorker
from gateway.clock import SystemClock
from gateway.domain.footage import SegmentFinished, WorkerAssignment, WorkerCamera

HIGH, LOW = film(width=320, height=192), film()


@pytest.fixture
async def start(tmp_path):
    """`await start(camera)`: a worker within the test, recording it."""
    clock, reports = SystemClock(), ReportBuffer()
    budget = ConnectionBudget(path=tmp_path / "turn", monotonic=clock.monotonic, per_second=50)
    worker = CameraWorker(clock=clock, reports=reports, budget=budget)

    async def run(*cameras):
        await worker.assign(WorkerAssignment(media=str(tmp_path), cameras=cameras))
        return worker, reports

    yield run
    await worker.stop(5.0)


def camera(main: HostileCamera, low: HostileCamera | None = None) -> WorkerCamera:
    live_url = None if low is None else low.url()
    return WorkerCamera(camera_id=1, url=main.url(), live_url=live_url, segment_seconds=0.5, stall_seconds=1.0)


@asynccontextmanager
async def until(condition, seconds=10.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
        yield


async def first(live: LiveFrames, count: int) -> list:
    with live.watch() as subscription:
        found = []
        async with asyncio.timeout(10):
            async for frame in subscription.frames():
                found.append(frame)
                if len(found) == count:
                    break
        return found


async def test_without_a_stream_of_their_own_viewers_get_what_is_recorded(start):
    async with HostileCamera(Script(film=HIGH)) as main:
        worker, _ = await start(camera(main))
        live = worker.live(1)
        frames = await first(live, 15)
        assert frames[0].keyframe
        assert {formats.told_by(frame).width for frame in frames if frame.keyframe} == {320}
        assert [later.pts - frames[0].pts for later in frames] == [3600 * at for at in range(15)]
        assert live.viewers == 0
        assert main.connections == 1
        assert (await first(live, 1))[0].keyframe


async def test_a_second_stream_is_read_while_somebody_watches_and_never_recorded(start, monkeypatch):
    monkeypatch.setattr(live_frames, "LINGER_SECONDS", 0.3)
    async with HostileCamera(Script(film=HIGH)) as main, HostileCamera(Script(film=LOW)) as low:
        worker, reports = await start(camera(main, low))
        live = worker.live(1)
        async with until(lambda: any(isinstance(told, SegmentFinished) for told in reports.take())):
            assert low.connections == 0
        assert live.condition is None
        one, other = await asyncio.gather(first(live, 12), first(live, 20))
        assert {formats.told_by(frame).width for frame in [*one, *other] if frame.keyframe} == {160}
        assert low.connections == 1
        assert live.condition == "recording"
        await first(live, 3)
        assert low.connections == 1
        async with until(lambda: not low.sessions):
            assert live.condition is None
        await first(live, 1)
        assert low.connections == 2
        seen = []
        async with until(
            lambda: seen.extend(told for told in reports.take() if isinstance(told, SegmentFinished)) or len(seen) > 2
        ):
            assert {segment.width for segment in seen} == {320}
        assert main.connections == 1


async def test_a_second_stream_that_fails_says_why_and_comes_back(start):
    async with HostileCamera(Script(film=HIGH)) as main, HostileCamera(Script(film=LOW, most_sessions=0)) as low:
        worker, _ = await start(camera(main, low))
        live = worker.live(1)
        with live.watch() as subscription:
            async with until(lambda: live.condition == "refused"):
                assert "no more viewers" in live.detail
            low.script.most_sessions = 9
            async with asyncio.timeout(10):
                frame = await anext(subscription.frames())
            assert frame.keyframe
            assert live.detail == ""
            low.drop()
            async with until(lambda: low.connections >= 3 and live.condition == "recording"):
                pass


async def test_viewers_end_with_their_camera(start):
    async with HostileCamera(Script(film=HIGH)) as main, HostileCamera(Script(film=LOW)) as low:
        worker, _ = await start(camera(main, low))
        live = worker.live(1)
        with live.watch() as subscription:
            frames = subscription.frames()
            async with asyncio.timeout(10):
                await anext(frames)
                await start()
                assert [frame async for frame in frames][60:] == []
        assert worker.live(1) is None
        with live.watch() as late:
            assert [frame async for frame in late.frames()] == []


async def test_a_loop_that_is_late_costs_frames_up_to_a_keyframe_and_no_memory(tmp_path):
    clock = SystemClock()
    live = LiveFrames(
        camera=WorkerCamera(camera_id=1, url="rtsp://127.0.0.1:9/"),
        clock=clock,
        budget=ConnectionBudget(path=tmp_path / "turn", monotonic=clock.monotonic),
        loop=asyncio.get_running_loop(),
    )
    live.offer(LOW[0])
    with live.watch() as subscription:
        frames = [frame for _ in range(8) for frame in LOW][: MOST_HANDED_OVER + 25]
        for frame in frames:
            live.offer(frame)
        assert live.dropped == MOST_HANDED_OVER
        await asyncio.sleep(0)
        live.stop()
        seen = [frame async for frame in subscription.frames()]
        assert seen[0].keyframe
        assert len(seen) == 25
