"""`edge-gateway cameras`: the state of the cameras, and their newest pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.client import save
from gateway.cli.printing import print_answers
from gateway.cli.site_now import CameraNow, SiteNow, site_now
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected

app = typer.Typer(
    no_args_is_help=True,
    help="Show what the cameras record, and fetch a picture.\n\nExample: edge-gateway cameras list",
)


@app.command("list")
def show(data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """List the cameras and whether they record. The exit status is 1 when one does not.

    Example: edge-gateway cameras list
    """
    with connected(data, url) as gateway:
        site = site_now(gateway)
    if as_json:
        print_answers(site.cameras)
    else:
        for camera in site.cameras:
            typer.echo(_line(camera, site))
    if any(camera.condition != "recording" for camera in site.cameras):
        raise typer.Exit(1)


@app.command("snapshot")
def snapshot(
    camera: Annotated[str, typer.Argument(metavar="CAMERA", help="The camera's id or name.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write, by default camera-ID.jpg."),
    ] = None,
    data: Data = USUAL_DATA,
    url: Url = "",
) -> None:
    """Fetch a camera's newest picture as JPEG.

    Example: edge-gateway cameras snapshot 201 --output entry.jpg
    """
    with connected(data, url) as gateway:
        found = site_now(gateway).camera(camera)
        path = output or Path(f"camera-{found.camera_id}.jpg")
        save(gateway, f"/v1/camera/thumbnail/{found.camera_id}", path)
    typer.echo(f"{path}: the newest picture of {found.name}")


def _line(camera: CameraNow, site: SiteNow) -> str:
    detail = f": {camera.detail}" if camera.detail else ""
    newest = "" if camera.last_segment_at is None else f", footage until {site.time(camera.last_segment_at)}"
    rate = f", {camera.bits_per_second / 1e6:.1f} Mbit/s" if camera.bits_per_second else ""
    again = f", reconnected {camera.reconnects} times" if camera.reconnects else ""
    return f"{camera.camera_id}  {camera.name}: {camera.condition.replace('_', ' ')}{detail}{rate}{newest}{again}"
