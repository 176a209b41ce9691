"""Run `edge-gateway simulate` on many fresh seeds, some processes side by side, and report every broken promise.

Example: python tests/simulators/seed_runs.py --days 5 --lanes 4 --seeds 200
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

_SECONDS_PER_DAY_AND_LANE = 120  # a run that takes longer hangs
_LEAST_SECONDS = 600
_SHOWN_LINES = 3
_MOST_SEEDS = 10_000


@dataclass(frozen=True, slots=True)
class Campaign:
    """Equal runs that differ in their seed alone."""

    days: float
    lanes: int
    outage: bool

    def command(self, seed: int, report: Path) -> list[str]:
        """The command of one run."""
        options = ["--days", f"{self.days:g}", "--lanes", str(self.lanes), "--seed", str(seed), "--report", str(report)]
        return [sys.executable, "-m", "gateway", "simulate", *options, *(["--outage"] if self.outage else [])]

    @property
    def longest(self) -> float:
        """Seconds after which a run counts as hanging."""
        return _LEAST_SECONDS + self.days * self.lanes * _SECONDS_PER_DAY_AND_LANE


@dataclass(frozen=True, slots=True)
class Run:
    """One run and what it broke; `again` repeats it."""

    seed: int
    took: float
    broken: tuple[str, ...]
    again: str


def run_seed(campaign: Campaign, seed: int) -> Run:
    """Run one seed in a process of its own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = campaign.command(seed, report)
        again = " ".join(
            ["edge-gateway", *command[3 : command.index("--report")], *command[command.index("--report") + 2 :]]
        )
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=campaign.longest, check=False)
        except subprocess.TimeoutExpired:
            return Run(seed, time.monotonic() - began, (f"no end after {campaign.longest:.0f} s",), again)
        found = json.loads(report.read_text()) if report.exists() and report.stat().st_size else None
    broken = _broken(found) if found is not None else (f"the run failed: {ended.stderr[-2000:]}",)
    if ended.returncode and not broken:
        broken = (f"exit status {ended.returncode}: {ended.stderr[-2000:]}",)
    return Run(seed, time.monotonic() - began, broken, again)


def _broken(found: dict[str, object]) -> tuple[str, ...]:
    """The broken promises of a report, of either kind of run."""
    faults = found.get("faults")
    if isinstance(faults, list):
        return tuple(str(fault) for fault in faults)
    violations = found.get("violations")
    listed = violations if isinstance(violations, list) else []
    return tuple(f"{item['promise']}: {item['text']} (step {item['step']})" for item in listed)


def table_of(runs: Sequence[Run]) -> Table:
    """The runs that broke a promise."""
    table = Table(
        "seed",
        "broken",
        "run it again with",
        title=f"{sum(bool(run.broken) for run in runs)} of {len(runs)} runs broke a promise",
    )
    for run in sorted(runs, key=lambda one: one.seed):
        if run.broken:
            more = len(run.broken) - _SHOWN_LINES
            shown = [*run.broken[:_SHOWN_LINES], *([f"and {more} more"] if more > 0 else [])]
            table.add_row(str(run.seed), "\n".join(shown), run.again)
    return table


def main() -> int:
    """Run the seeds; the exit status is 1 when a promise was broken."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--days", type=float, default=5.0)
    options.add_argument("--lanes", type=int, default=4)
    options.add_argument("--seeds", default="20", help="how many fresh seeds, or the seeds themselves, with commas")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--outage", action="store_true", help="all days without central, then back in step")
    asked = options.parse_args()
    campaign = Campaign(asked.days, asked.lanes, asked.outage)
    console = Console(soft_wrap=True, highlight=False)
    if "," in asked.seeds:
        seeds = [int(seed) for seed in asked.seeds.split(",") if seed]
    else:
        if int(asked.seeds) > _MOST_SEEDS:
            options.error(f"--seeds {asked.seeds} are too many runs; put a comma behind a single seed")
        seeds = [random.SystemRandom().randrange(1, 1_000_000_000) for _ in range(int(asked.seeds))]
    console.print(f"{len(seeds)} seeds: {','.join(map(str, seeds))}")
    runs: list[Run] = []
    with ThreadPoolExecutor(max_workers=asked.processes) as pool:
        for number, run in enumerate(pool.map(lambda seed: run_seed(campaign, seed), seeds), start=1):
            runs.append(run)
            said = "; ".join(run.broken[:_SHOWN_LINES]) or "every promise kept"
            console.print(f"{number}/{len(seeds)} seed {run.seed}: {said} ({run.took:.0f} s)", markup=False)
    console.print(table_of(runs))
    kind = "days without central" if campaign.outage else "days"
    console.print(
        f"{len(runs)} seeds of {campaign.days:g} {kind} with {campaign.lanes} lanes: "
        f"{sum(len(run.broken) for run in runs)} violations; {sum(run.took for run in runs):.0f} s of running"
    )
    return int(any(run.broken for run in runs))


if __name__ == "__main__":
    sys.exit(main())
