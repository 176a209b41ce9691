"""The processes that make clips and thumbnails: begun when there is work, ended when there is none."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading

import pytest
from processes import children_of, is_a_cutter
from waiting import until

from gateway.camera_worker.cut_orders import MediaMissing
from gateway.camera_worker.cutters import CutterLost, Cutters
from gateway.domain.footage import TakeThumbnail

JOB = TakeThumbnail(segments=("1/2026010100/1_1.ts",), output="t.jpg")


async def test_a_cutter_that_nobody_needs_any_more_ends(tmp_path):
    cutters = Cutters(idle_seconds=0.0)
    with pytest.raises(MediaMissing):
        await cutters.make(tmp_path, JOB)
    await until(lambda: not any(is_a_cutter(pid) for pid in children_of(os.getpid())))
    await cutters.end(10.0)


async def test_a_cutter_that_died_while_nobody_needed_it_is_replaced(tmp_path):
    cutters = Cutters()
    with pytest.raises(MediaMissing):
        await cutters.make(tmp_path, JOB)
    (cutter,) = filter(is_a_cutter, children_of(os.getpid()))
    os.kill(cutter, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # its end was taken; that is news to the loop all the same
        os.waitid(os.P_PID, cutter, os.WEXITED | os.WNOWAIT)
    with pytest.raises(MediaMissing):
        await cutters.make(tmp_path, JOB)
    await cutters.end(10.0)


async def test_a_new_cutter_that_does_not_begin_is_told_and_awaited_at_the_end(tmp_path, monkeypatch):
    started = []
    usual = subprocess.Popen

    def noted(*arguments, **keywords):
        started.append(usual(*arguments, **keywords))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    monkeypatch.setattr(sys, "executable", "/bin/true")
    cutters = Cutters()
    with pytest.raises(CutterLost, match="before it began"):
        await cutters.make(tmp_path, JOB)
    await cutters.end(10.0)
    (cutter,) = started
    assert cutter.returncode is not None


async def test_a_machine_that_starts_no_cutter_is_told_apart_from_a_disk_that_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(CutterLost, match="can be started: No such file"):
        await Cutters().make(tmp_path, JOB)


async def test_cameras_are_recorded_while_the_system_is_slow_to_begin_a_cutter(tmp_path, monkeypatch):
    """A loop that stands still takes no packets from any camera of the worker."""
    begins, go_on = threading.Event(), threading.Event()
    usual = subprocess.Popen

    def slow(*arguments, **keywords):
        begins.set()
        assert go_on.wait(30)
        return usual(*arguments, **keywords)

    monkeypatch.setattr(subprocess, "Popen", slow)
    cutters = Cutters()
    async with asyncio.TaskGroup() as group:
        making = group.create_task(_missing(cutters.make(tmp_path, JOB)))
        await until(begins.is_set)
        assert not making.done()
        go_on.set()
    await cutters.end(10.0)


async def _missing(made):
    with pytest.raises(MediaMissing):
        await made
