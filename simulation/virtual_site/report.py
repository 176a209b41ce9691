"""The report of a simulation's findings, as JSON and as text for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from simulation.virtual_site.plan import Plan
from simulation.virtual_site.witness import Violation


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a run. `violated` counts broken promises by name; `violations` are the first of them in full.

    `digest` is equal for equal runs. `simulated_seconds` is the time of the virtual clock at the end.
    """

    plan: Plan
    counts: Mapping[str, int]
    violated: Mapping[str, int]
    violations: tuple[Violation, ...]
    steps: int
    simulated_seconds: float
    digest: int

    @property
    def passed(self) -> bool:
        """True when every promise was kept."""
        return not self.violated

    def as_json(self) -> str:
        """Return everything as a JSON text."""
        facts = asdict(self)
        return json.dumps(facts | {"passed": self.passed}, indent=2, default=str)


def show(report: Report, console: Console, *, took: float) -> None:
    """Print a report; `took` is how long the run took in real seconds."""
    plan = report.plan
    groups = {
        "injected": "Injected",
        "vehicle": "Vehicles",
        "passage": "Passages",
        "command": "Commands",
        "event": "Events",
    }
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for prefix, title in groups.items():
        rows = sorted((name, count) for name, count in report.counts.items() if name.startswith(prefix + " "))
        table.add_row(f"[bold]{title}[/]", str(sum(count for _, count in rows)))
        for name, count in rows:
            table.add_row(f"  {name.removeprefix(prefix + ' ')}", str(count))
    others = sorted((n, c) for n, c in report.counts.items() if n.split(" ", 1)[0] not in groups)
    for name, count in others:
        table.add_row(name, str(count))
    console.print(table)
    for violation in report.violations:
        console.print(f"\n[bold red]Promise broken: {violation.promise}[/]", highlight=False)
        console.print(
            f"step {violation.step}, at {violation.at:.3f} s, seed {plan.seed}: {violation.text}", markup=False
        )
        console.print("what was seen until then:")
        for line in violation.tape:
            console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    colour, broken = ("green", 0) if report.passed else ("red", sum(report.violated.values()))
    console.print(
        f"\n[{colour}]{broken} violations[/] in {plan.days:g} days of {plan.lanes} lanes, seed {plan.seed}: "
        f"{report.steps:,} steps in {took:.1f} s, digest {report.digest:08x}",
        highlight=False,
    )
