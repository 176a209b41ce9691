"""`edge-gateway incidents` and `replay`: fetch what a lane did around an alarm, and run it again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from pydantic import JsonValue

from gateway.cli.client import save
from gateway.cli.printing import print_answers, print_value
from gateway.cli.site_now import site_now
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.domain.errors import ConfigError, GatewayError
from gateway.lanes.incidents import read_incident
from gateway.lanes.tape import Incident, ReplayDifference, TapedStep, replayed
from gateway.web.answers import IncidentAnswer, IncidentsAnswer

app = typer.Typer(
    no_args_is_help=True,
    help="List and fetch what lanes did around each alarm, and save what one did just now.\n\n"
    "Example: edge-gateway incidents list",
)
_DIFFERS = 1


@app.command("list")
def show(data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """List the saved incidents, the newest first. A lane's last two minutes are saved at each of its alarms.

    Example: edge-gateway incidents list
    """
    with connected(data, url) as gateway:
        found = gateway.answer_of(IncidentsAnswer, "/status/incident/list", None).incidents
    if as_json:
        print_answers(found)
        return
    for one in found:
        typer.echo(f"{one.name}  {one.size / 1000:.0f} kB")
    if not found:
        typer.echo("no lane has recorded an alarm")


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that `incidents list` shows.")],
    data: Data = USUAL_DATA,
    url: Url = "",
) -> None:
    """Fetch a saved incident into this folder.

    Example: edge-gateway incidents fetch 2026-01-31T12-00-00.000Z_entry.incident
    """
    with connected(data, url) as gateway:
        save(gateway, f"/status/incident/file/{quote(name, safe='', errors='replace')}", Path(name))
    typer.echo(f"{name}: run it again with `edge-gateway replay {name}`")


@app.command("save")
def save_now(
    lane: Annotated[str, typer.Argument(metavar="LANE", help="The lane's id or name.")],
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Save what a lane did in the last two minutes, and fetch it into this folder.

    Example: edge-gateway incidents save north-entry
    """
    with connected(data, url) as gateway:
        lane_id = site_now(gateway).lane(lane).lane_id
        saved = gateway.answer_of(IncidentAnswer, "/status/incident/save", {"lane_id": lane_id}).incident
        save(gateway, f"/status/incident/file/{saved.name}", Path(saved.name))
    if as_json:
        print_value(saved.model_dump(mode="json"))
        return
    typer.echo(f"{saved.name}: run it again with `edge-gateway replay {saved.name}`")


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A saved incident.")],
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print each event and answer.")] = False,
    as_json: JsonWanted = False,
) -> None:
    """Run an incident through the lane machine of this release, and compare its answers with those of then.

    No device and no gateway is needed. The exit status is 1 when an answer differs.

    Example: edge-gateway replay 2026-01-31T12-00-00.000Z_entry.incident
    """
    try:
        incident = read_incident(file.read_bytes())
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    difference = _difference(incident, verbose=verbose and not as_json)
    if as_json:
        print_value(_as_value(incident, difference))
        if difference is not None:
            raise typer.Exit(_DIFFERS)
        return
    if difference is None:
        typer.echo(f"{incident.rules.lane.name}: all {len(incident.steps)} events are answered as they were")
        return
    typer.echo(f"{incident.rules.lane.name}: the answer differs at")
    typer.echo(_line(incident, difference.place, incident.steps[difference.place]))
    typer.echo(f"now:  {list(difference.now)}")
    raise typer.Exit(_DIFFERS)


def _difference(incident: Incident, *, verbose: bool) -> ReplayDifference | None:
    try:
        if verbose:
            for place, step in enumerate(incident.steps):
                typer.echo(_line(incident, place, step))
        return replayed(incident)
    except Exception as error:  # a damaged file may have any value anywhere
        raise GatewayError(
            "the lane machine cannot answer the events of this file: fetch the file again; when that does not help,"
            " report it with the file"
        ) from error


def _as_value(incident: Incident, difference: ReplayDifference | None) -> JsonValue:
    found: JsonValue = None
    if difference is not None:
        step = incident.steps[difference.place]
        found = {
            "place": difference.place,
            "event": str(step.event),
            "then": [str(command) for command in difference.taped],
            "now": [str(command) for command in difference.now],
        }
    return {"lane": incident.rules.lane.name, "events": len(incident.steps), "difference": found}


def _line(incident: Incident, place: int, step: TapedStep) -> str:
    at = step.now.at - incident.steps[0].now.at
    answer = "".join(f"\n      -> {command}" for command in step.commands)
    return f"{place:5}  {at:7.3f} s  {step.event}{answer}"
