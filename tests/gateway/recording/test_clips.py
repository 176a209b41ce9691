"""Files made on request: once at a time, bounded, and whole."""

from __future__ import annotations

import asyncio
import os
import re

import pytest

from gateway.domain.errors import CameraUnavailable
from gateway.recording.clips import KeptFiles


@pytest.fixture
def kept(tmp_path):
    return KeptFiles(media=tmp_path, folder="clips", names=re.compile(r"\d+\.mp4"), most_bytes=250)


async def test_a_file_is_made_once_however_many_ask(kept, tmp_path):
    await kept.open()
    made = []
    go_on = asyncio.Event()

    async def make(output):
        made.append(output)
        await go_on.wait()
        (tmp_path / output).write_bytes(b"x")

    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(kept.get("5.mp4", make)) for _ in range(5)]
        await asyncio.sleep(0)
        go_on.set()
    assert {task.result() for task in asking} == {tmp_path / "clips" / "5.mp4"}
    assert made == ["clips/5.mp4"]
    assert kept._making == {}


async def test_a_failure_is_told_and_the_next_may_try_again(kept, tmp_path):
    await kept.open()

    async def fail(output):
        raise CameraUnavailable("gone")

    async def make(output):
        (tmp_path / output).write_bytes(b"x")

    with pytest.raises(CameraUnavailable):
        await kept.get("5.mp4", fail)
    assert (await kept.get("5.mp4", make)).read_bytes() == b"x"


async def test_what_was_used_longest_ago_goes_first(kept, tmp_path):
    await kept.open()

    async def make(output):
        (tmp_path / output).write_bytes(b"x" * 100)

    for number in (1, 2):
        path = await kept.get(f"{number}.mp4", make)
        os.utime(path, (number, number))
    made_at = (tmp_path / "clips" / "1.mp4").stat().st_mtime_ns
    used = await kept.get("1.mp4", make)
    assert used.stat().st_mtime_ns == made_at, "its ETag stays, so that a cache need not fetch it again"
    await kept.get("3.mp4", make)
    assert {path.name for path in (tmp_path / "clips").iterdir()} == {"1.mp4", "3.mp4"}


async def test_what_was_left_half_made_is_removed(kept, tmp_path):
    (tmp_path / "clips").mkdir()
    for name in ("1.mp4", ".2.mp4.99.tmp", "other"):
        (tmp_path / "clips" / name).write_bytes(b"x")
    await kept.open()
    assert {path.name for path in (tmp_path / "clips").iterdir()} == {"1.mp4"}


async def test_what_was_made_of_an_event_that_is_deleted_goes(kept, tmp_path):
    await kept.open()

    async def make(output):
        (tmp_path / output).write_bytes(b"clip")

    path = await kept.get("7.mp4", make)
    assert path.read_bytes() == b"clip"
    for _ in range(2):
        await kept.forget("7.mp4")
        assert not path.exists()
