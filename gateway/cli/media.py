"""`edge-gateway media`: the disk for footage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.runtime.data_folder import adopt_media

app = typer.Typer(
    no_args_is_help=True,
    help="Prepare the disk for footage.\n\nExample: edge-gateway media adopt /var/lib/edge-gateway",
)


@app.command("adopt")
def adopt(
    data: Annotated[Path, typer.Argument(metavar="DIR", help="The data folder, for example /var/lib/edge-gateway.")],
    same_disk: Annotated[bool, typer.Option("--same-disk", help="Keep footage on the data folder's own disk.")] = False,
) -> None:
    """Start to use the disk mounted at DIR/media for footage: a new one, or one from another gateway.

    A running gateway notices within seconds and goes on recording. Without this command the gateway writes only to the
    disk that it knows, so that it never fills the disk under an empty mount point.

    Example: edge-gateway media adopt /var/lib/edge-gateway
    """
    if adopt_media(data, same_disk=same_disk):
        typer.echo(f"{data}/media is in use for footage from now on; a running gateway notices within 10 s")
    else:
        typer.echo(f"{data}/media is in use for footage already; there is nothing to do")
