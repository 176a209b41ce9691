"""Power cuts by seed: `python tests/simulators/power_cuts.py --cuts 10000`.

Real traffic of the store, the recorder, the outbox and the access log is recorded once, call by call, with
`power_cut_traffic.py`. Each cut takes a moment of it and a state in which the disk may be left then, with
`recorded_disk.py`, starts on that with the code of a real start, and compares, with `power_cut_judge.py`. When a
promise breaks, the recording is kept: `--recording FOLDER --seed N --only CUT` repeats that cut.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from power_cut_judge import Broken, Promises, judge, lose_a_page
from power_cut_traffic import CAMERA, quiet
from recorded_disk import STYLES, WRITTEN, Call, Disk, cut_points, read_calls

_HERE = Path(__file__).parent
_SPOILT_SHARE = 0.08
_BETWEEN = ("", ", and a page fails")


class NoCompiler(RuntimeError):
    """There is no C compiler for the recorder of calls."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Recorded traffic."""

    root: Path
    calls: list[Call]


@dataclass(frozen=True, slots=True)
class Cut:
    """One cut: after so many calls, in this style; `page_fails` with it."""

    number: int
    turn: int
    style: str
    page_fails: bool


def record(folder: Path, *, steps: int) -> Recording:
    """Let the traffic run below `folder` and return its calls. Raises NoCompiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NoCompiler("a C compiler is needed to record calls; install gcc")
    library, root, log = folder / "recorded_calls.so", folder / "root", folder / "calls"
    source = _HERE / "recorded_calls.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread"], check=True)
    root.mkdir()
    recorded = {"LD_PRELOAD": str(library), "RECORDED_ROOT": str(root), "RECORDED_LOG": str(log)}
    subprocess.run(
        [sys.executable, str(_HERE / "power_cut_traffic.py"), str(root), str(steps)],
        check=True,
        env={**os.environ, **recorded},
        timeout=600,
    )
    (folder / "recorded-root").write_text(str(root))
    return read_recording(folder)


def read_recording(folder: Path) -> Recording:
    """Read what was recorded below `folder`."""
    return Recording(Path((folder / "recorded-root").read_text()), read_calls(folder / "calls"))


def planned(recording: Recording, *, seed: int, numbers: Iterator[int] | range) -> list[Cut]:
    """Choose the cuts, in the order of their moments: anywhere, and right behind a promise as often."""
    points = cut_points(recording.calls)
    marks = [turn + 1 for turn, call in enumerate(recording.calls) if call.kind == WRITTEN and b'{"what"' in call.data]
    cuts = []
    for number in numbers:
        chance = random.Random(f"{seed}/{number}")
        turn = chance.choice(points if chance.random() < 0.5 else marks)
        cuts.append(Cut(number, turn, chance.choice(STYLES), chance.random() < _SPOILT_SHARE))
    return sorted(cuts, key=lambda cut: cut.turn)


def carry_out(
    recording: Recording, cuts: list[Cut], *, seed: int, work: Path, forget: Callable[[str], bool] = lambda _: False
) -> Iterator[tuple[Cut, str]]:
    """Make each cut and yield it with what it broke, "" for nothing. `forget`: see Disk."""
    disk, promises = Disk(root=recording.root, calls=recording.calls, forget=forget), Promises()
    for cut in cuts:
        disk.advance(cut.turn)
        promises.hear(disk.new_marks())
        chance = random.Random(f"{seed}/{cut.number}/state")
        shutil.rmtree(work, ignore_errors=True)
        disk.state(work, chance, cut.style)
        spoilt = cut.page_fails and lose_a_page(work, chance)
        try:
            asyncio.run(judge(work, promises, written=disk.written(f"media/{CAMERA}/"), spoilt=spoilt))
        except Broken as broken:
            yield cut, str(broken)
        else:
            yield cut, ""


def told(cut: Cut) -> str:
    """Describe a cut."""
    return f"cut {cut.number} after {cut.turn} calls, {cut.style}{_BETWEEN[cut.page_fails]}"


def _share(
    recording: Recording, seed: int, folder: Path, forget: Callable[[str], bool], part: list[Cut]
) -> list[tuple[Cut, str]]:
    quiet()
    work = folder / f"disk-{os.getpid()}"
    return list(carry_out(recording, part, seed=seed, work=work, forget=forget))


def main() -> None:
    """Record, cut, and tell; ends with 1 when a promise was broken."""
    asked = _arguments()
    numbers = range(asked.cuts) if asked.only is None else range(asked.only, asked.only + 1)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        folder, begun = Path(name), time.monotonic()
        recording = read_recording(asked.recording) if asked.recording else record(folder, steps=asked.steps)
        cuts = planned(recording, seed=asked.seed, numbers=numbers)
        print(f"seed {asked.seed}: {len(recording.calls)} calls in {time.monotonic() - begun:.0f} s", flush=True)
        size = max(1, len(cuts) // (asked.processes * 8))
        parts = [cuts[at : at + size] for at in range(0, len(cuts), size)]
        share = partial(_share, recording, asked.seed, folder, partial(_forgets, asked.forget))
        styles, broken, done = Counter[str](), 0, 0
        with ProcessPoolExecutor(asked.processes, mp_context=multiprocessing.get_context("fork")) as pool:
            for outcomes in pool.map(share, parts):
                for cut, why in outcomes:
                    styles[cut.style] += 1
                    broken += bool(why)
                    if why:
                        print(f"BROKEN {told(cut)}: {why}", flush=True)
                done += len(outcomes)
                print(f"{done} of {len(cuts)} cuts after {time.monotonic() - begun:.0f} s", flush=True)
        if broken and not asked.recording:
            _keep(folder)
    print(f"seed {asked.seed}: {done} cuts {dict(styles)}, {broken} broke a promise")
    sys.exit(1 if broken else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--steps", type=int, default=60, help="how much traffic is recorded")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--recording", type=Path, help="cut what was recorded before, in this folder")
    parser.add_argument("--only", type=int, help="this cut alone")
    parser.add_argument("--forget", default="", help="play a disk that does not flush files of this name")
    return parser.parse_args()


def _keep(folder: Path) -> None:
    kept = _HERE.parents[1] / "build" / "power-cuts"
    kept.mkdir(parents=True, exist_ok=True)
    for name in ("calls", "recorded-root"):
        shutil.copy(folder / name, kept / name)
    print(f"the recording is kept: --recording {kept}")


def _forgets(name: str, path: str) -> bool:
    return bool(name) and Path(path).match(name)


if __name__ == "__main__":
    main()
