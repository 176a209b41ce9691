"""Break one guard of the product at a time and see that the simulation, or a named test, finds it.

The table is `mutation_table.py`. Each mutation is planted in a copy of the source. Status 1: a mutation was not found.
Status 2: a mutation's text is not in the source exactly once, a seed breaks a promise without any mutation, a
simulation crashed, or the tests of a mutation could not be run.

Example: python tests/simulators/mutations.py --only "fire input"
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mutation_table import MUTATIONS, Mutation
from rich.console import Console
from rich.markup import escape
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("gateway", "drivers", "simulation", "config", "tests", "pyproject.toml")
_SEEDS = (11, 12, 13)
_LONGEST = 900.0
_TESTS_FAILED = 1
_NO_TESTS = 5  # of that suite
"""The exit status of pytest when tests failed. All others but 0 say that it could not run them."""
_ONE_RUN = """
import json, sys
from simulation.virtual_site import Plan, simulate
days, lanes, seed = json.loads(sys.argv[1])
report = simulate(Plan(days=days, lanes=lanes, seed=seed), enough=lambda witness: bool(witness.violated))
first = report.violations[0] if report.violations else None
print(json.dumps(first and [first.promise, first.text, first.at]))
"""


class NotSound(Exception):
    """A seed breaks a promise without any mutation: what is found on it proves nothing."""


class DoesNotApply(Exception):
    """The source has changed: a mutation's text is not there once."""


class DidNotRun(Exception):
    """A simulation crashed, or tests could not be run: that shows nothing about the mutation."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one mutation: how often it was found of how many tries, and by what first."""

    mutation: Mutation
    found: int
    tries: int
    by: str
    took: float


def mutated(mutation: Mutation, source: str) -> str:
    """The source with the mutation. Raises DoesNotApply."""
    if source.count(mutation.old) != 1:
        raise DoesNotApply(f"{mutation.name}: its text is {source.count(mutation.old)} times in {mutation.path}")
    return source.replace(mutation.old, mutation.new)


def check_table(mutations: Sequence[Mutation] = MUTATIONS) -> None:
    """Raise DoesNotApply for the first mutation that cannot be planted any more."""
    for mutation in mutations:
        mutated(mutation, (ROOT / mutation.path).read_text())
        for test in mutation.tests:
            if not (ROOT / test).exists():
                raise DoesNotApply(f"{mutation.name}: there is no {test}")


def check_seeds(*, days: float, lanes: int, seeds: Sequence[int], processes: int) -> None:
    """Raise NotSound for the first seed on which the source as it is breaks a promise; DidNotRun if that crashes."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        folder = Path(name)
        copy_source(folder)
        with ThreadPoolExecutor(max_workers=processes) as pool:
            for by in pool.map(lambda seed: _by_simulation(folder, days, lanes, seed), seeds):
                if by:
                    raise NotSound(by)


def copy_source(folder: Path) -> None:
    """Copy the source into a folder."""
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, copy_function=os.link, ignore=_not_needed, symlinks=True)
        else:
            shutil.copy2(source, folder / name)


def plant(mutation: Mutation, folder: Path) -> None:
    """Copy the source into a folder, with the mutation."""
    copy_source(folder)
    place = folder / mutation.path
    text = mutated(mutation, place.read_text())
    place.unlink()
    place.write_text(text)


def _not_needed(_folder: str, names: list[str]) -> set[str]:
    return {"__pycache__", "node_modules"}.intersection(names)


def try_mutation(mutation: Mutation, *, days: float, lanes: int, seeds: Sequence[int], all_seeds: bool) -> Verdict:
    """Plant a mutation and look for it. Raises DidNotRun."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        folder = Path(name)
        plant(mutation, folder)
        if mutation.tests:
            by = _by_tests(mutation, folder)
            return Verdict(mutation, int(bool(by)), 1, by, time.monotonic() - began)
        found, tries, first = 0, 0, ""
        for seed in seeds:
            tries += 1
            by = _by_simulation(folder, days, lanes, seed)
            found += bool(by)
            first = first or by
            if found and not all_seeds:
                break
    return Verdict(mutation, found, tries, first, time.monotonic() - began)


