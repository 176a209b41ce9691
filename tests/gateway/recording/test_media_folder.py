"""The media folder is asked for in a thread that may hang with its disk."""

from __future__ import annotations

import asyncio
import threading

import pytest
from waiting import until

from gateway.recording.media_files import MediaFolder


@pytest.fixture
def disk():
    """A disk whose answers wait for `goes_on`."""

    class Disk:
        def __init__(self):
            self.goes_on = threading.Event()
            self.asked = 0
            self.fault = ""

        def ask(self) -> str:
            self.asked += 1
            self.goes_on.wait(20)
            return self.fault

    disk = Disk()
    yield disk
    disk.goes_on.set()


async def test_a_disk_that_hangs_holds_one_thread_and_is_used_again_when_it_answers(disk):
    opened, changes = [], []

    async def reopen() -> str:
        opened.append(folder.fault)
        return "" if len(opened) > 1 else "not yet"

    folder = MediaFolder(
        fault=disk.ask, reopen=reopen, changed=lambda: changes.append(folder.fault), look_seconds=0.01,
        answer_seconds=1.0,
    )  # fmt: skip
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(folder.run())
        await until(lambda: not folder.answers)
        await asyncio.sleep(0.2)  # some looks are due meanwhile
        assert disk.asked == 1
        disk.goes_on.set()
        await until(lambda: not folder.fault)
        disk.fault = "it is read-only"
        await until(lambda: folder.fault == "it is read-only")
        assert folder.answers
        watching.cancel()
    assert opened == ["the media folder's disk does not answer", "not yet"]
    assert changes == ["the media folder's disk does not answer", "not yet", "", "it is read-only"]


async def test_all_who_look_at_once_share_one_answer_and_one_who_leaves_changes_nothing(disk):
    folder = MediaFolder(fault=disk.ask, reopen=no_change, changed=lambda: None)
    disk.fault = "it is read-only"
    async with asyncio.TaskGroup() as group:
        looking = [group.create_task(folder.look()) for _ in range(20)]
        await asyncio.sleep(0)
        looking[0].cancel()
        disk.goes_on.set()
    assert {task.result() for task in looking[1:]} == {"it is read-only"}
    assert disk.asked == 1
    disk.fault = ""
    assert await folder.look() == ""


async def no_change() -> str:
    return ""
