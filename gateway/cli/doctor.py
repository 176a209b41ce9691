"""`edge-gateway doctor`: what is wrong at the site, and what to do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.users.register import USUAL_DATA, Data
from gateway.domain.errors import GatewayError
from gateway.domain.writes import JsonObject
from gateway.web.problems import ProblemAnswer
from gateway.web.register.changes import Answer, Diagnose

_FAULT_FOUND = 1


def doctor(
    data: Data = USUAL_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list for programs.")] = False,
) -> None:
    """List what is wrong at the site, the worst first, with what to do. The exit status is 1 when something is.

    The running gateway is asked over its local socket; no password is needed.

    Example: edge-gateway doctor
    """
    verdict = asyncio.run(_asked(data))
    problems = verdict.get("problems")
    if as_json:
        typer.echo(json.dumps(verdict, indent=2, ensure_ascii=False))
    else:
        typer.echo(verdict.get("headline"))
        for fields in problems if isinstance(problems, list) else ():
            _show(ProblemAnswer.model_validate(fields))
    if problems:
        raise typer.Exit(_FAULT_FOUND)


def _show(problem: ProblemAnswer) -> None:
    typer.echo(f"\n{problem.severity.upper()}: {problem.title}: {problem.text} (since {problem.since})")
    typer.echo(f"  {problem.means}")
    for number, step in enumerate(problem.steps, start=1):
        typer.echo(f"  {number}. {step}")


async def _asked(data: Path) -> JsonObject:
    from gateway.web.register.socket import NobodyThere, ask  # noqa: PLC0415  # other commands start faster without it

    try:
        answer: Answer = await ask(Diagnose(), run_folder=data / "run")
    except NobodyThere as error:
        raise GatewayError(f"no gateway runs on {data}: look in its log why, and start it") from error
    if answer.verdict is None:
        raise GatewayError(answer.error or "the gateway's answer is of another release; restart it")
    return answer.verdict
