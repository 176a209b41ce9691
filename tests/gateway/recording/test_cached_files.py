"""Files made on request: once at a time, bounded, and whole."""

from __future__ import annotations

import asyncio
import os
import re

import pytest
from waiting import until

from gateway.domain.errors import CameraUnavailable
from gateway.recording.clips import CachedFiles, FileJobs


@pytest.fixture
async def jobs():
    jobs = FileJobs(most=4, longest_wait_seconds=1.0)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(jobs.run(), name="jobs")
        await asyncio.sleep(0)
        yield jobs
        running.cancel()


@pytest.fixture
async def cached(tmp_path, jobs):
    cached = CachedFiles(media=tmp_path, folder="clips", names=re.compile(r"\d+\.mp4"), most_bytes=250, jobs=jobs)
    await cached.open()
    return cached


async def test_a_file_is_made_once_however_many_ask(cached, jobs, tmp_path):
    made = []
    go_on = asyncio.Event()

    async def make(output):
        made.append(output)
        await go_on.wait()
        (tmp_path / output).write_bytes(b"x")

    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(cached.get("5.mp4", make)) for _ in range(5)]
        await asyncio.sleep(0)
        go_on.set()
    assert {task.result() for task in asking} == {tmp_path / "clips" / "5.mp4"}
    assert made == ["clips/5.mp4"]
    assert jobs.count == 0


async def test_a_failure_is_told_and_the_next_may_try_again(cached, tmp_path):
    async def fail(output):
        raise CameraUnavailable("gone")

    async def make(output):
        (tmp_path / output).write_bytes(b"x")

    with pytest.raises(CameraUnavailable):
        await cached.get("5.mp4", fail)
    assert (await cached.get("5.mp4", make)).read_bytes() == b"x"


async def test_what_was_used_longest_ago_goes_first(cached, tmp_path):
    async def make(output):
        (tmp_path / output).write_bytes(b"x" * 100)

    for number in (1, 2):
        path = await cached.get(f"{number}.mp4", make)
        os.utime(path, (number, number))
    made_at = (tmp_path / "clips" / "1.mp4").stat().st_mtime_ns
    used = await cached.get("1.mp4", make)
    assert used.stat().st_mtime_ns == made_at, "its ETag stays, so that a cache need not fetch it again"
    await cached.get("3.mp4", make)
    assert {path.name for path in (tmp_path / "clips").iterdir()} == {"1.mp4", "3.mp4"}


async def test_what_was_left_half_made_is_removed(cached, tmp_path):
    for name in ("1.mp4", ".2.mp4.99.tmp", "other"):
        (tmp_path / "clips" / name).write_bytes(b"x")
    await cached.open()
    assert {path.name for path in (tmp_path / "clips").iterdir()} == {"1.mp4"}


async def test_what_was_made_of_an_event_that_is_deleted_goes(cached, tmp_path):
    async def make(output):
        (tmp_path / output).write_bytes(b"clip")

    path = await cached.get("7.mp4", make)
    assert path.read_bytes() == b"clip"
    for _ in range(2):
        await cached.forget("7.mp4")
        assert not path.exists()


async def test_one_who_leaves_or_waits_too_long_takes_the_file_from_nobody(cached, jobs, tmp_path):
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def make(output):
        begun.set()
        await go_on.wait()
        (tmp_path / output).write_bytes(b"x")

    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(cached.get("5.mp4", make))
        await begun.wait()
        leaving.cancel()
        with pytest.raises(CameraUnavailable, match="still being made") as told:
            await cached.get("5.mp4", make)
    assert told.value.retry_after > 0
    assert jobs.count == 1, "it goes on without them"
    begun.clear()
    go_on.set()
    assert (await cached.get("5.mp4", make)).read_bytes() == b"x"
    assert not begun.is_set(), "it was made once"


async def test_over_capacity_callers_are_told_when_to_ask_again_and_the_queue_drains(cached, tmp_path):
    go_on = asyncio.Event()

    async def make(output):
        await go_on.wait()
        (tmp_path / output).write_bytes(b"x" * 10)

    async def ask(number):
        try:
            return await cached.get(f"{number}.mp4", make)
        except CameraUnavailable as error:
            return error

    async with asyncio.TaskGroup() as group:
        first = [group.create_task(ask(number)) for number in range(10)]
        refused = [error for error in await until_done(first, 6) if isinstance(error, CameraUnavailable)]
        go_on.set()
    assert len(refused) == 6
    assert all(error.retry_after == 5 for error in refused)
    again = [await ask(number) for number in range(10)]
    assert all(path.read_bytes() for path in again)


async def until_done(tasks, count):
    await until(lambda: sum(task.done() for task in tasks) >= count)
    return [task.result() for task in tasks if task.done()]


async def test_what_the_stop_of_recording_cuts_short_is_told(cached, jobs, tmp_path):
    begun = asyncio.Event()

    async def make(output):
        begun.set()
        await asyncio.Event().wait()

    async def ask():
        with pytest.raises(CameraUnavailable, match="stopping"):
            await cached.get("5.mp4", make)

    async with asyncio.TaskGroup() as group:
        group.create_task(ask())
        await begun.wait()
        next(task for task in asyncio.all_tasks() if task.get_name() == "jobs").cancel()
    with pytest.raises(CameraUnavailable, match="not ready"):
        await cached.get("5.mp4", make)
