"""Run the benchmarks of this tree over its own code and over that of another commit, interleaved, and compare.

`bench_compare.py BASE [--rounds 3] [TESTS...]`; `make bench-compare BASE=commit` calls it. A figure that is more than
10 % worse is named, and the exit code is 1. Figures with a peer are compared by their ratio to it, others as they are.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench_table import ROOT, Figure, read, table

WORSE = 1.1
_SECONDS = 3600


def checked_out(base: str) -> Path:
    """Check the commit out, and lay this tree's tests over its own: both are measured by the same benchmarks."""
    folder = ROOT / "build" / "bench-base"
    removed(folder)
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(folder), base], cwd=ROOT, check=True)
    shutil.rmtree(folder / "tests")
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    return folder


def removed(folder: Path) -> None:
    """Remove the checkout."""
    if folder.exists():
        subprocess.run(["git", "worktree", "remove", "--force", str(folder)], cwd=ROOT, check=True)


def measured(code: Path, test: str) -> dict[tuple[str, int | None], Figure]:
    """Run one benchmark over the code in a folder; return its figures, none if it does not run there."""
    noted = ROOT / "build" / "compared.jsonl"
    noted.unlink(missing_ok=True)
    words = [
        sys.executable,
        "-m",
        "pytest",
        test,
        "-q",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "-m",
        "benchmark",
    ]
    environment = os.environ | {"PYTHONPATH": str(code), "BENCH_FIGURES": str(noted)}
    done = subprocess.run(
        words, cwd=code, env=environment, timeout=_SECONDS, check=False, capture_output=True, text=True
    )
    if done.returncode and not noted.exists():
        print(f"  {test} does not run over {code.name}: {done.stdout.strip().splitlines()[-1:]}")
    return {(one.what, one.at): one for one in read(noted)} if noted.exists() else {}


def verdict(figure: Figure, ratio: float) -> str:
    """Return the verdict on a figure by its ratio to the other commit's."""
    worse = 1 / ratio if figure.more and ratio else ratio
    return "worse" if worse > WORSE else "better" if worse < 1 / WORSE else "same"


def main() -> int:
    """Compare; return 1 if anything is worse."""
    command = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    command.add_argument("base")
    command.add_argument("tests", nargs="*")
    command.add_argument("--rounds", type=int, default=3)
    asked = command.parse_args()
    tests = asked.tests or sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/benchmarks/test_*.py"))
    (ROOT / "build").mkdir(exist_ok=True)
    folder = checked_out(asked.base)
    base, own = dict[tuple[str, int | None], list[Figure]](), dict[tuple[str, int | None], list[Figure]]()
    try:
        for turn in range(asked.rounds):
            for test in tests:
                print(f"round {turn + 1}: {test}", flush=True)
                sides = [(folder, base), (ROOT, own)]
                for code, found in sides if turn % 2 == 0 else reversed(sides):  # neither is always the first
                    for name, figure in measured(code, test).items():
                        found.setdefault(name, []).append(figure)
    finally:
        removed(folder)
    rows, worse = [], 0
    for name, figures in own.items():
        if name not in base:
            continue
        ours, theirs = (median(one.judged for one in some) for some in (figures, base[name]))
        ratio = ours / theirs if theirs else 1.0
        said = verdict(figures[-1], ratio)
        worse += said == "worse"
        rows.append((figures[-1].name, f"{theirs:.4g}", f"{ours:.4g}", f"{ratio:.2f}", said))
    print(table(rows, ("what", asked.base, "this tree", "ratio", "verdict")))
    print(f"{worse} of {len(rows)} figures are worse by more than {(WORSE - 1) * 100:.0f} %")
    return 1 if worse or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
