"""Children of the program: they start without holding up the loop, and none is left behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from waiting import until

from drivers.child_process import start_child

PIPE = subprocess.PIPE
ECHO = (sys.executable, "-c", "import sys; print(sys.stdin.readline(), end=''); print('bad', file=sys.stderr); exit(3)")
ENDLESS = (sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)")

TIED = (
    sys.executable,
    "-c",
    (
        "import ctypes, sys; ctypes.CDLL(None).prctl(1, 15); print('tied', flush=True)\n"
        "for line in sys.stdin: print(line, end='', flush=True)"
    ),
)


def threads_that_start() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("start-child")]


async def test_a_child_is_told_heard_and_its_end_is_known():
    child = await start_child(ECHO, stdin=PIPE, stdout=PIPE, stderr=PIPE, environ={"PATH": os.environ["PATH"]})
    child.stdin.write(b"hello\n")
    await child.stdin.drain()
    assert await child.stdout.read() == b"hello\n"
    assert await child.stderr.read() == b"bad\n"
    assert await child.wait() == 3
    assert child.returncode == 3
    child.kill()  # harmless afterwards
    child.close()


async def test_a_child_that_is_killed_says_by_what():
    child = await start_child(ENDLESS, stdout=PIPE)
    assert await child.stdout.readline() == b"begun\n"
    assert os.getsid(child.pid) == child.pid
    child.kill()
    assert await child.wait() == -9
    assert not Path(f"/proc/{child.pid}").exists()
    child.close()


async def test_a_child_that_does_not_end_is_not_waited_for_without_end():
    child = await start_child(ENDLESS, stdout=PIPE)
    assert await child.ended(within=0.01) is None
    child.kill()
    assert await child.ended(within=30) == -9
    assert await child.ended(within=0.0) == -9
    child.close()


async def test_a_program_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError):
        await start_child(("/nowhere/program",))


async def test_a_child_whose_end_nobody_could_see_is_not_left(monkeypatch):
    begun = []
    usual = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **how: begun.append(usual(*words, **how)) or begun[-1])
    monkeypatch.setattr(os, "pidfd_open", lambda _pid: os.open("/nowhere/pidfd", os.O_RDONLY))
    with pytest.raises(FileNotFoundError):
        await start_child(ENDLESS)
    assert begun[0].returncode == -9


async def test_a_child_that_ends_with_its_parent_does_not_end_with_the_thread_that_started_it(monkeypatch):
    """To the system that thread is the parent; here the child asks to be told of its end before that thread goes on."""
    usual = subprocess.Popen
    told = []

    def slow(*arguments, **keywords):
        started = usual(*arguments, **keywords)
        told.append(started.stdout.readline())
        return started

    monkeypatch.setattr(subprocess, "Popen", slow)
    child = await start_child(TIED, stdin=PIPE, stdout=PIPE)
    for _ in range(20):
        child.stdin.write(b"are you there?\n")
        assert await child.stdout.readline() == b"are you there?\n"
    (thread,) = threads_that_start()
    child.kill()
    assert await child.wait() == -9
    child.close()
    await until(lambda: not thread.is_alive())
    assert told == [b"tied\n"]


async def test_a_machine_without_room_for_a_thread_is_an_error_of_the_machine(monkeypatch):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(OSError, match="no room for another thread"):
        await start_child(("true",))


async def test_whoever_is_cancelled_leaves_no_child_behind(tmp_path):
    told = tmp_path / "told"
    words = ("sh", "-c", f"echo $$ > {told}.new && mv {told}.new {told}; exec sleep 600")
    async with asyncio.TaskGroup() as group:
        starting = group.create_task(start_child(words))
        while not threads_that_start():
            await asyncio.sleep(0)
        starting.cancel()
    assert starting.cancelled()
    await until(lambda: not threads_that_start())
    if told.exists():  # it came as far as that before it was killed
        assert not Path(f"/proc/{told.read_text().strip()}").exists()


async def test_the_loop_goes_on_while_the_system_is_slow_to_begin_a_child(monkeypatch):
    """As `vfork` on a busy machine: the thread that starts is kept, the loop is not."""
    begins, go_on = threading.Event(), threading.Event()
    usual = subprocess.Popen

    def slow(*arguments, **keywords):
        begins.set()
        assert go_on.wait(30)
        return usual(*arguments, **keywords)

    monkeypatch.setattr(subprocess, "Popen", slow)
    async with asyncio.TaskGroup() as group:
        starting = group.create_task(start_child(("true",)))
        await until(begins.is_set)
        assert not starting.done()
        go_on.set()
    assert await starting.result().wait() == 0


def test_no_child_is_begun_by_vfork():
    assert subprocess._USE_VFORK is False  # noqa: SLF001  (the switch that Python documents)
