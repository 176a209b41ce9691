"""The heap of a running gateway, as far as its lanes feel it."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest
from waiting import until

from gateway.runtime.process_settings import collect_regularly

RUNNING = """
import gc, signal, sys
from pathlib import Path
from gateway.app.gateway import run

def tell(*_):
    print(gc.get_freeze_count(), len(gc.get_objects()), flush=True)

signal.signal(signal.SIGUSR1, tell)
sys.exit(run(site_path=Path("site.toml"), data=Path("data")))
"""
SITE = '[site]\nname = "Small"\n[api]\nport = 0\n'
SECONDS = 30


def read_until(process: subprocess.Popen[bytes], mark: bytes) -> None:
    """Read its log up to this."""
    assert process.stderr is not None
    deadline, heard = time.monotonic() + SECONDS, b""
    while mark not in heard:
        assert time.monotonic() < deadline, heard
        if select.select([process.stderr], [], [], 1)[0]:
            read = os.read(process.stderr.fileno(), 65536)
            assert read, heard
            heard += read


@pytest.mark.long("a whole gateway in a process of its own")
def test_garbage_is_not_looked_for_among_what_the_program_is_made_of(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(SITE)
    words = [sys.executable, "-c", RUNNING]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            read_until(process, b"interface_served")
            process.send_signal(signal.SIGUSR1)
            assert select.select([process.stdout], [], [], SECONDS)[0]
            aside, looked_through = map(int, process.stdout.readline().split())
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS)
    # All of them are looked through, every lane waiting, as often as a quarter as many new ones live for a while.
    assert looked_through * 4 < aside, (looked_through, aside)
    assert process.returncode == 0


async def test_garbage_is_collected_without_an_allocation_that_starts_it() -> None:
    class Knot:
        def __init__(self) -> None:
            self.itself = self

    usual = gc.get_threshold()
    gc.set_threshold(1_000_000)
    try:
        async with asyncio.TaskGroup() as group:
            collecting = group.create_task(collect_regularly())
            left = weakref.ref(Knot())
            assert left() is not None
            await until(lambda: left() is None, within=SECONDS)
            collecting.cancel()
    finally:
        gc.set_threshold(*usual)
