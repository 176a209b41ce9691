"""`edge-gateway reload`: has the running gateway apply the changes of its site file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.target import USUAL_DATA, Data
from gateway.domain.errors import ConfigError, GatewayError, GatewayUnreachable
from gateway.web.register.changes import RELOAD_PATH, TRIAL_PATH, Answer, Reload

_LONGEST_RELOAD = 720.0
_LOOK_SECONDS = 0.5
_SILENCE_SECONDS = 20.0
_NO_ANSWER = "the gateway did not answer; look in its log what became of it"
_SHOWN = {"error", "faults", "refused", "changes", "confirmed", "why", "unseen"}


def reload(
    data: Data = USUAL_DATA,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference; change nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
    wait: Annotated[
        float, typer.Option("--wait", min=0, max=600, help="Seconds that lanes may take to be free of vehicles.")
    ] = 30,
    now: Annotated[
        bool, typer.Option("--now", help="You have looked: nobody is in the lanes, whatever their inputs say.")
    ] = False,
) -> None:
    """Take over the changes of the site file while the gateway runs.

    Only what changed is touched. A lane is changed when no vehicle is in it and its gate stands still. The changes are
    taken back by themselves if a lane has a new problem within a minute. Hold a card to each changed reader meanwhile:
    readers that were not seen to work are named at the end. Where inputs show vehicles that are not there,
    look, and use --now; an earlier change on trial is then taken back first. A file with faults changes nothing, and
    the exit status is 2; it is 1 when the file was refused or taken back.

    Example: edge-gateway reload --dry-run
    """
    answer = _asked(Reload(dry_run=dry_run, wait=wait, now=now), data)
    if as_json:
        shown = answer.model_dump(mode="json", include=_SHOWN)
        typer.echo(json.dumps(shown, indent=2))
    else:
        _show(answer, dry_run=dry_run)
    if answer.faults:
        raise ConfigError("the site file has faults; the gateway keeps running as before")
    if answer.error or answer.refused:
        raise GatewayError(answer.error or f"nothing was changed: {'; '.join(answer.refused)}")
    if not dry_run and not answer.confirmed:
        raise GatewayError(f"the changes were taken back: {answer.why}")


def _show(answer: Answer, *, dry_run: bool) -> None:
    for fault in answer.faults:
        typer.echo(fault, err=True)
    if not answer.faults and not answer.error:
        for change in answer.changes:
            typer.echo(change.text)
        if not answer.changes:
            typer.echo("nothing is different in the site file")
        elif answer.confirmed:
            typer.echo(f"in force{': ' * bool(answer.why)}{answer.why}")
            for reader in answer.unseen:
                typer.echo(reader.text)
        elif dry_run and not answer.refused:
            typer.echo("nothing was changed yet")


def _asked(wanted: Reload, data: Path) -> Answer:
    """Have the file taken over, and follow its trial to the end."""
    from gateway.cli.client import NobodyThere, RunningGatewayClient  # noqa: PLC0415  # help and wrong options answer faster

    gateway = RunningGatewayClient.local(data / "run", seconds=_LONGEST_RELOAD)
    try:
        answer = gateway.answer_of(Answer, RELOAD_PATH, wanted.model_dump(mode="json"))
    except NobodyThere as error:
        raise GatewayError(f"no gateway runs on {data}; a gateway reads its site file when it starts") from error
    except GatewayUnreachable as error:
        raise GatewayError(_NO_ANSWER) from error
    now, heard_at = answer, time.monotonic()
    while now.on_trial:
        time.sleep(_LOOK_SECONDS)  # noqa: TID251 (a program without a loop)
        try:
            now = gateway.answer_of(Answer, TRIAL_PATH, {})
            heard_at = time.monotonic()
        except GatewayUnreachable as error:  # the interface is served anew when its part of the file changes
            if time.monotonic() - heard_at > _SILENCE_SECONDS:
                raise GatewayError(_NO_ANSWER) from error
        if now.run != answer.run:
            raise GatewayError(_NO_ANSWER)
    if not answer.on_trial:
        return answer
    return answer.model_copy(update={"confirmed": now.confirmed, "why": now.why, "unseen": now.unseen})
