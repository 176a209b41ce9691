"""The stopwatch of the tests: a wait counts, and load on the machine does not."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time

import pytest
from stopwatch import Stopwatch

pytestmark = [pytest.mark.long("load on the machine, in real time"), pytest.mark.alone]


async def test_what_waits_counts():
    watch = Stopwatch()
    await asyncio.sleep(0.2)  # what is measured
    assert watch.seconds() > 0.15


def test_others_that_want_the_processor_do_not_count():
    """Many more programs than there are processors, all at work beside a thread that computes for a fixed time."""
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4 * (os.cpu_count() or 1))]
    try:
        watch, began = Stopwatch(), time.monotonic()
        until = time.thread_time() + 0.3
        while time.thread_time() < until:
            pass
        assert watch.seconds() < 0.7 * (time.monotonic() - began)
        assert watch.seconds() >= 0.3 - 0.05
    finally:
        for other in others:
            other.kill()
            other.wait()
