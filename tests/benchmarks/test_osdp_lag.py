"""Lag of the event loop by an OSDP line: its panel in a thread of the gateway, and in a process of its own.

Eight readers on a line that is dead (nobody answers), slow (bytes dribble in), hung (takes no byte) or noisy (random
bytes without end). The far end is a process too, so that it costs neither side anything.
"""

import asyncio
import contextlib
import os
import secrets
import subprocess
import sys
import threading
import time
import tty

import pytest

from drivers.link import LinkSpec
from drivers.osdp.channel import LineChannel, open_line
from drivers.osdp.line import OsdpLine
from drivers.osdp.messages import ReaderSetup, Setup
from drivers.osdp.panel import Panel

SECONDS = 5.0
READERS = 8
LIMIT_MS = 5.0

FAR_END = """
import os, sys, time
line, manner = int(sys.argv[1]), sys.argv[2]
os.set_blocking(line, False)
while True:
    time.sleep(0.05 if manner in ("dead", "hung") else 0.002)
    try:
        if manner != "hung":
            os.read(line, 4096)
    except OSError:
        pass
    try:
        if manner == "noisy":
            os.write(line, os.urandom(200))
        elif manner == "slow":
            os.write(line, b"S")
    except OSError:
        pass
"""


@contextlib.contextmanager
def unheard():
    """libosdp's logger writes to the error stream by itself."""
    kept, silence = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(silence)


def turn_in_thread(setup, stop):
    line = open_line(setup)
    panel = Panel(setup=setup, channel=LineChannel(line))
    while not stop.wait(0.01):
        panel.turn()
    line.close()


async def lags():
    """Milliseconds that a timer of 1 ms comes late, sorted."""
    found = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        found.append(1000 * (time.perf_counter() - before - 0.001))
    return sorted(found)


async def lags_beside(where, spec, keys):
    setup = Setup(
        url=spec.url,
        baud=9600,
        parity="none",
        stop_bits=1,
        readers=tuple(ReaderSetup(address=address, key=key.hex()) for address, key in keys.items()),
    )
    if where == "nothing":
        return await lags()
    if where == "thread":
        stop = threading.Event()
        thread = threading.Thread(target=turn_in_thread, args=(setup, stop))
        thread.start()
        await asyncio.sleep(0.5)
        found = await lags()
        stop.set()
        await asyncio.to_thread(thread.join)
        return found
    async with asyncio.TaskGroup() as group:
        running = group.create_task(OsdpLine(name="bench", spec=spec, keys=keys).run())
        await asyncio.sleep(1.0)
        found = await lags()
        running.cancel()
    return found


@pytest.mark.benchmark
@pytest.mark.timeout(150)
async def test_lag_of_the_loop_beside_an_osdp_line(tmp_path):
    keys = {address: secrets.token_bytes(16) for address in range(READERS)}
    print()
    own = added = 0.0
    for manner in ("dead", "slow", "hung", "noisy"):
        for where in ("nothing", "thread", "process"):
            far, near = os.openpty()
            tty.setraw(near)
            far_end = subprocess.Popen([sys.executable, "-c", FAR_END, str(far), manner], pass_fds=[far])
            os.close(far)
            try:
                with unheard():
                    found = await lags_beside(where, LinkSpec(f"serial:{os.ttyname(near)}"), keys)
            finally:
                far_end.kill()
                far_end.wait()
                os.close(near)
            p50, p99, p999 = (found[int(len(found) * share)] for share in (0.5, 0.99, 0.999))
            print(
                f"{manner:>6} line, beside {where:<8}: lag p50 {p50:6.3f}  p99 {p99:6.3f}  p99.9 {p999:6.3f}"
                f"  max {found[-1]:6.3f} ms  over 5 ms: {sum(lag > LIMIT_MS for lag in found)} of {len(found)}"
            )
            if where == "nothing":
                own = p99
            elif where == "process":
                added = max(added, p99 - own)
    assert added < LIMIT_MS, "beyond what the machine itself does"
