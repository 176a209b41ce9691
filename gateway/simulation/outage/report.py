"""Report of an outage, for people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from gateway.simulation.outage.simulate import OutageReport


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
