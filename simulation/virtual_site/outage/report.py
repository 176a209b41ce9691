"""The report of an outage's outcome, as JSON and as text for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from gateway.store import Books
from simulation.virtual_site.outage.plan import OutagePlan


@dataclass(frozen=True, slots=True)
class OutageReport:
    """An outage and its outcome.

    Attributes:
        faults: each difference between both sides and each broken promise, in one sentence.
        counts: the number of happenings, by name.
        held: the numbers of records that both sides hold in the end.
        books: the counts of the outbox in the end.
        simulated_seconds: the time of the virtual clock at the end.
    """

    plan: OutagePlan
    faults: tuple[str, ...]
    counts: Mapping[str, int]
    held: Mapping[str, int]
    books: Books
    simulated_seconds: float

    @property
    def passed(self) -> bool:
        """True when both sides hold the same records, each once."""
        return not self.faults

    def as_json(self) -> str:
        """Return everything as a JSON text."""
        facts = asdict(self)
        facts["plan"]["chances"] = self.plan.chances.model_dump()
        return json.dumps(facts | {"passed": self.passed}, indent=2)


def show_outage(report: OutageReport, console: Console, *, took: float) -> None:
    """Print a report; `took` is how long the run took in real seconds."""
    plan, books = report.plan, report.books
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for title, rows in (("What happened", report.counts), ("What both sides hold in the end", report.held)):
        table.add_row(f"[bold]{title}[/]", "")
        for name, count in sorted(rows.items()):
            table.add_row(f"  {name}", str(count))
    console.print(table)
    console.print(
        f"books: {books.accepted} accepted = {books.delivered} delivered + {books.replaced} replaced"
        f" + {books.dropped} dropped + {books.waiting} waiting + {books.parked} parked",
        highlight=False,
    )
    for fault in report.faults:
        console.print(f"[bold red]Not in step:[/] {fault}", highlight=False)
    colour, word = ("green", "in step") if report.passed else ("red", "not in step")
    console.print(
        f"[{colour}]{word}[/] after {plan.days:g} days without central, {plan.lanes} lanes, seed {plan.seed}:"
        f" {took:.1f} s",
        highlight=False,
    )
