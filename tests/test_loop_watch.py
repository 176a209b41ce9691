"""The watch over callbacks: what holds up the loop is seen, and load on the machine is not taken for it."""

from __future__ import annotations

import asyncio
import os
import threading
import time

from loop_watch import watch_callbacks


async def test_what_computes_is_seen_at_once():
    with watch_callbacks(limit=0.005) as watched:
        await asyncio.sleep(0)
        until = time.thread_time() + 0.01
        while time.thread_time() < until:
            pass
        await asyncio.sleep(0)
    assert watched.worst().seconds > 0.009
    assert "test_what_computes_is_seen_at_once" in watched.worst().what


async def test_what_waits_is_seen_when_it_does_so_again_or_for_long():
    with watch_callbacks(limit=0.005) as watched:
        await asyncio.sleep(0)
        threading.Event().wait(0.01)
        await asyncio.sleep(0)
        assert watched.too_long
        assert watched.worst() is None
        threading.Event().wait(0.02)
        await asyncio.sleep(0)
        assert 0.02 <= watched.worst().seconds < 1
    with watch_callbacks(limit=0.005) as watched:
        await asyncio.sleep(0)
        threading.Event().wait(0.11)
        await asyncio.sleep(0)
    assert watched.worst() is not None


async def test_others_that_want_the_processor_do_not_count():
    """As many programs as there are processors, and one more, all at work."""
    busy = ["python3", "-c", "while True: pass"]
    others = [await asyncio.create_subprocess_exec(*busy) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        with watch_callbacks(limit=0.005) as watched:
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                await asyncio.sleep(0)
    finally:
        for other in others:
            other.kill()
            await other.wait()
    assert watched.worst() is None
