"""Live streams of viewers, the recorded one or one of their own; the recording never shows the latter."""

from __future__ import annotations

import asyncio

import pytest
from hostile_camera import HostileCamera, Script, film
from waiting import until

from drivers.rtsp import formats
from gateway.camera_worker import worker as workers
from gateway.camera_worker.connection_budget import ConnectionBudget
from gateway.camera_worker.reports import ReportBuffer
from gateway.camera_worker.worker import AssignedCameras
from gateway.domain.footage import SegmentFinished, WorkerAssignment, WorkerCamera
from gateway.runtime.clock import SystemClock

HIGH, LOW = film(width=320, height=192, gop=5), film()


@pytest.fixture
async def start(tmp_path):
    """`await start(camera)`: a worker within the test, recording it."""
    clock, reports = SystemClock(), ReportBuffer()
    budget = ConnectionBudget(path=tmp_path / "turn", monotonic=clock.monotonic, per_second=50)
    worker = AssignedCameras(clock=clock, reports=reports, budget=budget)

    async def run(*cameras):
        await worker.assign(WorkerAssignment(media=str(tmp_path), cameras=cameras))
        return worker, reports

    yield run
    await worker.stop(5.0)


def camera(main: HostileCamera, low: HostileCamera | None = None) -> WorkerCamera:
    live_url = None if low is None else low.url()
    return WorkerCamera(camera_id=1, url=main.url(), live_url=live_url, segment_seconds=0.5, stall_seconds=1.0)


async def first(feed, count: int) -> list:
    """The first frames that a viewer gets."""

    async def begun():
        assert await feed.awake() == ""
        return feed.group()

    await until(begun)
    async with asyncio.timeout(30):
        with feed.watch() as view:
            return [(await view.next()).frame for _ in range(count)]


def widths(frames) -> set[int]:
    return {formats.told_by(frame).width for frame in frames if frame.keyframe}


async def test_without_a_stream_of_their_own_viewers_get_what_is_recorded(start):
    async with HostileCamera(Script(film=HIGH)) as main:
        worker, _ = await start(camera(main))
        frames = await first(worker.live(1), 15)
        assert widths(frames) == {320}
        assert [later.pts - frames[0].pts for later in frames] == [3600 * at for at in range(15)]
        assert main.connections == 1


async def test_a_second_stream_is_read_while_somebody_watches_and_never_recorded(start, monkeypatch):
    monkeypatch.setattr(workers, "LINGER_SECONDS", 1.0)
    async with HostileCamera(Script(film=HIGH)) as main, HostileCamera(Script(film=LOW)) as low:
        worker, reports = await start(camera(main, low))
        feed = worker.live(1)
        await until(lambda: any(isinstance(told, SegmentFinished) for told in reports.take()))
        assert low.connections == 0
        one, other = await asyncio.gather(first(feed, 12), first(feed, 30))
        assert widths([*one, *other]) == {160}
        assert low.connections == 1
        await until(lambda: not low.sessions)  # it was left in peace
        assert feed.group() == ()
        assert widths(await first(feed, 1)) == {160}
        assert low.connections == 2
        seen = []
        await until(
            lambda: seen.extend(told for told in reports.take() if isinstance(told, SegmentFinished)) or len(seen) > 1
        )
        assert {segment.width for segment in seen} == {320}
        assert main.connections == 1


async def test_what_a_second_stream_taught_is_known_to_its_next_viewers(start, monkeypatch):
    monkeypatch.setattr(workers, "LINGER_SECONDS", 1.0)
    asked = Script(film=LOW, answers=lambda request: "close" if request.method == "OPTIONS" else None)
    async with HostileCamera(Script(film=HIGH)) as main, HostileCamera(asked) as low:
        worker, _ = await start(camera(main, low))
        for _ in range(2):
            assert await first(worker.live(1), 3)
            await until(lambda: not low.sessions)
        assert low.requests.count("OPTIONS") == 1


async def test_a_second_stream_that_fails_says_why_and_comes_back(start):
    async with HostileCamera(Script(film=HIGH)) as main, HostileCamera(Script(film=LOW, most_sessions=0)) as low:
        worker, _ = await start(camera(main, low))
        feed = worker.live(1)
        assert "at its live_url the camera serves no more viewers" in await feed.awake()
        low.script.most_sessions = 9
        await until(feed.group)
        assert await feed.awake() == ""
        with feed.watch() as view:
            low.drop()
            await until(lambda: low.connections >= 3 and feed.group())
            view.restart()
            async with asyncio.timeout(30):
                assert (await view.next()).frame.keyframe


async def test_viewers_end_with_their_camera(start):
    async with HostileCamera(Script(film=HIGH)) as main, HostileCamera(Script(film=LOW)) as low:
        worker, _ = await start(camera(main, low))
        feed = worker.live(1)
        await first(feed, 1)
        with feed.watch() as view:
            await start()
            async with asyncio.timeout(30):
                while await view.next() is not None:
                    pass
        assert worker.live(1) is None
        assert await feed.awake() == ""
        await asyncio.sleep(0)
        assert low.connections == 1
