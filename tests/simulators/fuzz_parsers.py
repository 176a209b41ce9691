"""Feed each parser a million inputs, guided by the branches they reach: `python tests/simulators/fuzz_parsers.py`.

Needs atheris, which `make fuzz-parsers` installs beside the project. Each parser has a process of its own. It ends at
the first input that breaks the parser, that takes it longer than 50 ms, or by which the process has grown too much. The
input is then in `build/fuzz/faults`, and belongs into `tests/corpus` once the fault is mended. What was learnt is kept
in `build/fuzz` for the next run.

To watch branches takes a parser five times as long. `--unguided` leaves that out: it changes what guided runs learnt.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import atheris

_UNGUIDED = "--unguided"

with nullcontext() if _UNGUIDED in sys.argv else atheris.instrument_imports(include=["drivers", "gateway"]):
    from parsers import PARSERS, Parser

_ROOT = Path(__file__).resolve().parents[2]
_KEPT = _ROOT / "build" / "fuzz"
_GROWTH_MEGABYTES = 100
_WARM = 2_000
_SLOW_TIMES = 3
"""So often an input must be slow in a row: the machine may have been busy."""

_HUNG = 20
"""Seconds of the processor for one input. The fuzzer itself counts by the clock, also while the process is paused."""
_HUNG_AND_PAUSED = 900


class TooSlow(Exception):
    """An input took too long."""


class Grown(Exception):
    """The process has grown."""


def fuzz(parser: Parser, inputs: int) -> None:
    """Feed one parser; never returns. Its process fails at the first fault."""
    fed, begun_with = 0, 0

    def hung(*_: object) -> None:
        raise TooSlow(f"more than {_HUNG} s")

    def one(data: bytes) -> None:
        nonlocal fed, begun_with
        fed += 1
        signal.setitimer(signal.ITIMER_PROF, _HUNG)
        taken = min(_time_of(parser.feed, data, parser.seconds))
        if taken > parser.seconds:
            raise TooSlow(f"{taken * 1000:.0f} ms")
        if fed == _WARM:
            begun_with = _resident()
        elif fed > _WARM and fed % 1000 == 0 and _resident() - begun_with > _GROWTH_MEGABYTES * 1_000_000:
            raise Grown(f"by {(_resident() - begun_with) / 1e6:.0f} MB in {fed} inputs")

    learnt = _KEPT / "learnt" / parser.name
    seeds = _KEPT / "seeds" / parser.name
    faults = _KEPT / "faults"
    for folder in (learnt, seeds, faults):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(parser.seeds):
        (seeds / str(number)).write_bytes(seed)
    kept = _ROOT / "tests" / "corpus" / parser.name
    folders = [str(folder) for folder in (learnt, seeds, kept) if folder.is_dir()]
    limits = [f"-runs={inputs}", f"-max_len={parser.longest}", "-rss_limit_mb=1024", f"-timeout={_HUNG_AND_PAUSED}"]
    signal.signal(signal.SIGPROF, hung)
    if _UNGUIDED in sys.argv:
        limits.append("-keep_seed=1")
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={faults}/{parser.name}-", *folders], one)
    atheris.Fuzz()


def _time_of(feed: Callable[[bytes], None], data: bytes, limit: float) -> list[float]:
    times: list[float] = []
    while len(times) < _SLOW_TIMES and (not times or times[-1] > limit):
        begun = time.thread_time()
        feed(data)
        times.append(time.thread_time() - begun)
    return times


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def told(parser: Parser, inputs: int, seconds: float) -> bool:
    """Feed a parser in a process of its own and tell; returns whether it is good."""
    said = _KEPT / "said" / f"{parser.name}.txt"
    said.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        with said.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        fuzz(parser, inputs)
    ended, _, _ = select.select([os.pidfd_open(child)], [], [], seconds)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, code = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(code) if ended else None
    text = said.read_text(errors="replace")
    fed = max((int(number) for number in re.findall(r"^#(\d+)", text, re.MULTILINE)), default=0)
    end = "time is over" if status is None else "FAULT" if status else "good"
    print(f"{parser.name}: {fed} inputs in {time.monotonic() - begun:.0f} s, {end}", flush=True)
    if status:
        print(text[-3000:], flush=True)
    return not status


def main() -> None:
    """Feed all parsers, one after another; ends with 1 when one has a fault."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--inputs", type=int, default=1_000_000)
    command.add_argument("--seconds", type=float, default=3600, help="the longest for one parser")
    command.add_argument(_UNGUIDED, action="store_true", help="feed what was learnt, changed, and watch no branches")
    command.add_argument("--only", nargs="*", help="these parsers")
    asked = command.parse_args()
    good = [told(one, asked.inputs, asked.seconds) for one in PARSERS if not asked.only or one.name in asked.only]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
