"""Two hundred sites at one central that was away for an hour and comes back: `make herd SITES=200`.

The sites are real stores, pulls and outboxes, in processes of their own. It prints how many requests a second central
got, with the manners of many sites (a pace, and a wait of up to a minute before what waited goes) and without them.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from pathlib import Path

from herd_sites import PASSWORD, USERNAME

from gateway.runtime.clock import SystemClock
from simulation.far_ends.central import Central, CentralAccount, seed_site

PROCESSES = 2
CARDS = 100
AWAY_SECONDS = 5.0
LONGEST = 300.0


async def started(url: str, options: argparse.Namespace, *, rude: bool) -> list[asyncio.subprocess.Process]:
    words = [url, "--sites", str(options.sites // PROCESSES), "--waiting", str(options.waiting)]
    program = str(Path(__file__).with_name("herd_sites.py"))
    return [
        await asyncio.create_subprocess_exec(
            sys.executable, program, *words, *(["--rude"] if rude else []),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip


async def all_say(processes: list[asyncio.subprocess.Process], word: str) -> None:
    async with asyncio.timeout(LONGEST):
        for process in processes:
            assert process.stdout is not None
            said = (await process.stdout.readline()).decode().strip()
            assert said == word, said


async def sampled(central: Central, seconds: Counter[int], begin: float) -> None:
    """Count requests by the second, until cancelled."""
    last = central.answered
    while True:
        await asyncio.sleep(0.05)  # the grain of the samples
        seconds[int(time.monotonic() - begin)] += central.answered - last
        last = central.answered


async def herd(options: argparse.Namespace, *, rude: bool) -> None:
    clock = SystemClock()
    central = Central(clock=clock, accounts=(CentralAccount(USERNAME, PASSWORD),), unchanged_status=304)
    seed_site(central.tables, now=clock.wall(), devices={101: "Gate"}, cameras={201: "Entry"}, cards=CARDS)
    await central.start()
    processes = await started(central.url, options, rude=rude)
    try:
        await all_say(processes, "ready")
        await central.stop()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"away\n")
        await all_say(processes, "waiting")
        await asyncio.sleep(AWAY_SECONDS)  # the sites try again meanwhile
        held = len(central.camera_events)
        await central.start()
        begin, seconds = time.monotonic(), Counter[int]()
        counting = asyncio.get_running_loop().create_task(sampled(central, seconds, begin))
        await all_say(processes, "sent")
        took = time.monotonic() - begin
        counting.cancel()
        came = len(central.camera_events) - held
        assert came == options.sites // PROCESSES * PROCESSES * options.waiting, came
    finally:
        for process in processes:
            process.kill()
            await process.wait()
        await central.stop()
    by_second = [seconds[second] for second in range(int(took) + 1)]
    print(
        f"{'without manners' if rude else 'with manners'}: {sum(by_second)} requests in {took:.0f} s after the return"
    )
    print(f"  peak {max(by_second)} in a second; by the second: {' '.join(map(str, by_second))}", flush=True)


async def main(options: argparse.Namespace) -> None:
    for rude in (True, False):
        await herd(options, rude=rude)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=200)
    parser.add_argument("--waiting", type=int, default=20, help="records that wait at each site")
    asyncio.run(main(parser.parse_args()))
