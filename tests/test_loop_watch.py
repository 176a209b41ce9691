"""The watch over callbacks: what holds up the loop is seen, and load on the machine is not taken for it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import asynccontextmanager

import pytest
from loop_watch import Watched, watch_callbacks

pytestmark = [pytest.mark.long("load on the machine, in real time"), pytest.mark.alone]


async def _held_up(*times: float, how) -> Watched:
    with watch_callbacks(limit=0.005) as watched:
        await asyncio.sleep(0)
        for seconds in times:
            how(seconds)
            await asyncio.sleep(0)
    return watched


def _compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


@pytest.mark.parametrize("how", [_compute, _wait])
async def test_a_hold_counts_when_it_comes_again_or_is_long(how):
    once = await _held_up(0.01, how=how)
    assert once.worst() is None
    assert once.let_go().place == "test_a_hold_counts_when_it_comes_again_or_is_long"
    assert once.let_go().seconds > 0.009
    assert once.let_go().waited == (how is _wait)
    twice = await _held_up(0.01, 0.02, how=how)
    assert 0.019 <= twice.worst().seconds < 1
    assert "test_a_hold_counts" in twice.worst().what
    assert (await _held_up(0.11, how=how)).worst() is not None


@asynccontextmanager
async def _busy_machine():
    """As many programs as there are processors, and one more, all at work."""
    busy = ["python3", "-c", "while True: pass"]
    others = [await asyncio.create_subprocess_exec(*busy) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            await other.wait()


async def test_others_that_want_the_processor_do_not_count():
    async with _busy_machine():
        with watch_callbacks(limit=0.005) as watched:
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                await asyncio.sleep(0)
    assert watched.worst() is None


async def test_others_that_want_the_processor_do_not_count_while_a_thread_is_awaited():
    at_its_end = threading.Event()

    def compute_and_stay(computed: threading.Event) -> None:
        _compute(0.3)
        computed.set()
        at_its_end.wait(60)

    def wait_for_a_thread(_: float) -> None:
        computed = threading.Event()
        threading.Thread(target=compute_and_stay, args=(computed,)).start()
        computed.wait()

    async with _busy_machine():
        began = time.monotonic()
        watched = await _held_up(*[0.0] * 5, how=wait_for_a_thread)
        took = time.monotonic() - began
    at_its_end.set()
    counted = [held.seconds for held in watched.too_long if held.waited]
    assert len(counted) == 5
    assert all(seconds > 0.05 for seconds in counted)
    assert sum(counted) < 1.6 + (took - 1.6) / 2