def _by_simulation(folder: Path, days: float, lanes: int, seed: int) -> str:
    command = [sys.executable, "-c", _ONE_RUN, json.dumps([days, lanes, seed])]
    ended = _run(command, folder)
    if ended is None:
        return f"seed {seed}: no end"
    if ended.returncode:
        raise DidNotRun(f"the simulation of seed {seed} ended with {ended.returncode}: {_last_line(ended.stderr)}")
    first = json.loads(ended.stdout)
    return f"seed {seed}, day {first[2] / 86_400:.1f}: {first[0]}: {first[1]}" if first else ""


def _by_tests(mutation: Mutation, folder: Path) -> str:
    """Return the test that finds it: one of the fast suite, or else one of the long suite, which is said."""
    if found := _by_suite("not benchmark and not long", mutation, folder):
        return found
    found = _by_suite("long", mutation, folder)
    return found and f"long suite: {found}"


def _by_suite(markers: str, mutation: Mutation, folder: Path) -> str:
    runner = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", markers]
    command = [*runner, *mutation.tests]
    ended = _run(command, folder)
    if ended is None:
        return "a test without an end"
    # A line without `::` is a module that could not be imported: `-x` ends that with 1 too.
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR")) and "::" in line]
    if ended.returncode in (0, _NO_TESTS):
        return ""
    if ended.returncode != _TESTS_FAILED or not failed:
        raise DidNotRun(f"pytest ended with {ended.returncode}: {_last_line(ended.stdout + ended.stderr)}")
    return failed[0]


def _last_line(output: str) -> str:
    return next((line for line in reversed(output.splitlines()) if line.strip()), "no output")


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str] | None:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return None


def table_of(verdicts: Sequence[Verdict]) -> Table:
    """Every mutation and what found it."""
    table = Table(
        "promise",
        "mutation",
        "found",
        "by",
        "s",
        title=f"{sum(bool(v.found) for v in verdicts)} of {len(verdicts)} found"
        f", {sum(v.by.startswith('long suite') for v in verdicts)} of them by the long suite alone",
    )
    for verdict in sorted(verdicts, key=lambda one: (one.mutation.promise, one.mutation.name)):
        found = f"{verdict.found} of {verdict.tries}" if verdict.found else "[red]no[/]"
        table.add_row(
            str(verdict.mutation.promise), verdict.mutation.name, found, escape(verdict.by[:110]), f"{verdict.took:.0f}"
        )
    return table


def main() -> int:
    """Try mutations; see the module for the exit status."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="mutations whose name, path or promise has this")
    options.add_argument("--days", type=float, default=3.0)
    options.add_argument("--lanes", type=int, default=4)
    options.add_argument("--seeds", default=",".join(map(str, _SEEDS)))
    options.add_argument("--all-seeds", action="store_true", help="try every seed, found or not")
    options.add_argument("--processes", type=int, default=2)
    asked = options.parse_args()
    chosen = [one for one in MUTATIONS if asked.only in (str(one.promise), one.path) or asked.only in one.name]
    console = Console(width=200, highlight=False)
    try:
        check_table()
    except DoesNotApply as error:
        console.print(f"[red]a mutation no longer applies:[/] {error}")
        return 2
    seeds = [int(seed) for seed in asked.seeds.split(",")]
    try:
        if not all(mutation.tests for mutation in chosen):
            check_seeds(days=asked.days, lanes=asked.lanes, seeds=seeds, processes=asked.processes)
    except NotSound as error:
        console.print(f"[red]a promise is broken without any mutation:[/] {error}")
        return 2
    except DidNotRun as error:
        console.print(f"[red]the source could not be tried without any mutation:[/] {escape(str(error))}")
        return 2
    verdicts: list[Verdict] = []
    did_not_run: list[str] = []

    def attempt(mutation: Mutation) -> Verdict | None:
        try:
            return try_mutation(mutation, days=asked.days, lanes=asked.lanes, seeds=seeds, all_seeds=asked.all_seeds)
        except DidNotRun as error:
            did_not_run.append(f"{mutation.name}: {error}")
            return None

    with ThreadPoolExecutor(max_workers=asked.processes) as pool:
        for verdict in pool.map(attempt, chosen):
            if verdict is None:
                continue
            verdicts.append(verdict)
            said = verdict.by or "NOT FOUND"
            console.print(
                f"{verdict.mutation.promise} {verdict.mutation.name}: {said} ({verdict.took:.0f} s)", markup=False
            )
    console.print(table_of(verdicts))
    for sentence in did_not_run:
        console.print(f"[red]a mutation could not be tried:[/] {escape(sentence)}")
    return 2 if did_not_run else int(not all(verdict.found for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
