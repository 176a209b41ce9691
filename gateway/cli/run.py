"""`edge-gateway run`: the daemon."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Annotated

import typer

from gateway.runtime.process_settings import do_without_rich


def run(
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site file.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for events and footage. Default: systemd's state directory, or `data` beside the site file.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run the gateway of a site until SIGTERM or Ctrl-C.

    Example: edge-gateway run /etc/edge-gateway/site.toml --data /var/lib/edge-gateway
    """
    do_without_rich()
    gc.disable()  # modules leave no garbage, and collecting during their import would take a fifth of its time
    from gateway.app import gateway as daemon  # noqa: PLC0415  # the whole daemon; other commands start faster without it

    gc.freeze()  # else the next collection looks at all that was imported
    gc.enable()
    raise typer.Exit(daemon.run(site_path=site, data=data or _usual_data(site)))


def _usual_data(site: Path) -> Path:
    state = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(state) if state else site.parent / "data"
