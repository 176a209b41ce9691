"""`edge-gateway simulate`: days of traffic and faults on virtual time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gateway.domain.errors import ConfigError
from simulation.virtual_site.outage import OutagePlan, show_outage, simulate_outage
from simulation.virtual_site.plan import Plan
from simulation.virtual_site.report import show
from simulation.virtual_site.simulate import simulate as run_simulation


def simulate(  # noqa: PLR0917  # Typer reads options off its parameters
    days: Annotated[float, typer.Option(min=0.01, max=3650, help="Days to simulate.")] = 1.0,
    lanes: Annotated[int, typer.Option(min=1, max=64, help="Lanes of the site.")] = 4,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 1,
    vehicles: Annotated[
        int | None,
        typer.Option(
            min=1, max=5000, help="Vehicles per lane and day. Default: 50, with --outage 20.", show_default=False
        ),
    ] = None,
    faults: Annotated[float, typer.Option(min=0, max=100, help="Multiply the number of faults by this.")] = 1.0,
    poll: Annotated[float, typer.Option(min=0.05, max=1.0, help="Seconds between polls of a moving gate.")] = 0.3,
    outage: Annotated[
        bool, typer.Option("--outage", help="Simulate all these days without central, then the return of the line.")
    ] = False,
    keys: Annotated[
        bool, typer.Option(help="With --outage: central recognises a repeated write by its Idempotency-Key.")
    ] = True,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the findings to this file, as JSON.", show_default=False)
    ] = None,
) -> None:
    """Simulate days of traffic and faults on virtual time, and check every promise.

    Answers get lost, inputs report wrong states, the power fails, the clock steps and central goes offline. Every
    promise is checked at every step. When one is broken, its seed and the steps before it are shown. The exit status is
    1 then.

    With --outage the line to central is down for all these days, with traffic, people who change cards and add files,
    and a power cut every few hours. Then a bad line returns. In the end both sides must hold the same records, each
    once.

    Example: edge-gateway simulate --days 30 --lanes 4 --seed 7

    Example: edge-gateway simulate --outage --days 30 --lanes 2
    """
    if report is not None:
        _try_to_write(report)
    began = time.monotonic()
    with _progress_bar(days) as day_begins:
        if outage:
            outage_plan = OutagePlan(days=days, lanes=lanes, seed=seed, vehicles=vehicles or 20, honours_keys=keys)
            outcome = simulate_outage(outage_plan, day_begins=day_begins)
            text, passed, print_report = (
                outcome.as_json(),
                outcome.passed,
                partial(show_outage, outcome),
            )
        else:
            plan = Plan(days=days, lanes=lanes, seed=seed, vehicles=vehicles or 50, faults=faults, poll=poll)
            findings = run_simulation(plan, day_begins=day_begins)
            text, passed, print_report = findings.as_json(), findings.passed, partial(show, findings)
    print_report(Console(), took=time.monotonic() - began)
    if report is not None:
        report.write_text(text, encoding="utf-8")
    raise typer.Exit(0 if passed else 1)


@contextmanager
def _progress_bar(days: float) -> Iterator[Callable[[int], None]]:
    """Show a bar of the simulated days on stderr; the function that it yields gets each day as it begins."""
    columns = (TextColumn("day {task.completed:.0f} of {task.total:g}"), BarColumn())
    with Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True), auto_refresh=False
    ) as progress:
        task = progress.add_task("days", total=days)
        yield lambda number: progress.update(task, completed=number, refresh=True)
        progress.update(task, completed=days, refresh=True)


def _try_to_write(report: Path) -> None:
    """Check before a long run that its report can be written. Raises ConfigError."""
    try:
        report.open("a", encoding="utf-8").close()
    except OSError as error:
        raise ConfigError(f"--report {report} cannot be written: {error.strerror}") from error
