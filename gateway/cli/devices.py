"""`edge-gateway devices`: the devices of the site, and their inputs."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.cli.printing import print_answers
from gateway.cli.site_now import DeviceNow, SiteNow, site_now
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected

app = typer.Typer(
    no_args_is_help=True,
    help="Show the devices of the site, and their inputs.\n\nExample: edge-gateway devices list",
)


@app.command("list")
def show(data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """List the devices and whether they answer. The exit status is 1 when one does not.

    Example: edge-gateway devices list
    """
    with connected(data, url) as gateway:
        site = site_now(gateway)
    if as_json:
        print_answers(site.devices)
    else:
        for device in site.devices:
            typer.echo(_line(device, site))
    if any(device.online is False for device in site.devices):
        raise typer.Exit(1)


@app.command("show")
def one(
    device: Annotated[str, typer.Argument(metavar="DEVICE", help="The device's id or name.")],
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Show one device with its inputs.

    Example: edge-gateway devices show 101
    """
    with connected(data, url) as gateway:
        site = site_now(gateway)
    found = site.device(device)
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    typer.echo(_line(found, site))
    if (refused := found.refusals).count:
        typer.echo(f"    messages refused: {refused.count}; the last: {refused.reason}")
        if refused.said:
            typer.echo(f"    it said: {refused.said}")
    for point in found.points:
        typer.echo(f"    {point.name}: {point.state}")


def _line(device: DeviceNow, site: SiteNow) -> str:
    state = {True: "answers", False: "does not answer", None: "not seen yet"}[device.online]
    detail = f": {device.detail}" if device.detail else ""
    position = f", {device.position}" if device.position else ""
    return (
        f"{device.device_id}  {device.name} ({device.kind}): {state}{detail}{position}, since {site.time(device.since)}"
    )
