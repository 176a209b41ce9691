"""`edge-gateway doctor`: the site's problems, and what to do about them."""

from __future__ import annotations

import typer

from gateway.cli.printing import print_json
from gateway.cli.site_now import site_now
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.runtime import landlock
from gateway.web.answers import AnswerPart, ProblemAnswer

_FAULT_FOUND = 1
_NOT_READY = 503
_NOT_CONFINED = (
    "NOTE: the kernel of this machine has no Landlock, so camera workers read what the gateway's user may read."
    " A kernel from 5.13 on has it, if `lsm=` of its command line does not leave it out."
)


class SiteVerdict(AnswerPart):
    """All problems, the worst first."""

    headline: str
    problems: tuple[ProblemAnswer, ...]


def doctor(data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """List what is wrong at the site, the worst first, with what to do. The exit status is 1 when something is.

    Example: edge-gateway doctor
    """
    with connected(data, url) as gateway:
        told = gateway.asked("/health/ready", also=(_NOT_READY,))
        verdict = gateway.read(SiteVerdict, told)
        if as_json:
            print_json(told)
        else:
            typer.echo(verdict.headline)
            site = site_now(gateway) if verdict.problems else None
            for problem in verdict.problems:
                _show(problem, since=site.time(problem.since) if site else problem.since)
            if not url and not landlock.version():
                typer.echo(f"\n{_NOT_CONFINED}")
    if verdict.problems:
        raise typer.Exit(_FAULT_FOUND)


def _show(problem: ProblemAnswer, *, since: str) -> None:
    of = f" · {problem.name}" if problem.id and problem.name not in problem.text else ""
    typer.echo(f"\n{problem.severity.upper()}: {problem.title}{of}: {problem.text} (since {since})")
    typer.echo(f"  {problem.means}")
    if problem.acknowledged_by:
        typer.echo(f"  {problem.acknowledged_by} knows of it.")
    for number, step in enumerate(problem.steps, start=1):
        typer.echo(f"  {number}. {step}")
